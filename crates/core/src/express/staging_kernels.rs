//! Chunks that a kernel brings to their places: scattered, gathered or converted on the device.
//!
//! Such a chunk is copied between its slot and the slot's scratch memory on the device in one go,
//! together with a table that says where each run of bytes belongs.

use std::sync::Arc;

use pinlane_driver::{CopyOp, DevicePtr, FunctionHandle, KernelArg, LaunchShape, StreamHandle};
use pinlane_kernels::Piece as TableEntry;

use super::conversion::{Cast, U8ToF32};
use super::pieces::{Chunk, Run};
use super::ring::Slot;
use super::staged_copy::DeviceSide;
use crate::device_core::DeviceCore;
use crate::driver_copy::Direction;
use crate::driver_handles::{NON_BLOCKING, OwnStream, StreamRef};
use crate::kernel::Code;
use crate::{Result, Stream};

/// Blocks that keep any GPU busy.
const BLOCKS: u32 = 1024;
const THREADS: u32 = 256;

/// The kernels of one device, loaded when they are first needed. Slots keep those that they used.
pub(super) struct StagingKernels {
    code: Code,
    copy_stream: OwnStream,
    scatter: FunctionHandle,
    gather: FunctionHandle,
    to_bf16: FunctionHandle,
    to_f16: FunctionHandle,
    from_u8: FunctionHandle,
}

/// Runs of bytes in scratch memory, with the table that says where they belong.
#[derive(Clone, Copy)]
struct StagedRuns {
    table: DevicePtr,
    data: DevicePtr,
    entries: usize,
    bytes: usize,
}

impl StagingKernels {
    pub(super) fn load(core: &Arc<DeviceCore>) -> Result<Self> {
        let code = Code::load(core, pinlane_kernels::PTX)?;
        let function = |name| code.function(name);
        Ok(Self {
            scatter: function("pinlane_scatter")?,
            gather: function("pinlane_gather")?,
            to_bf16: function("pinlane_f32_to_bf16")?,
            to_f16: function("pinlane_f32_to_f16")?,
            from_u8: function("pinlane_u8_to_f32")?,
            copy_stream: OwnStream::create(core, NON_BLOCKING)?,
            code,
        })
    }

    /// Launches `kernel` (scatter or gather) on all runs.
    ///
    /// # Safety
    /// Table, scratch memory and all places are valid, and not used otherwise, until it is done.
    unsafe fn move_runs(
        &self,
        kernel: FunctionHandle,
        runs: StagedRuns,
        stream: StreamHandle,
    ) -> Result<()> {
        // Few runs are split, so that the whole GPU has work.
        let splits = (BLOCKS as usize / runs.entries.max(1)).clamp(1, 64);
        let args = [
            KernelArg::U64(runs.entries as u64),
            KernelArg::U32(splits as u32),
            KernelArg::Ptr(runs.table),
            KernelArg::Ptr(runs.data),
            KernelArg::U64(runs.bytes as u64),
        ];
        // SAFETY: these are its parameters; the caller vouches for the memory.
        unsafe { self.launch(kernel, &args, runs.entries * splits, stream) }
    }

    /// Converts `items` elements.
    ///
    /// # Safety
    /// Source and target are valid, and not used otherwise, until it is done.
    unsafe fn convert(
        &self,
        cast: Cast,
        items: usize,
        source: DevicePtr,
        target: DevicePtr,
        stream: StreamHandle,
    ) -> Result<()> {
        let mut args = Vec::with_capacity(5);
        args.push(KernelArg::U64(items as u64));
        let kernel = match cast {
            Cast::F32ToBf16 => self.to_bf16,
            Cast::F32ToF16 => self.to_f16,
            Cast::U8ToF32(U8ToF32 { scale, offset }) => {
                args.extend([KernelArg::F32(scale), KernelArg::F32(offset)]);
                self.from_u8
            }
        };
        args.extend([KernelArg::Ptr(source), KernelArg::Ptr(target)]);
        let blocks = items.div_ceil(4 * THREADS as usize);
        // SAFETY: these are the kernel's parameters; the caller vouches for the memory.
        unsafe { self.launch(kernel, &args, blocks, stream) }
    }

    unsafe fn launch(
        &self,
        kernel: FunctionHandle,
        args: &[KernelArg],
        blocks: usize,
        stream: StreamHandle,
    ) -> Result<()> {
        let shape = LaunchShape {
            grid: [blocks.clamp(1, BLOCKS as usize) as u32, 1, 1],
            block: [THREADS, 1, 1],
            shared_bytes: 0,
        };
        // SAFETY: passed on. The slot that the launch uses keeps the code loaded.
        unsafe { self.code.driver().launch(kernel, shape, args, stream)? };
        Ok(())
    }
}

