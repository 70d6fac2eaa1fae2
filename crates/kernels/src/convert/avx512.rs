//! 512 bits at a time.
//!
//! The instruction that converts to bf16 (`vcvtneps2bf16`) is not used, since it flushes denormals
//! to zero.

use std::arch::x86_64::*;

use super::autovectorized::{all, f16_to_f32};
use super::blockwise::Conversion;
use super::cache_line_stores::{Block, for_each_block};

/// Converts every block of the source, which has as many as the target.
///
/// # Safety
/// If `B` streams, the target is not accessed before an `sfence` of this thread.
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) unsafe fn convert_blocks<C: Conversion<N>, B: Block<C::Target>, const N: usize>(
    conversion: &C,
    source: &[[C::Source; N]],
    target: &mut [B],
) {
    for_each_block(source, target, |block, target| {
        // SAFETY: this function has the features, and its caller guarantees the fence.
        unsafe { target.put_512(conversion.avx512(block)) }
    });
}

/// As `portable::f32_to_bf16`.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
pub(super) fn f32_to_bf16(block: &[f32; 32]) -> __m512i {
    let [low, high] = load(block);
    // The upper halves of all words, which are the odd ones of twice as many.
    let odd: [i16; 32] = std::array::from_fn(|half| 2 * half as i16 + 1);
    // SAFETY: 32 numbers of 16 bits, a whole vector; any alignment is allowed.
    let odd = unsafe { _mm512_loadu_epi16(odd.as_ptr()) };
    _mm512_permutex2var_epi16(bf16_bits(low), odd, bf16_bits(high))
}

/// The result in the upper half of each word.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn bf16_bits(values: __m512) -> __m512i {
    let bits = _mm512_castps_si512(values);
    let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
    let rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    let is_nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(values, values);
    _mm512_mask_or_epi32(rounded, is_nan, bits, _mm512_set1_epi32(0x0040_0000))
}

/// As `portable::f32_to_f16`.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
pub(super) fn f32_to_f16(block: &[f32; 32]) -> __m512i {
    let halves = load(block).map(|values| _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(values));
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(halves[0]), halves[1])
}

/// As `autovectorized::f16_to_f32`.
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn all_f16_to_f32(source: &[u16], target: &mut [f32]) {
    let (source, tail) = source.as_chunks::<16>();
    let (target, target_tail) = target.as_chunks_mut::<16>();
    for (halves, target) in source.iter().zip(target) {
        // SAFETY: 16 halves are a vector of 256 bits, 16 numbers one of 512; any alignment is allowed.
        unsafe {
            let halves = _mm256_loadu_si256(halves.as_ptr().cast());
            _mm512_storeu_ps(target.as_mut_ptr(), _mm512_cvtph_ps(halves));
        }
    }
    all(f16_to_f32, tail, target_tail);
}

/// As `portable::u8_to_f32`.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
pub(super) fn u8_to_f32(block: &[u8; 16], scale: f32, offset: f32) -> __m512i {
    // SAFETY: the block has 16 bytes, a whole vector of 128; any alignment is allowed.
    let bytes = unsafe { _mm_loadu_si128(block.as_ptr().cast()) };
    let numbers = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
    // Two roundings: this must not become a fused operation.
    let products = _mm512_mul_ps(numbers, _mm512_set1_ps(scale));
    _mm512_castps_si512(_mm512_add_ps(products, _mm512_set1_ps(offset)))
}

/// Loads a block.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn load(block: &[f32; 32]) -> [__m512; 2] {
    // SAFETY: the block has 32 numbers: two vectors of 16; any alignment is allowed.
    [0, 16].map(|first| unsafe { _mm512_loadu_ps(block.as_ptr().add(first)) })
}
