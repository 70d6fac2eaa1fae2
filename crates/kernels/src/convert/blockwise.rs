//! Conversions block by block: whole blocks with vectors, the rest with the reference.

#[cfg(all(target_arch = "x86_64", not(miri)))]
use std::arch::x86_64::{__m256i, __m512i, _mm_sfence};

use bytemuck::Pod;

#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::cache_line_stores::{Block, Line};
use super::portable;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::{avx2, avx512};
use crate::Instructions;
use crate::vector_instructions::Level;

/// A conversion of numbers. `N` results are a block of 64 bytes.
pub(super) trait Conversion<const N: usize> {
    type Source: Pod;
    type Target: Pod;

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

/// `f32` to the bits of f16.
pub(super) struct ToF16;

/// `u8` to `x * scale + offset`.
pub(super) struct Scaled {
    pub(super) scale: f32,
    pub(super) offset: f32,
}

/// Implements a conversion by the functions of a name, which take the fields as well.
macro_rules! conversion {
    ($type:ident { $($field:ident),* }: [$source:ty; $n:literal] -> $target:ty, $name:ident) => {
        impl Conversion<$n> for $type {
            type Source = $source;
            type Target = $target;

            fn portable(&self, source: &[$source], target: &mut [$target]) {
                portable::$name(source, $(self.$field,)* target);
            }

            #[cfg(all(target_arch = "x86_64", not(miri)))]
            #[target_feature(enable = "avx2,f16c")]
            #[inline]
            unsafe fn avx2(&self, block: &[$source; $n]) -> [__m256i; 2] {
                avx2::$name(block, $(self.$field),*)
            }

            #[cfg(all(target_arch = "x86_64", not(miri)))]
            #[target_feature(enable = "avx512f,avx512bw")]
            #[inline]
            unsafe fn avx512(&self, block: &[$source; $n]) -> __m512i {
                avx512::$name(block, $(self.$field),*)
            }
        }
    };
}

conversion!(ToBf16 {}: [f32; 32] -> u16, f32_to_bf16);
conversion!(ToF16 {}: [f32; 32] -> u16, f32_to_f16);
conversion!(Scaled { scale, offset }: [u8; 16] -> f32, u8_to_f32);

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
    let (from, to) = (source.len(), target.len());
    assert_eq!(from, to, "source and target differ in length");
    match (instructions.level(), stores) {
        (Level::Portable, _) => conversion.portable(source, target),
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        (_, Stores::Cached) => {
            by_blocks::<C, [C::Target; N], N>(instructions, conversion, source, target);
        }
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        (_, Stores::Streaming) => {
            by_blocks::<C, Line<C::Target, N>, N>(instructions, conversion, source, target);
        }
    }
}

/// Converts whole blocks of the target with vectors, and the ends with the reference.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn by_blocks<C: Conversion<N>, B: Block<C::Target>, const N: usize>(
    instructions: Instructions,
    conversion: &C,
    source: &[C::Source],
    target: &mut [C::Target],
) {
    let (head, blocks, tail) = B::cut(target);
    let (source_head, source) = source.split_at(head.len());
    let (source, source_tail) = source.split_at(blocks.len() * N);
    let source = source.as_chunks().0;
    conversion.portable(source_head, head);
    // SAFETY: a value of `Instructions` proves that the CPU has them, and the fence precedes any
    // access to the target.
    unsafe {
        match instructions.level() {
            Level::Portable => unreachable!("has no vectors"),
            Level::Avx2 => avx2::convert_blocks(conversion, source, blocks),
            Level::Avx512 => avx512::convert_blocks(conversion, source, blocks),
        }
        if B::STREAMS && !blocks.is_empty() {
            _mm_sfence();
        }
    }
    conversion.portable(source_tail, tail);
}
