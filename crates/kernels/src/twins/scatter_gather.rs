//! Twins of the kernels that copy many pieces.

use pinlane_driver::{DevicePtr, KernelArg, LaunchShape};

use super::copy_blocks;
use crate::{Memory, Piece, TwinResult};

/// Reads the table once, and reads and writes every piece.
pub(super) fn touched(args: &[KernelArg]) -> u64 {
    bind!(args => U64(pieces), U32(_splits), Ptr(_table), Ptr(_staged), U64(total_bytes));
    let table_bytes = pieces.saturating_mul(size_of::<Piece>() as u64);
    table_bytes.saturating_add(total_bytes.saturating_mul(2))
}

/// Copies every piece from the staged buffer to its place: (pieces, splits, table, staged, total_bytes).
pub(super) fn scatter(memory: &mut dyn Memory, _: LaunchShape, args: &[KernelArg]) -> TwinResult {
    let mut block = Vec::new();
    for_pieces(memory, args, |memory, place, staged, bytes| {
        copy_blocks(memory, staged, place, bytes, &mut block)
    })
}

/// Copies every piece from its place to the staged buffer: (pieces, splits, table, staged, total_bytes).
pub(super) fn gather(memory: &mut dyn Memory, _: LaunchShape, args: &[KernelArg]) -> TwinResult {
    let mut block = Vec::new();
    for_pieces(memory, args, |memory, place, staged, bytes| {
        copy_blocks(memory, place, staged, bytes, &mut block)
    })
}

/// Calls `copy(memory, place, address in the staged buffer, bytes)` for every piece.
fn for_pieces(
    memory: &mut dyn Memory,
    args: &[KernelArg],
    mut copy: impl FnMut(&mut dyn Memory, DevicePtr, DevicePtr, u64) -> TwinResult,
) -> TwinResult {
    bind!(args => U64(pieces), U32(splits), Ptr(table), Ptr(staged));
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
