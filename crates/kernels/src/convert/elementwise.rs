//! Conversions of one number at a time, without branches. The compiler vectorises them for each set
//! of instructions.

use bytemuck::Pod;

#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::{avx2, avx512};
use crate::Instructions;
use crate::instructions::Level;

/// Converts one number to another.
pub(super) trait Elementwise: Sized {
    type Source: Pod;
    type Target: Pod;

    fn one(source: Self::Source) -> Self::Target;

    /// Converts all numbers of the source, which has as many as the target.
    ///
    /// # Safety
    /// The CPU has AVX2 and F16C.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn avx2(source: &[Self::Source], target: &mut [Self::Target]) {
        all::<Self>(source, target);
    }

    /// Converts all numbers of the source, which has as many as the target.
    ///
    /// # Safety
    /// The CPU has AVX-512F and BW.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn avx512(source: &[Self::Source], target: &mut [Self::Target]) {
        all::<Self>(source, target);
    }
}

/// Converts all numbers of the source, which has as many as the target.
pub(super) fn elementwise<E: Elementwise>(
    instructions: Instructions,
    source: &[E::Source],
    target: &mut [E::Target],
) {
    match instructions.level() {
        Level::Portable => all::<E>(source, target),
        // SAFETY: a value of `Instructions` proves that the CPU has them.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        Level::Avx2 => unsafe { E::avx2(source, target) },
        // SAFETY: as above.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        Level::Avx512 => unsafe { E::avx512(source, target) },
    }
}

// Inlined, so that it is compiled for the instructions of its caller.
#[inline(always)]
fn all<E: Elementwise>(source: &[E::Source], target: &mut [E::Target]) {
    for (source, target) in source.iter().zip(target) {
        *target = E::one(*source);
    }
}

pub(super) struct F16ToF32;

impl Elementwise for F16ToF32 {
    type Source = u16;
    type Target = f32;

    #[inline(always)]
    fn one(half: u16) -> f32 {
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

    // The CPU has instructions for this conversion.

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn avx2(source: &[u16], target: &mut [f32]) {
        let (source, tail) = source.as_chunks();
        let (target, target_tail) = target.as_chunks_mut();
        for (eight, target) in source.iter().zip(target) {
            avx2::widen_f16(eight, target);
        }
        all::<Self>(tail, target_tail);
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn avx512(source: &[u16], target: &mut [f32]) {
        let (source, tail) = source.as_chunks();
        let (target, target_tail) = target.as_chunks_mut();
        for (sixteen, target) in source.iter().zip(target) {
            avx512::widen_f16(sixteen, target);
        }
        all::<Self>(tail, target_tail);
    }
}

pub(super) struct Bf16ToF32;

impl Elementwise for Bf16ToF32 {
    type Source = u16;
    type Target = f32;

    #[inline(always)]
    fn one(half: u16) -> f32 {
        let bits = u32::from(half) << 16;
        let is_nan = bits & 0x7fff_ffff > 0x7f80_0000;
        f32::from_bits(if is_nan { bits | 0x0040_0000 } else { bits })
    }
}

pub(super) struct F32ToF64;

impl Elementwise for F32ToF64 {
    type Source = f32;
    type Target = f64;

    #[inline(always)]
    fn one(number: f32) -> f64 {
        // Otherwise the bits of a NaN depend on the machine.
        let bits = u64::from(number.to_bits());
        let quiet = (bits & 0x8000_0000) << 32 | 0x7ff8 << 48 | (bits & 0x003f_ffff) << 29;
        let wide = f64::from(number).to_bits();
        f64::from_bits(if number.is_nan() { quiet } else { wide })
    }
}

pub(super) struct F64ToF32;

impl Elementwise for F64ToF32 {
    type Source = f64;
    type Target = f32;

    #[inline(always)]
    fn one(number: f64) -> f32 {
        let bits = number.to_bits();
        let quiet =
            (bits >> 32) as u32 & 0x8000_0000 | 0x7fc0_0000 | (bits >> 29) as u32 & 0x003f_ffff;
        let rounded = (number as f32).to_bits();
        f32::from_bits(if number.is_nan() { quiet } else { rounded })
    }
}

/// To an `f32` that will be rounded again to 16 bits ("round to odd"): rounds towards zero and sets
/// the lowest bit if that was inexact. So the second rounding neither gains nor loses a tie.
pub(super) struct F64ToOddF32;

impl Elementwise for F64ToOddF32 {
    type Source = f64;
    type Target = f32;

    #[inline(always)]
    fn one(number: f64) -> f32 {
        let rounded = F64ToF32::one(number);
        let back = f64::from(rounded);
        // False for NaNs, which stay unchanged.
        let away = u32::from(back.abs() > number.abs());
        let inexact = u32::from(back < number) | u32::from(back > number);
        f32::from_bits((rounded.to_bits() - away) | inexact)
    }
}
