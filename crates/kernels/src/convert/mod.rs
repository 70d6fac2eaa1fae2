//! Converting numbers on the CPU, as fast as one core reads memory.
//!
//! The kernels' twins use these, and so do threads that convert while they stage. They give the
//! same bits as the kernels, whatever the CPU:
//!
//! - to bf16 and f16: rounded to nearest, ties to even; too large a number becomes infinity;
//!   denormals are kept; a NaN keeps its sign and the top of its payload and becomes quiet,
//! - `u8` to `f32`: two roundings, never fused.
//!
//! [`floats`] goes from any kind of floating-point numbers to any other, for what is read from files.
//!
//! Each comes in two forms. The plain one writes through the caches: for a target that this CPU
//! reads soon. The one named `_streaming` writes past them, where the CPU has stores for that: for
//! a target that a device reads next. Lines that sit changed in the cache of one core are slow to
//! fetch from there, and plain stores read each line before they overwrite it.

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx2;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx512;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod block;
mod conversion;
mod each;
mod floats;
mod kinds;
mod portable;
mod route;

use conversion::{Stores, convert};
pub use floats::{FloatKind, floats, floats_streaming};
use kinds::{Scaled, ToBf16, ToF16};

use crate::Instructions;

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

/// [`f32_to_bf16`] past the caches: the same bits, visible to other threads and to devices as after
/// the plain one.
///
/// ```
/// let mut target = [0; 3];
/// pinlane_kernels::convert::f32_to_bf16_streaming(&[1.0, -2.0, f32::MAX], &mut target);
/// assert_eq!(target, [0x3f80, 0xc000, 0x7f80]);
/// ```
///
/// # Panics
/// When the lengths differ.
pub fn f32_to_bf16_streaming(source: &[f32], target: &mut [u16]) {
    Instructions::best().f32_to_bf16_streaming(source, target);
}

/// [`f32_to_f16`] past the caches, otherwise as [`f32_to_bf16_streaming`].
///
/// # Panics
/// When the lengths differ.
pub fn f32_to_f16_streaming(source: &[f32], target: &mut [u16]) {
    Instructions::best().f32_to_f16_streaming(source, target);
}

/// [`u8_to_f32`] past the caches, otherwise as [`f32_to_bf16_streaming`].
///
/// # Panics
/// When the lengths differ.
pub fn u8_to_f32_streaming(source: &[u8], scale: f32, offset: f32, target: &mut [f32]) {
    Instructions::best().u8_to_f32_streaming(source, scale, offset, target);
}

impl Instructions {
    /// [`f32_to_bf16`] with these instructions.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn f32_to_bf16(self, source: &[f32], target: &mut [u16]) {
        convert(self, &ToBf16, source, target, Stores::Cached);
    }

    /// [`f32_to_f16`] with these instructions.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn f32_to_f16(self, source: &[f32], target: &mut [u16]) {
        convert(self, &ToF16, source, target, Stores::Cached);
    }

    /// [`u8_to_f32`] with these instructions.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn u8_to_f32(self, source: &[u8], scale: f32, offset: f32, target: &mut [f32]) {
        convert(
            self,
            &Scaled { scale, offset },
            source,
            target,
            Stores::Cached,
        );
    }

    /// [`f32_to_bf16_streaming`] with these instructions.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn f32_to_bf16_streaming(self, source: &[f32], target: &mut [u16]) {
        convert(self, &ToBf16, source, target, Stores::Streaming);
    }

    /// [`f32_to_f16_streaming`] with these instructions.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn f32_to_f16_streaming(self, source: &[f32], target: &mut [u16]) {
        convert(self, &ToF16, source, target, Stores::Streaming);
    }

    /// [`u8_to_f32_streaming`] with these instructions.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn u8_to_f32_streaming(self, source: &[u8], scale: f32, offset: f32, target: &mut [f32]) {
        convert(
            self,
            &Scaled { scale, offset },
            source,
            target,
            Stores::Streaming,
        );
    }
}
