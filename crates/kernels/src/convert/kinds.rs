//! The conversions that there are, each with every set of instructions.

#[cfg(all(target_arch = "x86_64", not(miri)))]
use std::arch::x86_64::{__m256i, __m512i};

use super::conversion::Conversion;
use super::portable;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::{avx2, avx512};

pub(super) struct ToBf16;

impl Conversion<32> for ToBf16 {
    type Source = f32;
    type Target = u16;

    fn portable(&self, source: &[f32], target: &mut [u16]) {
        portable::f32_to_bf16(source, target);
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2,f16c")]
    #[inline]
    unsafe fn avx2(&self, block: &[f32; 32]) -> [__m256i; 2] {
        avx2::bf16(block)
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    unsafe fn avx512(&self, block: &[f32; 32]) -> __m512i {
        avx512::bf16(block)
    }
}

pub(super) struct ToF16;

impl Conversion<32> for ToF16 {
    type Source = f32;
    type Target = u16;

    fn portable(&self, source: &[f32], target: &mut [u16]) {
        portable::f32_to_f16(source, target);
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2,f16c")]
    #[inline]
    unsafe fn avx2(&self, block: &[f32; 32]) -> [__m256i; 2] {
        avx2::f16(block)
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    unsafe fn avx512(&self, block: &[f32; 32]) -> __m512i {
        avx512::f16(block)
    }
}

/// `x * scale + offset`.
pub(super) struct Scaled {
    pub(super) scale: f32,
    pub(super) offset: f32,
}

impl Conversion<16> for Scaled {
    type Source = u8;
    type Target = f32;

    fn portable(&self, source: &[u8], target: &mut [f32]) {
        portable::u8_to_f32(source, self.scale, self.offset, target);
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2,f16c")]
    #[inline]
    unsafe fn avx2(&self, block: &[u8; 16]) -> [__m256i; 2] {
        avx2::scaled(block, self.scale, self.offset)
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    unsafe fn avx512(&self, block: &[u8; 16]) -> __m512i {
        avx512::scaled(block, self.scale, self.offset)
    }
}
