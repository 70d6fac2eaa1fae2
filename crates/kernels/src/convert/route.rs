//! The steps from one kind of floating-point numbers to another, wherever they lie.
//!
//! Kinds without a step of their own go through `f32`. Nothing is rounded twice: 16 bits fit an
//! `f32` exactly, and an `f64` comes there such that the second rounding does what a single one
//! would.

use bytemuck::{Pod, cast_slice, cast_slice_mut, try_cast_slice, try_cast_slice_mut};

use super::FloatKind::{self, Bf16, F16, F32, F64};
use super::conversion::{Stores, convert};
use super::each::{Bf16ToF32, Each, F16ToF32, F32ToF64, F64ToF32, F64ToOddF32, each};
use super::kinds::{ToBf16, ToF16};
use crate::Instructions;

/// Numbers that are done at a time: all that lies in between stays in the nearest cache.
const BLOCK_ITEMS: usize = 1024;

/// By which instructions, and how the target is written.
#[derive(Clone, Copy)]
pub(super) struct Route {
    by: Instructions,
    stores: Stores,
}

impl Route {
    pub(super) fn new(by: Instructions, stores: Stores) -> Self {
        Self { by, stores }
    }

    /// All of the source, which holds as many numbers as the target.
    pub(super) fn run(self, from: FloatKind, to: FloatKind, source: &[u8], target: &mut [u8]) {
        match (from, to) {
            (F16, F16) | (Bf16, Bf16) | (F32, F32) | (F64, F64) => self.copy(source, target),
            (F32, F16) => self.narrow(source, target, Self::to_f16),
            (F32, Bf16) => self.narrow(source, target, Self::to_bf16),
            (F16, F32) => self.by_blocks(source, target, Self::each::<F16ToF32>),
            (Bf16, F32) => self.by_blocks(source, target, Self::each::<Bf16ToF32>),
            (F32, F64) => self.by_blocks(source, target, Self::each::<F32ToF64>),
            (F64, F32) => self.by_blocks(source, target, Self::each::<F64ToF32>),
            (F16, Bf16) => self.via_f32::<F16ToF32, _>(source, target, Self::to_bf16),
            (Bf16, F16) => self.via_f32::<Bf16ToF32, _>(source, target, Self::to_f16),
            (F64, F16) => self.via_f32::<F64ToOddF32, _>(source, target, Self::to_f16),
            (F64, Bf16) => self.via_f32::<F64ToOddF32, _>(source, target, Self::to_bf16),
            (F16, F64) => self.via_f32::<F16ToF32, _>(source, target, Self::each::<F32ToF64>),
            (Bf16, F64) => self.via_f32::<Bf16ToF32, _>(source, target, Self::each::<F32ToF64>),
        }
    }

    fn each<E: Each>(self, source: &[E::Source], target: &mut [E::Target]) {
        each::<E>(self.by, source, target);
    }

    fn to_f16(self, source: &[f32], target: &mut [u16]) {
        convert(self.by, &ToF16, source, target, self.stores);
    }

    fn to_bf16(self, source: &[f32], target: &mut [u16]) {
        convert(self.by, &ToBf16, source, target, self.stores);
    }

    fn copy(self, source: &[u8], target: &mut [u8]) {
        match self.stores {
            Stores::Cached => target.copy_from_slice(source),
            Stores::Streaming => self.by.copy_streaming(source, target),
        }
    }

    /// By a step that writes either way itself: at once where both sides are aligned.
    fn narrow(self, source: &[u8], target: &mut [u8], step: fn(Self, &[f32], &mut [u16])) {
        if let (Ok(numbers), Ok(halves)) = (try_cast_slice(source), try_cast_slice_mut(target)) {
            step(self, numbers, halves);
        } else {
            self.by_blocks(source, target, step);
        }
    }

    /// By two steps.
    fn via_f32<First: Each<Target = f32>, T: Pod>(
        self,
        source: &[u8],
        target: &mut [u8],
        second: fn(Self, &[f32], &mut [T]),
    ) {
        let mut between = [0.0; BLOCK_ITEMS];
        self.by_blocks(source, target, |route, numbers, results| {
            let between = &mut between[..numbers.len()];
            route.each::<First>(numbers, between);
            second(route, between, results);
        });
    }

    /// By a step through the caches, a block at a time. Where a side is not aligned, its block lies
    /// in a place of its own meanwhile; so do results that go past the caches.
    fn by_blocks<S: Pod, T: Pod>(
        self,
        source: &[u8],
        target: &mut [u8],
        mut step: impl FnMut(Self, &[S], &mut [T]),
    ) {
        let mut source_block = [S::zeroed(); BLOCK_ITEMS];
        let mut target_block = [T::zeroed(); BLOCK_ITEMS];
        let cached = Self::new(self.by, Stores::Cached);
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
