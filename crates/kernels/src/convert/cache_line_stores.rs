//! Blocks of 64 bytes of results, written to the caches or around them.

use std::arch::x86_64::*;

use bytemuck::Pod;

use crate::vector_instructions::LINE_BYTES;

/// Room for 64 bytes of results, and how they are written.
pub(super) trait Block<T>: Sized {
    /// Whether the stores need an `sfence` of this thread.
    const STREAMS: bool;

    /// Splits the target into whole blocks and what is before and after them.
    fn cut(target: &mut [T]) -> (&mut [T], &mut [Self], &mut [T]);

    /// Writes the block.
    ///
    /// # Safety
    /// The CPU has AVX2. If [`STREAMS`](Self::STREAMS), the block is not accessed before an `sfence`
    /// of this thread.
    unsafe fn put_256(&mut self, halves: [__m256i; 2]);

    /// Writes the block.
    ///
    /// # Safety
    /// The CPU has AVX-512F; otherwise as for [`put_256`](Self::put_256).
    unsafe fn put_512(&mut self, whole: __m512i);
}

/// Written to the caches, at any alignment.
impl<T: Pod, const N: usize> Block<T> for [T; N] {
    const STREAMS: bool = false;

    fn cut(target: &mut [T]) -> (&mut [T], &mut [Self], &mut [T]) {
        const { assert!(size_of::<Self>() == LINE_BYTES) };
        let (blocks, tail) = target.as_chunks_mut();
        (&mut [], blocks, tail)
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn put_256(&mut self, [low, high]: [__m256i; 2]) {
        let at = self.as_mut_ptr().cast::<__m256i>();
        // SAFETY: 64 bytes, which is two vectors; any bits are a valid `T`.
        unsafe {
            _mm256_storeu_si256(at, low);
            _mm256_storeu_si256(at.add(1), high);
        }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn put_512(&mut self, whole: __m512i) {
        // SAFETY: 64 bytes, which is one vector; any bits are a valid `T`.
        unsafe { _mm512_storeu_si512(self.as_mut_ptr().cast(), whole) }
    }
}

/// A whole line of the target, written around the caches. The type proves its alignment.
#[repr(C, align(64))]
pub(super) struct Line<T, const N: usize>([T; N]);

impl<T: Pod, const N: usize> Block<T> for Line<T, N> {
    const STREAMS: bool = true;

    fn cut(target: &mut [T]) -> (&mut [T], &mut [Self], &mut [T]) {
        const { assert!(size_of::<Self>() == LINE_BYTES && size_of::<[T; N]>() == LINE_BYTES) };
        // SAFETY: a line is `N` times `T` without padding.
        unsafe { target.align_to_mut() }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn put_256(&mut self, [low, high]: [__m256i; 2]) {
        let at = self.0.as_mut_ptr().cast::<__m256i>();
        // SAFETY: 64 bytes, which is two vectors, aligned; any bits are a valid `T`. The caller
        // guarantees the fence.
        unsafe {
            _mm256_stream_si256(at, low);
            _mm256_stream_si256(at.add(1), high);
        }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn put_512(&mut self, whole: __m512i) {
        // SAFETY: 64 bytes, which is one vector, aligned; any bits are a valid `T`. The caller
        // guarantees the fence.
        unsafe { _mm512_stream_si512(self.0.as_mut_ptr().cast(), whole) }
    }
}

/// Blocks converted together, so that many loads are in flight. The CPU prefetches by itself:
/// `prefetchnta` halved the rate on Sapphire Rapids.
const STEP_BLOCKS: usize = 4;

/// Calls `convert` with every block and its place in the target.
// Inlined, so that it is compiled for the instructions of its caller.
#[inline(always)]
pub(super) fn for_each_block<S, B>(source: &[S], target: &mut [B], convert: impl Fn(&S, &mut B)) {
    let (steps, rest) = source.as_chunks::<STEP_BLOCKS>();
    let (target_steps, target_rest) = target.as_chunks_mut::<STEP_BLOCKS>();
    for (step, targets) in steps.iter().zip(target_steps) {
        for (block, target) in step.iter().zip(targets) {
            convert(block, target);
        }
    }
    for (block, target) in rest.iter().zip(target_rest) {
        convert(block, target);
    }
}
