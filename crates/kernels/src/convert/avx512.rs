//! 512 bits at a time. What is left at the end is done by the reference.
//!
//! The instruction that converts to bf16 by itself (`vcvtneps2bf16`) is not used: it takes
//! denormals for zero.

use std::arch::x86_64::*;

use super::portable;
use crate::instructions::prefetch;

/// As `portable::f32_to_bf16`.
#[target_feature(enable = "avx512f")]
pub(super) fn f32_to_bf16(source: &[f32], target: &mut [u16]) {
    let (blocks, rest) = source.as_chunks::<16>();
    let (targets, target_rest) = target.as_chunks_mut::<16>();
    for (block, target) in blocks.iter().zip(targets) {
        prefetch(block);
        // SAFETY: the block has 16 numbers, a whole vector; any alignment is allowed.
        let values = unsafe { _mm512_loadu_ps(block.as_ptr()) };
        let halves = _mm512_cvtepi32_epi16(bf16_bits(values));
        // SAFETY: the target has 16 numbers of 16 bits, a whole vector of 256; any alignment is
        // allowed.
        unsafe { _mm256_storeu_si256(target.as_mut_ptr().cast(), halves) };
    }
    portable::f32_to_bf16(rest, target_rest);
}

/// The result in the lower half of each word.
#[target_feature(enable = "avx512f")]
#[inline]
fn bf16_bits(values: __m512) -> __m512i {
    let bits = _mm512_castps_si512(values);
    let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
    let rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    let magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fff_ffff));
    let is_nan = _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7f80_0000));
    let quiet = _mm512_set1_epi32(0x0040_0000);
    _mm512_srli_epi32::<16>(_mm512_mask_or_epi32(rounded, is_nan, bits, quiet))
}

/// As `portable::f32_to_f16`.
#[target_feature(enable = "avx512f")]
pub(super) fn f32_to_f16(source: &[f32], target: &mut [u16]) {
    let (blocks, rest) = source.as_chunks::<16>();
    let (targets, target_rest) = target.as_chunks_mut::<16>();
    for (block, target) in blocks.iter().zip(targets) {
        prefetch(block);
        // SAFETY: the block has 16 numbers, a whole vector; any alignment is allowed.
        let values = unsafe { _mm512_loadu_ps(block.as_ptr()) };
        let halves = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(values);
        // SAFETY: the target has 16 numbers of 16 bits, a whole vector of 256; any alignment is
        // allowed.
        unsafe { _mm256_storeu_si256(target.as_mut_ptr().cast(), halves) };
    }
    portable::f32_to_f16(rest, target_rest);
}

/// As `portable::u8_to_f32`.
#[target_feature(enable = "avx512f")]
pub(super) fn u8_to_f32(source: &[u8], scale: f32, offset: f32, target: &mut [f32]) {
    let (blocks, rest) = source.as_chunks::<16>();
    let (targets, target_rest) = target.as_chunks_mut::<16>();
    let (scales, offsets) = (_mm512_set1_ps(scale), _mm512_set1_ps(offset));
    for (block, target) in blocks.iter().zip(targets) {
        prefetch(block);
        // SAFETY: the block has 16 bytes, a whole vector of 128; any alignment is allowed.
        let bytes = unsafe { _mm_loadu_si128(block.as_ptr().cast()) };
        let numbers = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
        // Two roundings: this must not become a fused operation.
        let result = _mm512_add_ps(_mm512_mul_ps(numbers, scales), offsets);
        // SAFETY: the target has 16 numbers, a whole vector; any alignment is allowed.
        unsafe { _mm512_storeu_ps(target.as_mut_ptr(), result) };
    }
    portable::u8_to_f32(rest, scale, offset, target_rest);
}
