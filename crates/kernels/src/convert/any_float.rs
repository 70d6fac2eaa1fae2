//! Conversion between any two kinds of floating-point numbers, as bytes.
//!
//! Kinds without a direct conversion go through `f32`. Nothing is rounded twice: 16 bits fit an
//! `f32` exactly, and an `f64` is converted such that the second rounding gives the result of a
//! single one.

use FloatKind::{Bf16, F16, F32, F64};
use bytemuck::{Pod, cast_slice, cast_slice_mut, try_cast_slice, try_cast_slice_mut};

use super::autovectorized::{
    all_f16_to_f32, bf16_to_f32, elementwise, f32_to_f64, f64_to_f32, f64_to_odd_f32,
};
use super::blockwise::{Stores, ToBf16, ToF16, convert};
use crate::Instructions;

/// A kind of floating-point number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FloatKind {
    /// 16 bits with 5 bits of exponent.
    F16,
    /// 16 bits with 8 bits of exponent: the upper half of an `f32`.
    Bf16,
    /// 32 bits.
    F32,
    /// 64 bits.
    F64,
}

impl FloatKind {
    /// Size of a number.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

/// Converts numbers to another kind. Both are little-endian bytes at any address.
///
/// Rounds once, to nearest, ties to even. Numbers that are too large become infinity, denormals are
/// kept, and a NaN becomes quiet but keeps its sign and the top of its payload. Numbers of the same
/// kind are copied unchanged.
///
/// ```
/// use pinlane_kernels::convert::{FloatKind, floats};
///
/// let source = [1.5_f64, -0.25].map(f64::to_le_bytes);
/// let mut target = [0; 4];
/// floats(FloatKind::F64, FloatKind::Bf16, source.as_flattened(), &mut target);
/// assert_eq!(target, [0xc0, 0x3f, 0x80, 0xbe]);
/// ```
///
/// # Panics
/// If a length is not a multiple of the number's size, or the number of numbers differs.
#[track_caller]
pub fn floats(from: FloatKind, to: FloatKind, source: &[u8], target: &mut [u8]) {
    Instructions::best().floats(from, to, source, target);
}

/// [`floats`] that bypasses the caches. The bits, and their visibility to other threads and to
/// devices, are the same.
///
/// # Panics
/// As [`floats`].
#[track_caller]
pub fn floats_streaming(from: FloatKind, to: FloatKind, source: &[u8], target: &mut [u8]) {
    Instructions::best().floats_streaming(from, to, source, target);
}

impl Instructions {
    /// [`floats`] with these instructions.
    ///
    /// # Panics
    /// As [`floats`].
    #[track_caller]
    pub fn floats(self, from: FloatKind, to: FloatKind, source: &[u8], target: &mut [u8]) {
        check(from, to, source, target);
        FloatConverter::new(self, Stores::Cached).run(from, to, source, target);
    }

    /// [`floats_streaming`] with these instructions.
    ///
    /// # Panics
    /// As [`floats`].
    #[track_caller]
    pub fn floats_streaming(
        self,
        from: FloatKind,
        to: FloatKind,
        source: &[u8],
        target: &mut [u8],
    ) {
        check(from, to, source, target);
        FloatConverter::new(self, Stores::Streaming).run(from, to, source, target);
    }
}

#[track_caller]
fn check(from: FloatKind, to: FloatKind, source: &[u8], target: &[u8]) {
    for (what, kind, bytes) in [("source", from, source.len()), ("target", to, target.len())] {
        assert!(
            bytes.is_multiple_of(kind.bytes()),
            "the {what} has {bytes} bytes, not a multiple of {kind:?}"
        );
    }
    assert_eq!(
        source.len() / from.bytes(),
        target.len() / to.bytes(),
        "source and target differ in length"
    );
}

/// Numbers converted at a time: intermediate results stay in the nearest cache.
const BLOCK_ITEMS: usize = 1024;

/// Converts with these instructions, and writes the target in this way.
#[derive(Clone, Copy)]
struct FloatConverter {
    instructions: Instructions,
    stores: Stores,
}

impl FloatConverter {
    fn new(instructions: Instructions, stores: Stores) -> Self {
        Self {
            instructions,
            stores,
        }
    }

