//! Where results go, 64 bytes at a time: through the caches, or past them.

use std::arch::x86_64::*;

use bytemuck::Pod;

use crate::LINE_BYTES;

/// Room for 64 bytes of results, and the way in which they are written there.
pub(super) trait Block<T>: Sized {
    /// Whether they are on their way until an `sfence` of this thread.
    const STREAMS: bool;

    /// As many whole blocks as there are, and what is before and behind them.
    fn cut(target: &mut [T]) -> (&mut [T], &mut [Self], &mut [T]);

    /// Write the block.
    ///
    /// # Safety
    /// The CPU has AVX2. Where [`STREAMS`](Self::STREAMS), nobody accesses the block before an
    /// `sfence` of this thread.
    unsafe fn put_256(&mut self, halves: [__m256i; 2]);

    /// Write the block.
    ///
    /// # Safety
    /// The CPU has AVX-512F. Otherwise as for [`put_256`](Self::put_256).
    unsafe fn put_512(&mut self, whole: __m512i);
}

/// Through the caches, at any alignment.
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

/// A whole line of the target, written past the caches. Its type is the proof of its alignment.
#[repr(C, align(64))]
pub(super) struct Line<T, const N: usize>([T; N]);

impl<T: Pod, const N: usize> Block<T> for Line<T, N> {
    const STREAMS: bool = true;

    fn cut(target: &mut [T]) -> (&mut [T], &mut [Self], &mut [T]) {
        const { assert!(size_of::<Self>() == LINE_BYTES && size_of::<[T; N]>() == LINE_BYTES) };
        // SAFETY: a line is nothing but `N` times `T`, without padding.
        unsafe { target.align_to_mut() }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn put_256(&mut self, [low, high]: [__m256i; 2]) {
        let at = self.0.as_mut_ptr().cast::<__m256i>();
        // SAFETY: 64 bytes, which is two vectors, aligned; any bits are a valid `T`. The caller
        // vouches for the fence.
        unsafe {
            _mm256_stream_si256(at, low);
            _mm256_stream_si256(at.add(1), high);
        }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn put_512(&mut self, whole: __m512i) {
        // SAFETY: 64 bytes, which is one vector, aligned; any bits are a valid `T`. The caller
        // vouches for the fence.
        unsafe { _mm512_stream_si512(self.0.as_mut_ptr().cast(), whole) }
    }
}

/// Blocks done together, so that many loads are on their way at once. The rest is left to the CPU's
/// own prefetching: asking for lines ahead (`prefetchnta`) halved the rate on Sapphire Rapids.
const STEP_BLOCKS: usize = 4;

/// Calls `convert` with every block and its place in the target.
// Inlined, so that it is compiled with the instructions of its caller.
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
