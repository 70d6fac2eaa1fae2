//! The device's end: how a staged chunk gets to its places, and how a chunk is fetched from them.

use std::sync::Arc;

use pinlane_driver::{CopyOp, DevicePtr, Place};
use pinlane_kernels::Piece;

use super::ring::Slot;
use super::route::{Chunk, LANE_BYTES, Route, Run};
use super::toolbox::{Staged, Toolbox};
use crate::device_core::DeviceCore;
use crate::transfer::host_ptr;
use crate::{Result, Stream};

/// What the device does with the bytes of the wire.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Dock {
    /// As they are: by copies where runs are long, else by one copy and a kernel.
    Copy,
    /// f32 on the device, bf16 on the wire.
    ToBf16,
    /// f32 on the device, f16 on the wire.
    ToF16,
    /// u8 on the wire, f32 on the device: `x * scale + offset`.
    FromU8 { scale: f32, offset: f32 },
}

/// Pieces of one chunk. The table of that many is what a slot spares for it.
const PIECES_AT_MOST: usize = 8192;

/// Runs of this length are worth a copy of their own, which leaves the link idle for some 3 µs.
const RUN_BYTES: usize = 1 << 20;

/// Where things lie in a slot, and in its scratch memory on the device, which looks the same.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    /// Room for the table, before the data.
    head_bytes: usize,
    /// What lies at the beginning of the data.
    wire_start: usize,
}

impl Layout {
    /// Bytes that the table of a route takes from each slot.
    pub(crate) fn head_bytes(route: &Route, slot_bytes: usize) -> usize {
        match route.legs() {
            0 | 1 => 0,
            legs => (legs.min(Self::pieces_at_most(slot_bytes)) * size_of::<Piece>())
                .next_multiple_of(4096),
        }
    }

    /// Pieces of one chunk: their table takes at most a quarter of the slot.
    pub(crate) fn pieces_at_most(slot_bytes: usize) -> usize {
        PIECES_AT_MOST.min(slot_bytes / 4 / size_of::<Piece>())
    }

    pub(crate) fn of(route: &Route, chunk: &Chunk, slot_bytes: usize) -> Self {
        Self {
            head_bytes: Self::head_bytes(route, slot_bytes),
            wire_start: chunk.wire.start / LANE_BYTES * LANE_BYTES,
        }
    }

    /// Where a byte of the wire lies in the slot.
    pub(crate) fn offset(self, wire: usize) -> usize {
        self.head_bytes + (wire - self.wire_start)
    }

    fn end_of(self, runs: &[Run]) -> usize {
        runs.last()
            .map_or(self.head_bytes, |run| self.offset(run.at) + run.bytes)
    }

    /// Where the table of so many pieces lies in the slot: right before the data.
    fn table_offset(self, pieces: usize) -> usize {
        self.head_bytes - (pieces * size_of::<Piece>()).next_multiple_of(LANE_BYTES)
    }
}

impl Dock {
    /// Device bytes for so many on the wire.
    pub(crate) fn device_bytes(self, wire_bytes: usize) -> usize {
        match self {
            Self::Copy => wire_bytes,
            Self::ToBf16 | Self::ToF16 => wire_bytes * 2,
            Self::FromU8 { .. } => wire_bytes * 4,
        }
    }

    /// Whether it may launch kernels.
    pub(crate) fn needs_kernels(self, route: &Route) -> bool {
        self != Self::Copy || route.legs() > 1
    }
}

/// The device's end of one copy.
pub(crate) struct Yard<'a> {
    pub(crate) link: &'a Arc<DeviceCore>,
    pub(crate) stream: &'a Stream,
    pub(crate) route: &'a Route,
    pub(crate) dock: Dock,
    /// There where the dock may launch kernels.
    pub(crate) toolbox: Option<Arc<Toolbox>>,
    /// Whether copies into scratch memory go ahead of the caller's stream: worth it where another
    /// one follows.
    pub(crate) aside: bool,
}