    /// Converts the source, which has as many numbers as the target.
    fn run(self, from: FloatKind, to: FloatKind, source: &[u8], target: &mut [u8]) {
        match (from, to) {
            (F16, F16) | (Bf16, Bf16) | (F32, F32) | (F64, F64) => self.copy(source, target),
            (F32, F16) => self.narrow(source, target, Self::to_f16),
            (F32, Bf16) => self.narrow(source, target, Self::to_bf16),
            (F16, F32) => self.by_blocks(source, target, Self::widen_f16),
            (Bf16, F32) => self.by_blocks(source, target, Self::widen_bf16),
            (F32, F64) => self.by_blocks(source, target, Self::to_f64),
            (F64, F32) => self.by_blocks(source, target, Self::narrow_f64),
            (F16, Bf16) => self.via_f32(source, target, Self::widen_f16, Self::to_bf16),
            (Bf16, F16) => self.via_f32(source, target, Self::widen_bf16, Self::to_f16),
            (F64, F16) => self.via_f32(source, target, Self::narrow_f64_to_odd, Self::to_f16),
            (F64, Bf16) => self.via_f32(source, target, Self::narrow_f64_to_odd, Self::to_bf16),
            (F16, F64) => self.via_f32(source, target, Self::widen_f16, Self::to_f64),
            (Bf16, F64) => self.via_f32(source, target, Self::widen_bf16, Self::to_f64),
        }
    }

    fn widen_f16(self, source: &[u16], target: &mut [f32]) {
        all_f16_to_f32(self.instructions, source, target);
    }

    fn widen_bf16(self, source: &[u16], target: &mut [f32]) {
        elementwise(self.instructions, bf16_to_f32, source, target);
    }

    fn to_f64(self, source: &[f32], target: &mut [f64]) {
        elementwise(self.instructions, f32_to_f64, source, target);
    }

    fn narrow_f64(self, source: &[f64], target: &mut [f32]) {
        elementwise(self.instructions, f64_to_f32, source, target);
    }

    fn narrow_f64_to_odd(self, source: &[f64], target: &mut [f32]) {
        elementwise(self.instructions, f64_to_odd_f32, source, target);
    }

    fn to_f16(self, source: &[f32], target: &mut [u16]) {
        convert(self.instructions, &ToF16, source, target, self.stores);
    }

    fn to_bf16(self, source: &[f32], target: &mut [u16]) {
        convert(self.instructions, &ToBf16, source, target, self.stores);
    }

    fn copy(self, source: &[u8], target: &mut [u8]) {
        match self.stores {
            Stores::Cached => target.copy_from_slice(source),
            Stores::Streaming => self.instructions.copy_streaming(source, target),
        }
    }

    /// One step that can write either way: in one go if both sides are aligned.
    fn narrow(self, source: &[u8], target: &mut [u8], step: fn(Self, &[f32], &mut [u16])) {
        if let (Ok(numbers), Ok(halves)) = (try_cast_slice(source), try_cast_slice_mut(target)) {
            step(self, numbers, halves);
        } else {
            self.by_blocks(source, target, step);
        }
    }

    /// Two steps, with `f32` in between.
    fn via_f32<S: Pod, T: Pod>(
        self,
        source: &[u8],
        target: &mut [u8],
        first: fn(Self, &[S], &mut [f32]),
        second: fn(Self, &[f32], &mut [T]),
    ) {
        let mut between = [0.0; BLOCK_ITEMS];
        self.by_blocks(source, target, |converter, numbers, results| {
            let between = &mut between[..numbers.len()];
            first(converter, numbers, between);
            second(converter, between, results);
        });
    }

    /// One step that writes to the caches, block by block. A block that is not aligned, or that
    /// bypasses the caches, goes through a buffer.
    fn by_blocks<S: Pod, T: Pod>(
        self,
        source: &[u8],
        target: &mut [u8],
        mut step: impl FnMut(Self, &[S], &mut [T]),
    ) {
        let mut source_block = [S::zeroed(); BLOCK_ITEMS];
        let mut target_block = [T::zeroed(); BLOCK_ITEMS];
        let cached = Self::new(self.instructions, Stores::Cached);
        let sources = source.chunks(BLOCK_ITEMS * size_of::<S>());
        let targets = target.chunks_mut(BLOCK_ITEMS * size_of::<T>());
        for (source, target) in sources.zip(targets) {
            let items = source.len() / size_of::<S>();
            let numbers = try_cast_slice(source).unwrap_or_else(|_| {
                cast_slice_mut(&mut source_block[..items]).copy_from_slice(source);
                &source_block[..items]
            });
            match (self.stores, try_cast_slice_mut(target)) {
                (Stores::Cached, Ok(results)) => step(cached, numbers, results),
                _ => {
                    let results = &mut target_block[..items];
                    step(cached, numbers, results);
                    self.copy(cast_slice(results), target);
                }
            }
        }
    }
}
