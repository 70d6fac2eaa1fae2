//! What all conversions have in common: whole blocks by vectors, the rest by the reference.

#[cfg(all(target_arch = "x86_64", not(miri)))]
use std::arch::x86_64::{__m256i, __m512i, _mm_sfence};

#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::block::{Block, Line};
#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::{avx2, avx512};
use crate::Instructions;
use crate::instructions::Level;

/// One kind of number from another. `N` results are a block of 64 bytes.
pub(super) trait Conversion<const N: usize> {
    type Source: bytemuck::Pod;
    type Target: bytemuck::Pod;

    /// The reference, for any length.
    fn portable(&self, source: &[Self::Source], target: &mut [Self::Target]);

    /// One block.
    ///
    /// # Safety
    /// The CPU has AVX2 and F16C.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe fn avx2(&self, block: &[Self::Source; N]) -> [__m256i; 2];

    /// One block.
    ///
    /// # Safety
    /// The CPU has AVX-512F and BW.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe fn avx512(&self, block: &[Self::Source; N]) -> __m512i;
}

/// How results are written.
#[derive(Clone, Copy)]
pub(super) enum Stores {
    Cached,
    /// Past the caches, where the CPU has stores for that.
    Streaming,
}

/// Converts all of the source.
///
/// # Panics
/// When the lengths differ.
#[track_caller]
pub(super) fn convert<C: Conversion<N>, const N: usize>(
    by: Instructions,
    conversion: &C,
    source: &[C::Source],
    target: &mut [C::Target],
    stores: Stores,
) {
    assert_eq!(
        source.len(),
        target.len(),
        "source and target differ in length"
    );
    match (by.level(), stores) {
        (Level::Portable, _) => conversion.portable(source, target),
        // SAFETY: a value of `Instructions` exists only where the CPU has them.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        (Level::Avx2, Stores::Cached) => unsafe {
            let vectors = avx2::convert_blocks::<C, [C::Target; N], N>;
            by_blocks(conversion, source, target, vectors);
        },
        // SAFETY: likewise.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        (Level::Avx2, Stores::Streaming) => unsafe {
            let vectors = avx2::convert_blocks::<C, Line<C::Target, N>, N>;
            by_blocks(conversion, source, target, vectors);
        },
        // SAFETY: likewise.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        (Level::Avx512, Stores::Cached) => unsafe {
            let vectors = avx512::convert_blocks::<C, [C::Target; N], N>;
            by_blocks(conversion, source, target, vectors);
        },
        // SAFETY: likewise.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        (Level::Avx512, Stores::Streaming) => unsafe {
            let vectors = avx512::convert_blocks::<C, Line<C::Target, N>, N>;
            by_blocks(conversion, source, target, vectors);
        },
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
type ConvertBlocks<C, S, B, const N: usize> = unsafe fn(&C, &[[S; N]], &mut [B]);

/// Whole blocks of the target by `vectors`, what is before and behind them by the reference.
///
/// # Safety
/// `vectors` may be called on this CPU, and needs nothing else but an `sfence` where `B` streams.
#[cfg(all(target_arch = "x86_64", not(miri)))]
unsafe fn by_blocks<C: Conversion<N>, B: Block<C::Target>, const N: usize>(
    conversion: &C,
    source: &[C::Source],
    target: &mut [C::Target],
    vectors: ConvertBlocks<C, C::Source, B, N>,
) {
    let (head, blocks, tail) = B::cut(target);
    let (source_head, source) = source.split_at(head.len());
    let (source, source_tail) = source.split_at(blocks.len() * N);
    conversion.portable(source_head, head);
    // SAFETY: the caller vouches for the CPU; nobody can look at the target before the fence.
    unsafe {
        vectors(conversion, source.as_chunks().0, blocks);
        if B::STREAMS && !blocks.is_empty() {
            _mm_sfence();
        }
    }
    conversion.portable(source_tail, tail);
}