impl Yard<'_> {
    /// Enqueue what brings a staged chunk to its places.
    ///
    /// # Safety
    /// The slot is filled and not touched, and the places are valid and used by nobody else, until
    /// all of it is done.
    pub(crate) unsafe fn land(&self, chunk: &Chunk, slot: &mut Slot) -> Result<()> {
        // SAFETY: the caller vouches for slot and places; what is moved stays inside of both.
        unsafe {
            match self.dock {
                Dock::Copy => self.land_runs(chunk, slot),
                Dock::FromU8 { scale, offset } => {
                    let items = chunk.wire.len();
                    let scratch = slot.scratch(self.link, self.tools())?;
                    self.to_scratch(slot, 0, scratch, items)?;
                    let target = self.converted_place(chunk);
                    self.tools().scale_u8(
                        items,
                        (scale, offset),
                        scratch,
                        target,
                        self.stream.handle(),
                    )?;
                    Ok(())
                }
                Dock::ToBf16 | Dock::ToF16 => unreachable!("narrowed on the host, then copied"),
            }
        }
    }

    /// Enqueue what brings a chunk from its places into the slot.
    ///
    /// # Safety
    /// The slot is not touched, and the places are valid and not written, until all of it is done.
    pub(crate) unsafe fn fetch(&self, chunk: &Chunk, slot: &mut Slot) -> Result<()> {
        // SAFETY: as in `land`.
        unsafe {
            match self.dock {
                Dock::Copy => self.fetch_runs(chunk, slot),
                Dock::ToBf16 | Dock::ToF16 => {
                    let (bytes, tools) = (chunk.wire.len(), self.tools());
                    let scratch = slot.scratch(self.link, tools)?;
                    let (items, source) = (bytes / 2, self.converted_place(chunk));
                    match self.dock {
                        Dock::ToBf16 => {
                            tools.to_bf16(items, source, scratch, self.stream.handle())?
                        }
                        _ => tools.to_f16(items, source, scratch, self.stream.handle())?,
                    }
                    self.to_slot(scratch, slot, 0, bytes)
                }
                Dock::FromU8 { .. } => unreachable!("copied, then widened on the host"),
            }
        }
    }

    /// Where the elements of a chunk of a converting copy, which has one leg, lie on the device.
    fn converted_place(&self, chunk: &Chunk) -> DevicePtr {
        let before = self.dock.device_bytes(chunk.wire.start);
        self.route.first().device.offset(before)
    }

    unsafe fn land_runs(&self, chunk: &Chunk, slot: &mut Slot) -> Result<()> {
        let (runs, layout) = (
            self.route.runs(chunk),
            Layout::of(self.route, chunk, slot.bytes()),
        );
        // SAFETY: the caller's; every run lies in the slot at its offset.
        unsafe {
            if are_long(&runs) {
                for run in runs {
                    self.to_device(slot, layout.offset(run.at), run.device, run.bytes)?;
                }
                return Ok(());
            }
            let staged = self.stage_table(&runs, layout, slot)?;
            let (start, end) = (layout.table_offset(runs.len()), layout.end_of(&runs));
            self.to_scratch(slot, start, staged.table, end - start)?;
            self.tools().scatter(staged, self.stream.handle())?;
        }
        Ok(())
    }

    unsafe fn fetch_runs(&self, chunk: &Chunk, slot: &mut Slot) -> Result<()> {
        let (runs, layout) = (
            self.route.runs(chunk),
            Layout::of(self.route, chunk, slot.bytes()),
        );
        // SAFETY: as in `land_runs`.
        unsafe {
            if are_long(&runs) {
                for run in runs {
                    self.to_slot(run.device, slot, layout.offset(run.at), run.bytes)?;
                }
                return Ok(());
            }
            let staged = self.stage_table(&runs, layout, slot)?;
            let (start, end) = (layout.head_bytes, layout.end_of(&runs));
            let table_bytes = size_of::<Piece>() * runs.len();
            self.to_device(
                slot,
                layout.table_offset(runs.len()),
                staged.table,
                table_bytes,
            )?;
            self.tools().gather(staged, self.stream.handle())?;
            self.to_slot(staged.data.offset(start), slot, start, end - start)
        }
    }

    /// Write the table of the runs into the slot, and say where all of it will be on the device.
    ///
    /// # Safety
    /// Nobody else touches the slot.
    unsafe fn stage_table(&self, runs: &[Run], layout: Layout, slot: &mut Slot) -> Result<Staged> {
        let scratch = slot.scratch(self.link, self.tools())?;
        let table_offset = layout.table_offset(runs.len());
        for (index, run) in runs.iter().enumerate() {
            let piece = Piece::new(run.device, layout.offset(run.at), run.bytes);
            // SAFETY: the table ends where the data begin, and is aligned, since slots start at
            // a page.
            unsafe {
                let table = slot.start().add(table_offset).cast::<Piece>();
                table.add(index).write(piece);
            }
        }
        Ok(Staged {
            table: scratch.offset(table_offset),
            data: scratch,
            pieces: runs.len(),
            bytes: runs.iter().map(|run| run.bytes).sum(),
        })
    }

    fn tools(&self) -> &Arc<Toolbox> {
        self.toolbox
            .as_ref()
            .expect("loaded, since the dock needs kernels")
    }

    unsafe fn to_device(
        &self,
        slot: &Slot,
        offset: usize,
        target: DevicePtr,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: the caller's; both ends hold that many bytes.
        unsafe {
            let copy = to_device(slot.start().add(offset), target, bytes);
            Ok(self.link.driver.copy_async(copy, self.stream.handle())?)
        }
    }

    /// The same, into scratch memory and ahead of the caller's stream.
    unsafe fn to_scratch(
        &self,
        slot: &mut Slot,
        offset: usize,
        target: DevicePtr,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: as in `to_device`.
        unsafe {
            if !self.aside {
                return self.to_device(slot, offset, target, bytes);
            }
            let copy = to_device(slot.start().add(offset), target, bytes);
            self.tools().side().copy_ahead_of(self.stream, slot, copy)
        }
    }

    unsafe fn to_slot(
        &self,
        source: DevicePtr,
        slot: &Slot,
        offset: usize,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: the caller's; both ends hold that many bytes.
        unsafe {
            let copy = to_host(source, slot.start().add(offset), bytes);
            Ok(self.link.driver.copy_async(copy, self.stream.handle())?)
        }
    }
}

/// A copy from a slot.
pub(crate) fn to_device(source: *const u8, target: DevicePtr, bytes: usize) -> CopyOp {
    CopyOp {
        source: Place::Host(host_ptr(source)),
        target: Place::Device(target),
        bytes,
    }
}

/// A copy into a slot.
pub(crate) fn to_host(source: DevicePtr, target: *mut u8, bytes: usize) -> CopyOp {
    CopyOp {
        source: Place::Device(source),
        target: Place::Host(host_ptr(target)),
        bytes,
    }
}

/// Whether each run is worth a copy of its own.
fn are_long(runs: &[Run]) -> bool {
    let bytes: usize = runs.iter().map(|run| run.bytes).sum();
    runs.len() == 1 || bytes / runs.len().max(1) >= RUN_BYTES
}
