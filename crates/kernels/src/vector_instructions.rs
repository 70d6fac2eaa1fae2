//! The vector instructions that converting and copying use.

/// Size of a cache line.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) const LINE_BYTES: usize = 64;

/// A set of vector instructions that this CPU has.
///
/// The functions of [`convert`](crate::convert) and [`copy_streaming`](crate::copy_streaming) use
/// the best one. The methods use this one, for comparison. All give the same bits.
///
/// ```
/// use pinlane_kernels::Instructions;
///
/// for instructions in Instructions::available() {
///     let mut target = [0; 2];
///     instructions.f32_to_bf16(&[1.0, -2.0], &mut target);
///     assert_eq!(target, [0x3f80, 0xc000], "{}", instructions.name());
/// }
/// ```
// The field is private, so a value proves that the CPU has the instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instructions(Level);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Level {
    /// Plain Rust, vectorised by the compiler.
    Portable,
    /// AVX2 with F16C.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Avx2,
    /// AVX-512F with BW.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Avx512,
}

impl Instructions {
    /// The fastest set that this CPU has.
    #[must_use]
    #[inline]
    pub fn best() -> Self {
        let best = Level::ALL.iter().rfind(|level| level.is_available());
        Self(*best.unwrap_or(&Level::Portable))
    }

    /// All sets that this CPU has, slowest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let available = Level::ALL.iter().filter(|level| level.is_available());
        available.map(|level| Self(*level)).collect()
    }

    /// The name to show to users.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Level::Portable => "portable",
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Level::Avx2 => "AVX2",
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Level::Avx512 => "AVX-512",
        }
    }

    #[inline]
    pub(crate) fn level(self) -> Level {
        self.0
    }
}

impl Level {
    const ALL: &[Self] = &[
        Self::Portable,
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        Self::Avx2,
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        Self::Avx512,
    ];

    /// Whether this CPU has them. The standard library queries it once.
    #[inline]
    fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c"),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw")
            }
        }
    }
}
