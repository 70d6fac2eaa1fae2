//! Converting numbers on the CPU, as fast as one core reads memory.
//!
//! The kernels' twins use these, and so do threads that convert while they stage. They give the
//! same bits as the kernels, whatever the CPU:
//!
//! - to bf16 and f16: rounded to nearest, ties to even; too large a number becomes infinity;
//!   denormals are kept; a NaN keeps its sign and the top of its payload and becomes quiet,
//! - `u8` to `f32`: two roundings, never fused.

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx2;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx512;
mod portable;

use crate::Instructions;
use crate::instructions::Level;

/// Every number as the bits of the nearest bf16.
///
/// ```
/// let mut target = [0; 3];
/// pinlane_kernels::convert::f32_to_bf16(&[1.0, 1.0 + 1.0 / 256.0, f32::MAX], &mut target);
/// assert_eq!(target, [0x3f80, 0x3f80, 0x7f80]);
/// ```
///
/// # Panics
/// When the lengths differ.
pub fn f32_to_bf16(source: &[f32], target: &mut [u16]) {
    Instructions::best().f32_to_bf16(source, target);
}

/// Every number as the bits of the nearest f16.
///
/// ```
/// let mut target = [0; 3];
/// pinlane_kernels::convert::f32_to_f16(&[1.0, 65_520.0, 1.0 / 16_777_216.0], &mut target);
/// assert_eq!(target, [0x3c00, 0x7c00, 0x0001]);
/// ```
///
/// # Panics
/// When the lengths differ.
pub fn f32_to_f16(source: &[f32], target: &mut [u16]) {
    Instructions::best().f32_to_f16(source, target);
}

/// `x * scale + offset` of every byte, rounded after the multiplication and after the addition.
///
/// Where that is not a number, the bits of the NaN are not specified.
///
/// ```
/// let mut target = [0.0; 3];
/// pinlane_kernels::convert::u8_to_f32(&[0, 128, 255], 2.0, -1.0, &mut target);
/// assert_eq!(target, [-1.0, 255.0, 509.0]);
/// ```
///
/// # Panics
/// When the lengths differ.
pub fn u8_to_f32(source: &[u8], scale: f32, offset: f32, target: &mut [f32]) {
    Instructions::best().u8_to_f32(source, scale, offset, target);
}

impl Instructions {
    /// [`f32_to_bf16`] with these instructions.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn f32_to_bf16(self, source: &[f32], target: &mut [u16]) {
        same_len(source.len(), target.len());
        match self.level() {
            Level::Portable => portable::f32_to_bf16(source, target),
            // SAFETY: a value of `Instructions` exists only where the CPU has them.
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Level::Avx2 => unsafe { avx2::f32_to_bf16(source, target) },
            // SAFETY: likewise.
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Level::Avx512 => unsafe { avx512::f32_to_bf16(source, target) },
        }
    }

    /// [`f32_to_f16`] with these instructions.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn f32_to_f16(self, source: &[f32], target: &mut [u16]) {
        same_len(source.len(), target.len());
        match self.level() {
            Level::Portable => portable::f32_to_f16(source, target),
            // SAFETY: a value of `Instructions` exists only where the CPU has them.
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Level::Avx2 => unsafe { avx2::f32_to_f16(source, target) },
            // SAFETY: likewise.
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Level::Avx512 => unsafe { avx512::f32_to_f16(source, target) },
        }
    }

    /// [`u8_to_f32`] with these instructions.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn u8_to_f32(self, source: &[u8], scale: f32, offset: f32, target: &mut [f32]) {
        same_len(source.len(), target.len());
        match self.level() {
            Level::Portable => portable::u8_to_f32(source, scale, offset, target),
            // SAFETY: a value of `Instructions` exists only where the CPU has them.
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Level::Avx2 => unsafe { avx2::u8_to_f32(source, scale, offset, target) },
            // SAFETY: likewise.
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Level::Avx512 => unsafe { avx512::u8_to_f32(source, scale, offset, target) },
        }
    }
}

#[track_caller]
fn same_len(source: usize, target: usize) {
    assert_eq!(source, target, "source and target differ in length");
}
