//! Twins of the converting kernels.

use bytemuck::Pod;
use pinlane_driver::{DevicePtr, KernelArg, LaunchShape};

use super::{for_blocks, read, write};
use crate::{Memory, TwinResult, convert};

/// `target[i]` = the bits of the bf16 nearest to `source[i]`, for `i < n`: (n, source, target).
pub(super) fn f32_to_bf16(
    memory: &mut dyn Memory,
    _: LaunchShape,
    args: &[KernelArg],
) -> TwinResult {
    bind!(args => U64(n), Ptr(source), Ptr(target));
    by_blocks(memory, n, source, target, convert::f32_to_bf16)
}

/// `target[i]` = the bits of the f16 nearest to `source[i]`, for `i < n`: (n, source, target).
pub(super) fn f32_to_f16(
    memory: &mut dyn Memory,
    _: LaunchShape,
    args: &[KernelArg],
) -> TwinResult {
    bind!(args => U64(n), Ptr(source), Ptr(target));
    by_blocks(memory, n, source, target, convert::f32_to_f16)
}

/// `target[i] = source[i] * scale + offset` for `i < n`: (n, scale, offset, source, target).
pub(super) fn u8_to_f32(memory: &mut dyn Memory, _: LaunchShape, args: &[KernelArg]) -> TwinResult {
    bind!(args => U64(n), F32(scale), F32(offset), Ptr(source), Ptr(target));
    by_blocks(memory, n, source, target, |source, target| {
        convert::u8_to_f32(source, scale, offset, target);
    })
}

/// Reads, converts and writes `n` items, block by block.
fn by_blocks<In: Pod, Out: Pod>(
    memory: &mut dyn Memory,
    n: u64,
    source: DevicePtr,
    target: DevicePtr,
    convert: impl Fn(&[In], &mut [Out]),
) -> TwinResult {
    let item_bytes = size_of::<In>().max(size_of::<Out>());
    let (mut block, mut results) = (Vec::new(), Vec::new());
    for_blocks(n, item_bytes, |first, items| {
        read(memory, source, first, items, &mut block)?;
        results.resize(items, Out::zeroed());
        convert(&block, &mut results);
        write(memory, target, first, &results)
    })
}
