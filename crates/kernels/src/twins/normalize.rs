//! Twins of the kernels that normalise bytes with a scale and an offset per channel.

use pinlane_driver::ParamKind::{Ptr, U32, U64};
use pinlane_driver::{KernelArg, LaunchShape, ParamKind};

use super::BLOCK_BYTES;
use super::args::{ptr_of, u32_of, u64_of};
use crate::{Kernel, MAX_CHANNELS, Memory, TwinResult, convert};

const PARAMS: &[ParamKind] = &[U64, U64, U32, Ptr, Ptr, Ptr];

pub(super) const NORMALIZE_U8_F32: Kernel = Kernel {
    name: "pinlane_normalize_u8_f32",
    params: PARAMS,
    run: normalize_u8_f32,
    bytes_touched: |args| bytes_touched(args, 5),
    fixed_ns: |_| 0,
};

pub(super) const NORMALIZE_U8_BF16: Kernel = Kernel {
    name: "pinlane_normalize_u8_bf16",
    params: PARAMS,
    run: normalize_u8_bf16,
    bytes_touched: |args| bytes_touched(args, 3),
    fixed_ns: |_| 0,
};

/// Reads the table once, and reads and writes every element.
fn bytes_touched(args: &[KernelArg], item_bytes: u64) -> u64 {
    let (n, channels) = (u64_of(&args[0]), u32_of(&args[2]));
    let table_bytes = size_of::<Factors>() as u64 * u64::from(channels);
    n.saturating_mul(item_bytes).saturating_add(table_bytes)
}

/// Scale and offset of a channel, as in device memory.
type Factors = [f32; 2];

/// `target[i] = source[i] * scale + offset` for `i < n`, with the factors of channel
/// `i / inner % channels`: (n, inner, channels, table, source, target).
fn normalize_u8_f32(memory: &mut dyn Memory, _: LaunchShape, args: &[KernelArg]) -> TwinResult {
    let target = ptr_of(&args[5]);
    for_blocks(memory, args, |memory, at, numbers| {
        let bytes = bytemuck::cast_slice(numbers);
        memory.write(target.offset(at * size_of::<f32>()), bytes)
    })
}

/// Like `normalize_u8_f32`, rounded once more to the nearest bf16.
fn normalize_u8_bf16(memory: &mut dyn Memory, _: LaunchShape, args: &[KernelArg]) -> TwinResult {
    let target = ptr_of(&args[5]);
    let mut halves = Vec::new();
    for_blocks(memory, args, |memory, at, numbers| {
        halves.resize(numbers.len(), 0_u16);
        convert::f32_to_bf16(numbers, &mut halves);
        let bytes = bytemuck::cast_slice(&halves);
        memory.write(target.offset(at * size_of::<u16>()), bytes)
    })
}

/// Calls `write(memory, first element, numbers)` for all elements, block by block.
fn for_blocks(
    memory: &mut dyn Memory,
    args: &[KernelArg],
    mut write: impl FnMut(&mut dyn Memory, usize, &[f32]) -> TwinResult,
) -> TwinResult {
    let (n, inner, channels) = (u64_of(&args[0]), u64_of(&args[1]), u32_of(&args[2]));
    let (n, inner, channels) = (n as usize, inner as usize, channels as usize);
    // Without a plane or a channel, or with too many channels, nothing happens, as on a GPU.
    if inner == 0 || !(1..=MAX_CHANNELS).contains(&channels) {
        return Ok(());
    }
    let mut table = [Factors::default(); MAX_CHANNELS];
    let table = &mut table[..channels];
    memory.read(ptr_of(&args[3]), bytemuck::cast_slice_mut(table))?;
    let source = ptr_of(&args[4]);
    let block_items = BLOCK_BYTES / size_of::<f32>();
    let (mut bytes, mut numbers) = (Vec::new(), Vec::new());
    for at in (0..n).step_by(block_items) {
        let items = block_items.min(n - at);
        bytes.resize(items, 0);
        numbers.resize(items, 0.0);
        memory.read(source.offset(at), &mut bytes)?;
        normalize(at, inner, table, &bytes, &mut numbers);
        write(memory, at, &numbers)?;
    }
    Ok(())
}

/// Converts the bytes from element `first` on, plane by plane.
fn normalize(first: usize, inner: usize, table: &[Factors], bytes: &[u8], numbers: &mut [f32]) {
    let mut channel = first / inner % table.len();
    let mut end = (inner - first % inner).min(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let [scale, offset] = table[channel];
        for (byte, number) in bytes[at..end].iter().zip(&mut numbers[at..end]) {
            *number = f32::from(*byte) * scale + offset;
        }
        channel = if channel + 1 < table.len() {
            channel + 1
        } else {
            0
        };
        at = end;
        end = end.saturating_add(inner).min(bytes.len());
    }
}
