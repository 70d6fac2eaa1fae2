//! Twins of the converting kernels.

use pinlane_driver::ParamKind::{F32, Ptr, U64};
use pinlane_driver::{DevicePtr, KernelArg, LaunchShape};

use super::BLOCK_BYTES;
use super::args::{f32_of, ptr_of, u64_of};
use crate::{Kernel, Memory, TwinResult, convert};

pub(super) const F32_TO_BF16: Kernel = Kernel {
    name: "pinlane_f32_to_bf16",
    params: &[U64, Ptr, Ptr],
    run: f32_to_bf16,
    bytes_touched: |args| u64_of(&args[0]).saturating_mul(6),
    fixed_ns: |_| 0,
};

pub(super) const F32_TO_F16: Kernel = Kernel {
    name: "pinlane_f32_to_f16",
    params: &[U64, Ptr, Ptr],
    run: f32_to_f16,
    bytes_touched: |args| u64_of(&args[0]).saturating_mul(6),
    fixed_ns: |_| 0,
};

pub(super) const U8_TO_F32: Kernel = Kernel {
    name: "pinlane_u8_to_f32",
    params: &[U64, F32, F32, Ptr, Ptr],
    run: u8_to_f32,
    bytes_touched: |args| u64_of(&args[0]).saturating_mul(5),
    fixed_ns: |_| 0,
};

/// `target[i]` = the bits of the bf16 nearest to `source[i]`, for `i < n`: (n, source, target).
fn f32_to_bf16(memory: &mut dyn Memory, _: LaunchShape, args: &[KernelArg]) -> TwinResult {
    let (n, source, target) = (u64_of(&args[0]), ptr_of(&args[1]), ptr_of(&args[2]));
    by_blocks(memory, n, source, target, convert::f32_to_bf16)
}

/// `target[i]` = the bits of the f16 nearest to `source[i]`, for `i < n`: (n, source, target).
fn f32_to_f16(memory: &mut dyn Memory, _: LaunchShape, args: &[KernelArg]) -> TwinResult {
    let (n, source, target) = (u64_of(&args[0]), ptr_of(&args[1]), ptr_of(&args[2]));
    by_blocks(memory, n, source, target, convert::f32_to_f16)
}

/// `target[i] = source[i] * scale + offset` for `i < n`: (n, scale, offset, source, target).
fn u8_to_f32(memory: &mut dyn Memory, _: LaunchShape, args: &[KernelArg]) -> TwinResult {
    let (n, scale, offset) = (u64_of(&args[0]), f32_of(&args[1]), f32_of(&args[2]));
    let (source, target) = (ptr_of(&args[3]), ptr_of(&args[4]));
    by_blocks(memory, n, source, target, |source, target| {
        convert::u8_to_f32(source, scale, offset, target);
    })
}

/// Reads, converts and writes `n` items, block by block.
fn by_blocks<In, Out>(
    memory: &mut dyn Memory,
    n: u64,
    source: DevicePtr,
    target: DevicePtr,
    convert: impl Fn(&[In], &mut [Out]),
) -> TwinResult
where
    In: bytemuck::Pod,
    Out: bytemuck::Pod,
{
    let block_items = BLOCK_BYTES / size_of::<In>().max(size_of::<Out>());
    let (mut from, mut to) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < n as usize {
        let items = block_items.min(n as usize - at);
        from.resize(items, In::zeroed());
        to.resize(items, Out::zeroed());
        memory.read(
            source.offset(at * size_of::<In>()),
            bytemuck::cast_slice_mut(&mut from),
        )?;
        convert(&from, &mut to);
        memory.write(
            target.offset(at * size_of::<Out>()),
            bytemuck::cast_slice(&to),
        )?;
        at += items;
    }
    Ok(())
}
