//! 256 bits at a time. What is left at the end is done by the reference.

use std::arch::x86_64::*;

use super::portable;
use crate::instructions::prefetch;

/// As `portable::f32_to_bf16`.
#[target_feature(enable = "avx2")]
pub(super) fn f32_to_bf16(source: &[f32], target: &mut [u16]) {
    let (blocks, rest) = source.as_chunks::<16>();
    let (targets, target_rest) = target.as_chunks_mut::<16>();
    for (block, target) in blocks.iter().zip(targets) {
        prefetch(block);
        // SAFETY: the block has 16 numbers: two vectors of 8; any alignment is allowed.
        let (low, high) = unsafe {
            (
                _mm256_loadu_ps(block.as_ptr()),
                _mm256_loadu_ps(block.as_ptr().add(8)),
            )
        };
        // Packing works within each half of a vector: the quarters come out as 0, 2, 1, 3.
        let packed = _mm256_packus_epi32(bf16_bits(low), bf16_bits(high));
        let ordered = _mm256_permute4x64_epi64::<0b11_01_10_00>(packed);
        // SAFETY: the target has 16 numbers of 16 bits, a whole vector; any alignment is allowed.
        unsafe { _mm256_storeu_si256(target.as_mut_ptr().cast(), ordered) };
    }
    portable::f32_to_bf16(rest, target_rest);
}

/// The result in the lower half of each word, the upper half zero.
#[target_feature(enable = "avx2")]
#[inline]
fn bf16_bits(values: __m256) -> __m256i {
    let bits = _mm256_castps_si256(values);
    let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
    let rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    let quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x0040_0000));
    let is_nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(values, values));
    _mm256_srli_epi32::<16>(_mm256_blendv_epi8(rounded, quiet, is_nan))
}

/// As `portable::f32_to_f16`.
#[target_feature(enable = "avx2,f16c")]
pub(super) fn f32_to_f16(source: &[f32], target: &mut [u16]) {
    let (blocks, rest) = source.as_chunks::<16>();
    let (targets, target_rest) = target.as_chunks_mut::<16>();
    for (block, target) in blocks.iter().zip(targets) {
        prefetch(block);
        // SAFETY: the block has 16 numbers: two vectors of 8; any alignment is allowed.
        let (low, high) = unsafe {
            (
                _mm256_loadu_ps(block.as_ptr()),
                _mm256_loadu_ps(block.as_ptr().add(8)),
            )
        };
        let low = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(low);
        let high = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(high);
        // SAFETY: the target has 16 numbers of 16 bits: two vectors of 8; any alignment is allowed.
        unsafe {
            _mm_storeu_si128(target.as_mut_ptr().cast(), low);
            _mm_storeu_si128(target.as_mut_ptr().add(8).cast(), high);
        }
    }
    portable::f32_to_f16(rest, target_rest);
}

/// As `portable::u8_to_f32`.
#[target_feature(enable = "avx2")]
pub(super) fn u8_to_f32(source: &[u8], scale: f32, offset: f32, target: &mut [f32]) {
    let (blocks, rest) = source.as_chunks::<16>();
    let (targets, target_rest) = target.as_chunks_mut::<16>();
    let (scales, offsets) = (_mm256_set1_ps(scale), _mm256_set1_ps(offset));
    for (block, target) in blocks.iter().zip(targets) {
        prefetch(block);
        // SAFETY: the block has 16 bytes, a whole vector; any alignment is allowed.
        let bytes = unsafe { _mm_loadu_si128(block.as_ptr().cast()) };
        let halves = [bytes, _mm_srli_si128::<8>(bytes)];
        let (targets, _) = target.as_chunks_mut::<8>();
        for (half, target) in halves.into_iter().zip(targets) {
            let numbers = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(half));
            // Two roundings: this must not become a fused operation.
            let result = _mm256_add_ps(_mm256_mul_ps(numbers, scales), offsets);
            // SAFETY: the target has 8 numbers, a whole vector; any alignment is allowed.
            unsafe { _mm256_storeu_ps(target.as_mut_ptr(), result) };
        }
    }
    portable::u8_to_f32(rest, scale, offset, target_rest);
}
