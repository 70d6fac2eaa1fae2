//! 256 bits at a time.

use std::arch::x86_64::*;

use super::autovectorized::{all, f16_to_f32};
use super::blockwise::Conversion;
use super::cache_line_stores::{Block, for_each_block};

/// Converts every block of the source, which has as many as the target.
///
/// # Safety
/// If `B` streams, the target is not accessed before an `sfence` of this thread.
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn convert_blocks<C: Conversion<N>, B: Block<C::Target>, const N: usize>(
    conversion: &C,
    source: &[[C::Source; N]],
    target: &mut [B],
) {
    for_each_block(source, target, |block, target| {
        // SAFETY: this function has the features, and its caller guarantees the fence.
        unsafe { target.put_256(conversion.avx2(block)) }
    });
}

/// As `portable::f32_to_bf16`.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn f32_to_bf16(block: &[f32; 32]) -> [__m256i; 2] {
    let [a, b, c, d] = load(block);
    [
        pack(bf16_bits(a), bf16_bits(b)),
        pack(bf16_bits(c), bf16_bits(d)),
    ]
}

/// The lower half of each word, where the upper half is zero.
#[target_feature(enable = "avx2")]
#[inline]
fn pack(low: __m256i, high: __m256i) -> __m256i {
    // Packing works within each half of a vector: the quarters come out as 0, 2, 1, 3.
    _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(low, high))
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
#[inline]
pub(super) fn f32_to_f16(block: &[f32; 32]) -> [__m256i; 2] {
    let [a, b, c, d] = load(block);
    [
        _mm256_set_m128i(f16_bits(b), f16_bits(a)),
        _mm256_set_m128i(f16_bits(d), f16_bits(c)),
    ]
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
fn f16_bits(values: __m256) -> __m128i {
    _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(values)
}

/// As `autovectorized::f16_to_f32`.
#[target_feature(enable = "avx2,f16c")]
pub(super) fn all_f16_to_f32(source: &[u16], target: &mut [f32]) {
    let (source, tail) = source.as_chunks::<8>();
    let (target, target_tail) = target.as_chunks_mut::<8>();
    for (halves, target) in source.iter().zip(target) {
        // SAFETY: 8 halves are a vector of 128 bits, 8 numbers one of 256; any alignment is allowed.
        unsafe {
            let halves = _mm_loadu_si128(halves.as_ptr().cast());
            _mm256_storeu_ps(target.as_mut_ptr(), _mm256_cvtph_ps(halves));
        }
    }
    all(f16_to_f32, tail, target_tail);
}

/// As `portable::u8_to_f32`.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn u8_to_f32(block: &[u8; 16], scale: f32, offset: f32) -> [__m256i; 2] {
    // SAFETY: the block has 16 bytes, a whole vector; any alignment is allowed.
    let bytes = unsafe { _mm_loadu_si128(block.as_ptr().cast()) };
    [bytes, _mm_srli_si128::<8>(bytes)].map(|half| {
        let numbers = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(half));
        // Two roundings: this must not become a fused operation.
        let products = _mm256_mul_ps(numbers, _mm256_set1_ps(scale));
        _mm256_castps_si256(_mm256_add_ps(products, _mm256_set1_ps(offset)))
    })
}

/// Loads a block.
#[target_feature(enable = "avx2")]
#[inline]
fn load(block: &[f32; 32]) -> [__m256; 4] {
    // SAFETY: the block has 32 numbers: four vectors of 8; any alignment is allowed.
    [0, 8, 16, 24].map(|first| unsafe { _mm256_loadu_ps(block.as_ptr().add(first)) })
}
