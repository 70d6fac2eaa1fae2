//! Which instructions the converting and copying code uses.

/// A set of vector instructions that this CPU has.
///
/// The functions of [`convert`](crate::convert) and [`copy_streaming`](crate::copy_streaming) take
/// the best one; to compare them, each can be asked for the work itself. All give the same bits.
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
// The field is private, so that a value is the proof that the CPU has the instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instructions(Level);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Level {
    /// Whatever the compiler makes of plain Rust.
    Portable,
    /// AVX2 with F16C.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Avx2,
    /// AVX-512, its foundation and BW.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Avx512,
}

impl Instructions {
    /// The fastest that this CPU has.
    #[must_use]
    #[inline]
    pub fn best() -> Self {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            // The standard library asks the CPU once and keeps the answer.
            if has_avx512() {
                return Self(Level::Avx512);
            }
            if has_avx2() {
                return Self(Level::Avx2);
            }
        }
        Self(Level::Portable)
    }

    /// All that this CPU has, the slowest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let all = [
            (Level::Portable, true),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            (Level::Avx2, has_avx2()),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            (Level::Avx512, has_avx512()),
        ];
        all.into_iter()
            .filter_map(|(level, is_there)| is_there.then_some(Self(level)))
            .collect()
    }

    /// A name for people.
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

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c")
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw")
}
