//! Conversions of one number at a time, without branches. The compiler vectorises them for each set
//! of instructions.

use bytemuck::Pod;

#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::{avx2, avx512};
use crate::Instructions;
use crate::vector_instructions::Level;

/// Converts all numbers of the source, which has as many as the target, with `one`.
pub(super) fn elementwise<S: Pod, T: Pod>(
    instructions: Instructions,
    one: impl Fn(S) -> T,
    source: &[S],
    target: &mut [T],
) {
    match instructions.level() {
        Level::Portable => all(one, source, target),
        // SAFETY: a value of `Instructions` proves that the CPU has them.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        Level::Avx2 => unsafe { all_avx2(one, source, target) },
        // SAFETY: as above.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        Level::Avx512 => unsafe { all_avx512(one, source, target) },
    }
}

// Inlined, so that it is compiled for the instructions of its caller.
#[inline(always)]
pub(super) fn all<S: Pod, T: Pod>(one: impl Fn(S) -> T, source: &[S], target: &mut [T]) {
    for (source, target) in source.iter().zip(target) {
        *target = one(*source);
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2,f16c")]
fn all_avx2<S: Pod, T: Pod>(one: impl Fn(S) -> T, source: &[S], target: &mut [T]) {
    all(one, source, target);
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx512f,avx512bw")]
fn all_avx512<S: Pod, T: Pod>(one: impl Fn(S) -> T, source: &[S], target: &mut [T]) {
    all(one, source, target);
}

/// [`f16_to_f32`] of all numbers. The CPU may have instructions for it.
pub(super) fn all_f16_to_f32(instructions: Instructions, source: &[u16], target: &mut [f32]) {
    match instructions.level() {
        Level::Portable => all(f16_to_f32, source, target),
        // SAFETY: a value of `Instructions` proves that the CPU has them.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        Level::Avx2 => unsafe { avx2::all_f16_to_f32(source, target) },
        // SAFETY: as above.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        Level::Avx512 => unsafe { avx512::all_f16_to_f32(source, target) },
    }
}

#[inline(always)]
pub(super) fn f16_to_f32(half: u16) -> f32 {
    /// 2^-24, the value of a denormal's lowest bit.
    const LOWEST: f32 = f32::from_bits(0x3380_0000);
    let half = u32::from(half);
    let magnitude = half & 0x7fff;
    let denormal = ((magnitude as i32 as f32) * LOWEST).to_bits();
    // An exponent of 127 instead of 15.
    let normal = (magnitude << 13) + (112 << 23);
    let infinity = 0x7f80_0000;
    let quiet = 0x7fc0_0000 | magnitude << 13;
    let bits = match magnitude {
        0x7c01.. => quiet,
        0x7c00 => infinity,
        0x0400.. => normal,
        _ => denormal,
    };
    f32::from_bits((half & 0x8000) << 16 | bits)
}

#[inline(always)]
pub(super) fn bf16_to_f32(half: u16) -> f32 {
    let bits = u32::from(half) << 16;
    let is_nan = bits & 0x7fff_ffff > 0x7f80_0000;
    f32::from_bits(if is_nan { bits | 0x0040_0000 } else { bits })
}

#[inline(always)]
pub(super) fn f32_to_f64(number: f32) -> f64 {
    // Otherwise the bits of a NaN depend on the machine.
    let bits = u64::from(number.to_bits());
    let quiet = (bits & 0x8000_0000) << 32 | 0x7ff8 << 48 | (bits & 0x003f_ffff) << 29;
    let wide = f64::from(number).to_bits();
    f64::from_bits(if number.is_nan() { quiet } else { wide })
}

#[inline(always)]
pub(super) fn f64_to_f32(number: f64) -> f32 {
    let bits = number.to_bits();
    let quiet = (bits >> 32) as u32 & 0x8000_0000 | 0x7fc0_0000 | (bits >> 29) as u32 & 0x003f_ffff;
    let rounded = (number as f32).to_bits();
    f32::from_bits(if number.is_nan() { quiet } else { rounded })
}

/// To an `f32` that will be rounded again to 16 bits ("round to odd"): rounds towards zero and sets
/// the lowest bit if that was inexact. So the second rounding neither gains nor loses a tie.
#[inline(always)]
pub(super) fn f64_to_odd_f32(number: f64) -> f32 {
    let rounded = f64_to_f32(number);
    let back = f64::from(rounded);
    // False for NaNs, which stay unchanged.
    let away = u32::from(back.abs() > number.abs());
    let inexact = u32::from(back < number) | u32::from(back > number);
    f32::from_bits((rounded.to_bits() - away) | inexact)
}
