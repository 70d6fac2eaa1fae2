//! Shared libraries that the tool carries: the one that it preloads into programs, and the simulated libcuda.

/// The bytes of the shared libraries. Programs get them by [`embedded_libraries!`](crate::embedded_libraries).
#[derive(Clone, Copy, Default)]
pub struct EmbeddedLibraries {
    /// `libpinlane_boost.so`, for `boost` and `trace`.
    pub boost: &'static [u8],
    /// `libpinlane_simcuda.so`, to run programs on a simulated GPU.
    pub simcuda: &'static [u8],
}

/// The shared libraries, embedded into the program that uses this macro. Its package has this crate's build script and
/// depends on the libraries' crates, so that Cargo builds them first. Built from crates.io, a program has none: Cargo
/// gives libraries of other packages names that cannot be known.
#[macro_export]
macro_rules! embedded_libraries {
    () => {{
        #[cfg(embeds_libraries)]
        let libraries = $crate::EmbeddedLibraries {
            boost: include_bytes!(concat!(
                env!("PINLANE_LIBRARY_FOLDER"),
                "/libpinlane_boost.so"
            )),
            simcuda: include_bytes!(concat!(
                env!("PINLANE_LIBRARY_FOLDER"),
                "/libpinlane_simcuda.so"
            )),
        };
        #[cfg(not(embeds_libraries))]
        let libraries = $crate::EmbeddedLibraries::default();
        libraries
    }};
}