impl DeviceSide<'_> {
    /// Scatters or gathers the runs of a chunk through scratch memory.
    ///
    /// # Safety
    /// As for [`submit`](Self::submit).
    pub(super) unsafe fn move_runs(
        &self,
        runs: &[Run],
        chunk: &Chunk,
        slot: &mut Slot,
    ) -> Result<()> {
        let (table, data) = (chunk.table_offset(runs.len()), chunk.table_bytes);
        let end = runs
            .last()
            .map_or(data, |run| chunk.slot_offset(run.offset) + run.bytes);
        let (kernels, stream) = (self.kernels(), self.copy.stream.handle());
        // SAFETY: the caller's; table and data lie in the slot, one after the other.
        unsafe {
            let staged = self.write_table(runs, chunk, slot)?;
            match self.copy.direction {
                Direction::Upload => {
                    self.copy_to_scratch(slot, table, staged.table, end - table)?;
                    kernels.move_runs(kernels.scatter, staged, stream)
                }
                Direction::Download => {
                    let table_bytes = size_of::<TableEntry>() * runs.len();
                    self.submit_copy(Direction::Upload.copy(
                        slot.at(table),
                        staged.table,
                        table_bytes,
                    ))?;
                    kernels.move_runs(kernels.gather, staged, stream)?;
                    let source = staged.data.offset(data);
                    self.submit_copy(Direction::Download.copy(slot.at(data), source, end - data))
                }
            }
        }
    }

    /// Converts a chunk from or into scratch memory.
    ///
    /// # Safety
    /// As for [`submit`](Self::submit).
    pub(super) unsafe fn convert(&self, cast: Cast, chunk: &Chunk, slot: &mut Slot) -> Result<()> {
        let (bytes, kernels) = (chunk.staged.len(), self.kernels());
        let scratch = slot.scratch(self.core, kernels)?;
        let (items, stream) = (cast.items(bytes), self.copy.stream.handle());
        // Converting copies have one piece.
        let before = self.copy.conversion.device_bytes(chunk.staged.start);
        let place = self.copy.pieces.list[0].device.offset(before);
        // SAFETY: the caller's; the scratch memory is as large as the slot.
        unsafe {
            match self.copy.direction {
                Direction::Upload => {
                    self.copy_to_scratch(slot, 0, scratch, bytes)?;
                    kernels.convert(cast, items, scratch, place, stream)
                }
                Direction::Download => {
                    kernels.convert(cast, items, place, scratch, stream)?;
                    self.submit_copy(Direction::Download.copy(slot.at(0), scratch, bytes))
                }
            }
        }
    }

    /// Writes the table of the runs into the slot.
    ///
    /// # Safety
    /// Nothing else uses the slot.
    unsafe fn write_table(
        &self,
        runs: &[Run],
        chunk: &Chunk,
        slot: &mut Slot,
    ) -> Result<StagedRuns> {
        let scratch = slot.scratch(self.core, self.kernels())?;
        let table_offset = chunk.table_offset(runs.len());
        for (index, run) in runs.iter().enumerate() {
            let entry = TableEntry::new(run.device, chunk.slot_offset(run.offset), run.bytes);
            // SAFETY: the table ends where the data start, and is aligned, since slots start at a
            // page.
            unsafe {
                let table = slot.at(table_offset).cast::<TableEntry>();
                table.add(index).write(entry);
            }
        }
        Ok(StagedRuns {
            table: scratch.offset(table_offset),
            data: scratch,
            entries: runs.len(),
            bytes: runs.iter().map(|run| run.bytes).sum(),
        })
    }

    /// Copies from a slot into its scratch memory. If more chunks follow, the copy does not wait for
    /// the caller's stream.
    unsafe fn copy_to_scratch(
        &self,
        slot: &mut Slot,
        offset: usize,
        target: DevicePtr,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: the caller's.
        unsafe {
            let copy = Direction::Upload.copy(slot.at(offset), target, bytes);
            if self.has_many_chunks {
                let copies = self.kernels().copy_stream.live();
                return copy_ahead_of(self.copy.stream, copies, slot, copy);
            }
            self.submit_copy(copy)
        }
    }

    fn kernels(&self) -> &Arc<StagingKernels> {
        let kernels = self.kernels.as_ref();
        kernels.expect("loaded for every copy that needs kernels")
    }
}

/// Copies from the slot to its scratch memory on `copies`, and makes all later work of `stream` wait
/// for it. On an error the copy is over, or the slot is stranded.
///
/// Such copies need not wait for the work on the caller's stream, since scratch memory is ours. On a
/// stream of our own they follow each other without a gap, while the kernels that move the bytes to
/// their places run on the caller's stream.
///
/// # Safety
/// Nothing else uses the slot and its scratch memory until work that is submitted to `stream` after
/// this is done.
unsafe fn copy_ahead_of(
    stream: &Stream,
    copies: StreamRef<'_>,
    slot: &mut Slot,
    copy: CopyOp,
) -> Result<()> {
    let fence = stream.shared().events.claim()?;
    let core = &stream.shared().core;
    // SAFETY: the caller's.
    unsafe { core.driver.copy_async(copy, copies.handle())? };
    let joined = fence
        .record(copies)
        .and_then(|fence| stream.live().wait_for(fence.event()));
    if let Err(error) = joined {
        slot.stranded |= !error.is_fatal() && !copies.drains();
        return Err(error.into());
    }
    Ok(())
}
