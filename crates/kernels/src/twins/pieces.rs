//! Twins of the kernels that copy many pieces.

use pinlane_driver::ParamKind::{Ptr, U32, U64};
use pinlane_driver::{DevicePtr, KernelArg, LaunchShape, ParamKind};

use super::args::{ptr_of, u32_of, u64_of};
use super::copy_blocks;
use crate::{Kernel, Memory, Piece, TwinResult};

const PARAMS: &[ParamKind] = &[U64, U32, Ptr, Ptr, U64];

pub(super) const SCATTER: Kernel = Kernel {
    name: "pinlane_scatter",
    params: PARAMS,
    run: scatter,
    bytes_touched,
    fixed_ns: |_| 0,
};

pub(super) const GATHER: Kernel = Kernel {
    name: "pinlane_gather",
    params: PARAMS,
    run: gather,
    bytes_touched,
    fixed_ns: |_| 0,
};

/// Reads the table once, and reads and writes every piece.
fn bytes_touched(args: &[KernelArg]) -> u64 {
    let (pieces, total_bytes) = (u64_of(&args[0]), u64_of(&args[4]));
    pieces
        .saturating_mul(size_of::<Piece>() as u64)
        .saturating_add(total_bytes.saturating_mul(2))
}

/// Copies every piece from the staged buffer to its place: (pieces, splits, table, staged, total_bytes).
fn scatter(memory: &mut dyn Memory, _: LaunchShape, args: &[KernelArg]) -> TwinResult {
    for_pieces(memory, args, |memory, place, staged, bytes| {
        copy_blocks(memory, staged, place, bytes)
    })
}

/// Copies every piece from its place to the staged buffer: (pieces, splits, table, staged, total_bytes).
fn gather(memory: &mut dyn Memory, _: LaunchShape, args: &[KernelArg]) -> TwinResult {
    for_pieces(memory, args, |memory, place, staged, bytes| {
        copy_blocks(memory, place, staged, bytes)
    })
}

/// Calls `copy(memory, place, address in the staged buffer, bytes)` for every piece.
fn for_pieces(
    memory: &mut dyn Memory,
    args: &[KernelArg],
    mut copy: impl FnMut(&mut dyn Memory, DevicePtr, DevicePtr, u64) -> TwinResult,
) -> TwinResult {
    let (pieces, splits) = (u64_of(&args[0]), u32_of(&args[1]));
    let (table, staged) = (ptr_of(&args[2]), ptr_of(&args[3]));
    // How pieces are split does not matter, except that no parts are no work.
    if splits == 0 {
        return Ok(());
    }
    for index in 0..pieces as usize {
        let mut piece = Piece::default();
        let entry = table.offset(index * size_of::<Piece>());
        memory.read(entry, bytemuck::bytes_of_mut(&mut piece))?;
        let in_buffer = DevicePtr(staged.0.wrapping_add(piece.offset_bytes));
        copy(memory, DevicePtr(piece.place), in_buffer, piece.bytes)?;
    }
    Ok(())
}
