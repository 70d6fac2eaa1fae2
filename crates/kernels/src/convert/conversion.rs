//! Conversions block by block: whole blocks with vectors, the rest with the reference.

#[cfg(all(target_arch = "x86_64", not(miri)))]
use std::arch::x86_64::{__m256i, __m512i, _mm_sfence};

#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::block::{Block, Line};
use super::portable;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::{avx2, avx512};
use crate::Instructions;
use crate::instructions::Level;

/// A conversion of numbers. `N` results are a block of 64 bytes.
pub(super) trait Conversion<const N: usize> {
    type Source: bytemuck::Pod;
    type Target: bytemuck::Pod;

    /// The reference, for any length.
    fn portable(&self, source: &[Self::Source], target: &mut [Self::Target]);

    /// Converts a block.
    ///
    /// # Safety
    /// The CPU has AVX2 and F16C.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe fn avx2(&self, block: &[Self::Source; N]) -> [__m256i; 2];

    /// Converts a block.
    ///
    /// # Safety
    /// The CPU has AVX-512F and BW.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe fn avx512(&self, block: &[Self::Source; N]) -> __m512i;
}

/// `f32` to the bits of bf16.
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

/// `f32` to the bits of f16.
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

/// `u8` to `x * scale + offset`.
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

/// How results are written.
#[derive(Clone, Copy)]
pub(super) enum Stores {
    Cached,
    /// Bypass the caches if the CPU has such stores.
    Streaming,
}

/// Converts the source.
///
/// # Panics
/// If the lengths differ.
#[track_caller]
pub(super) fn convert<C: Conversion<N>, const N: usize>(
    instructions: Instructions,
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
    match (instructions.level(), stores) {
        (Level::Portable, _) => conversion.portable(source, target),
        // SAFETY: a value of `Instructions` proves that the CPU has them.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        (Level::Avx2, Stores::Cached) => unsafe {
            let vectors = avx2::convert_blocks::<C, [C::Target; N], N>;
            by_blocks(conversion, source, target, vectors);
        },
        // SAFETY: as above.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        (Level::Avx2, Stores::Streaming) => unsafe {
            let vectors = avx2::convert_blocks::<C, Line<C::Target, N>, N>;
            by_blocks(conversion, source, target, vectors);
        },
        // SAFETY: as above.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        (Level::Avx512, Stores::Cached) => unsafe {
            let vectors = avx512::convert_blocks::<C, [C::Target; N], N>;
            by_blocks(conversion, source, target, vectors);
        },
        // SAFETY: as above.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        (Level::Avx512, Stores::Streaming) => unsafe {
            let vectors = avx512::convert_blocks::<C, Line<C::Target, N>, N>;
            by_blocks(conversion, source, target, vectors);
        },
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
type ConvertBlocks<C, S, B, const N: usize> = unsafe fn(&C, &[[S; N]], &mut [B]);

/// Converts whole blocks of the target with `vectors`, and the ends with the reference.
///
/// # Safety
/// `vectors` may be called on this CPU, and needs nothing else but an `sfence` if `B` streams.
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
    // SAFETY: the caller guarantees the CPU, and the fence precedes any access to the target.
    unsafe {
        vectors(conversion, source.as_chunks().0, blocks);
        if B::STREAMS && !blocks.is_empty() {
            _mm_sfence();
        }
    }
    conversion.portable(source_tail, tail);
}
