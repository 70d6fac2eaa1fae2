//! Twins of the kernels that normalise bytes with a scale and an offset per channel.

use pinlane_driver::{DevicePtr, KernelArg, LaunchShape};

use super::{for_blocks, read, write};
use crate::{MAX_CHANNELS, Memory, TwinResult, convert};

/// Reads the table once, and reads and writes every element.
pub(super) fn touched(args: &[KernelArg], item_bytes: u64) -> u64 {
    bind!(args => U64(n), U64(_inner), U32(channels));
    let table_bytes = size_of::<Factors>() as u64 * u64::from(channels);
    n.saturating_mul(item_bytes).saturating_add(table_bytes)
}

/// Scale and offset of a channel, as in device memory.
type Factors = [f32; 2];

/// `target[i] = source[i] * scale + offset` for `i < n`, with the factors of channel
/// `i / inner % channels`: (n, inner, channels, table, source, target).
pub(super) fn normalize_u8_f32(
    memory: &mut dyn Memory,
    _: LaunchShape,
    args: &[KernelArg],
) -> TwinResult {
    for_numbers(memory, args, write)
}

/// Like `normalize_u8_f32`, rounded once more to the nearest bf16.
pub(super) fn normalize_u8_bf16(
    memory: &mut dyn Memory,
    _: LaunchShape,
    args: &[KernelArg],
) -> TwinResult {
    let mut halves = Vec::new();
    for_numbers(memory, args, |memory, target, first, numbers| {
        halves.resize(numbers.len(), 0);
        convert::f32_to_bf16(numbers, &mut halves);
        write(memory, target, first, &halves)
    })
}

/// Calls `write(memory, target, first element, numbers)` for all elements, block by block.
fn for_numbers(
    memory: &mut dyn Memory,
    args: &[KernelArg],
    mut write: impl FnMut(&mut dyn Memory, DevicePtr, usize, &[f32]) -> TwinResult,
) -> TwinResult {
    bind!(args => U64(n), U64(inner), U32(channels), Ptr(table), Ptr(source), Ptr(target));
    let (inner, channels) = (inner as usize, channels as usize);
    // Without a plane or a channel, or with too many channels, nothing happens, as on a GPU.
    if inner == 0 || !(1..=MAX_CHANNELS).contains(&channels) {
        return Ok(());
    }
    let (mut factors, mut bytes, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    read(memory, table, 0, channels, &mut factors)?;
    for_blocks(n, size_of::<f32>(), |first, items| {
        read(memory, source, first, items, &mut bytes)?;
        numbers.resize(items, 0.0);
        normalize(first, inner, &factors, &bytes, &mut numbers);
        write(memory, target, first, &numbers)
    })
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
        channel += 1;
        if channel == table.len() {
            channel = 0;
        }
        at = end;
        end = end.saturating_add(inner).min(bytes.len());
    }
}
