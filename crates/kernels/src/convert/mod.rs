//! Converts numbers on the CPU, as fast as one core reads memory.
//!
//! The kernels' CPU twins use these, and so do threads that convert while they stage. On every CPU
//! they give the same bits as the kernels:
//!
//! - to bf16 and f16: rounded to nearest, ties to even; numbers that are too large become infinity;
//!   denormals are kept; a NaN becomes quiet but keeps its sign and the top of its payload,
//! - `u8` to `f32`: two roundings, never fused.
//!
//! [`floats`] converts between any kinds of floating-point numbers, for data from files.
//!
//! Each conversion has two forms. The plain one writes to the caches, for a target that this CPU
//! reads soon. The one named `_streaming` bypasses them if the CPU has such stores, for a target
//! that a device reads next: modified lines in the cache of a core are slow to fetch from there, and
//! plain stores read each line before they overwrite it.

mod any_float;
mod autovectorized;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx2;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx512;
mod blockwise;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod cache_line_stores;
mod portable;

pub use any_float::{FloatKind, floats, floats_streaming};
use blockwise::{Scaled, Stores, ToBf16, ToF16, convert};

use crate::Instructions;

/// Converts to the bits of the nearest bf16.
///
/// ```
/// let mut target = [0; 3];
/// pinlane_kernels::convert::f32_to_bf16(&[1.0, 1.0 + 1.0 / 256.0, f32::MAX], &mut target);
/// assert_eq!(target, [0x3f80, 0x3f80, 0x7f80]);
/// ```
///
/// # Panics
/// If the lengths differ.
pub fn f32_to_bf16(source: &[f32], target: &mut [u16]) {
    Instructions::best().f32_to_bf16(source, target);
}

/// Converts to the bits of the nearest f16.
///
/// ```
/// let mut target = [0; 3];
/// pinlane_kernels::convert::f32_to_f16(&[1.0, 65_520.0, 1.0 / 16_777_216.0], &mut target);
/// assert_eq!(target, [0x3c00, 0x7c00, 0x0001]);
/// ```
///
/// # Panics
/// If the lengths differ.
pub fn f32_to_f16(source: &[f32], target: &mut [u16]) {
    Instructions::best().f32_to_f16(source, target);
}

/// Computes `x * scale + offset` of every byte, rounded after the multiplication and after the
/// addition. The bits of a NaN are unspecified.
///
/// ```
/// let mut target = [0.0; 3];
/// pinlane_kernels::convert::u8_to_f32(&[0, 128, 255], 2.0, -1.0, &mut target);
/// assert_eq!(target, [-1.0, 255.0, 509.0]);
/// ```
///
/// # Panics
/// If the lengths differ.
pub fn u8_to_f32(source: &[u8], scale: f32, offset: f32, target: &mut [f32]) {
    Instructions::best().u8_to_f32(source, scale, offset, target);
}

/// [`f32_to_bf16`] that bypasses the caches. The bits, and their visibility to other threads and to
/// devices, are the same.
///
/// ```
/// let mut target = [0; 3];
/// pinlane_kernels::convert::f32_to_bf16_streaming(&[1.0, -2.0, f32::MAX], &mut target);
/// assert_eq!(target, [0x3f80, 0xc000, 0x7f80]);
/// ```
///
/// # Panics
/// If the lengths differ.
pub fn f32_to_bf16_streaming(source: &[f32], target: &mut [u16]) {
    Instructions::best().f32_to_bf16_streaming(source, target);
}

/// [`f32_to_f16`] that bypasses the caches, like [`f32_to_bf16_streaming`].
///
/// # Panics
/// If the lengths differ.
pub fn f32_to_f16_streaming(source: &[f32], target: &mut [u16]) {
    Instructions::best().f32_to_f16_streaming(source, target);
}

/// [`u8_to_f32`] that bypasses the caches, like [`f32_to_bf16_streaming`].
///
/// # Panics
/// If the lengths differ.
pub fn u8_to_f32_streaming(source: &[u8], scale: f32, offset: f32, target: &mut [f32]) {
    Instructions::best().u8_to_f32_streaming(source, scale, offset, target);
}

/// Defines the methods that convert with given instructions.
macro_rules! methods {
    ($($name:ident($source:ty, $($arg:ident),*) -> $target:ty = $conversion:expr, $stores:ident;)*) => {
        impl Instructions {$(
            #[doc = concat!("[`", stringify!($name), "`] with these instructions.")]
            ///
            /// # Panics
            /// If the lengths differ.
            pub fn $name(self, source: &[$source], $($arg: f32,)* target: &mut [$target]) {
                convert(self, &$conversion, source, target, Stores::$stores);
            }
        )*}
    };
}

methods! {
    f32_to_bf16(f32,) -> u16 = ToBf16, Cached;
    f32_to_f16(f32,) -> u16 = ToF16, Cached;
    u8_to_f32(u8, scale, offset) -> f32 = Scaled { scale, offset }, Cached;
    f32_to_bf16_streaming(f32,) -> u16 = ToBf16, Streaming;
    f32_to_f16_streaming(f32,) -> u16 = ToF16, Streaming;
    u8_to_f32_streaming(u8, scale, offset) -> f32 = Scaled { scale, offset }, Streaming;
}
