//! A copy of ordinary memory through the ring.
//!
//! ```text
//!   Upload     open: a free slot         slice: host to slot    close: submit the copy
//!   Download   open: the copy is done    slice: slot to host    close: submit the next copy
//! ```
//!
//! Lanes do the host side, on slices of a chunk at once ([`ChunkWork`]). The [`DeviceSide`] submits
//! copies of whole chunks to the caller's stream.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pinlane_driver::CopyOp;
use pinlane_kernels::{can_demote, copy_demoting_raw, copy_streaming_raw};

use super::chunk_scheduler::{ChunkScheduler, ChunkWork};
use super::conversion::ElementConversion;
use super::pieces::{Chunk, PieceList, PiecePart, Run};
use super::ring::{RingShare, Slot};
use super::staging_kernels::StagingKernels;
use crate::device_core::DeviceCore;
use crate::driver_copy::Direction;
use crate::memory::Touch;
use crate::sync::{lock, wait_until};
use crate::{Result, Stream, helper_threads};

/// What is copied.
#[derive(Clone, Copy)]
pub(super) struct StagedCopy<'a> {
    pub(super) stream: &'a Stream,
    pub(super) direction: Direction,
    /// Device memory that the copy uses.
    pub(super) touches: &'a [Touch<'a>],
    pub(super) pieces: &'a PieceList,
    pub(super) conversion: ElementConversion,
}

impl StagedCopy<'_> {
    /// Whether the device launches kernels.
    pub(super) fn needs_kernels(&self) -> bool {
        matches!(self.conversion, ElementConversion::OnDevice(_)) || self.pieces.list.len() > 1
    }

    fn host_memory(&self, part: &PiecePart<'_>) -> *mut u8 {
        let before = self.conversion.host_bytes(part.skip);
        part.piece.host.wrapping_add(before)
    }

    /// Moves staged bytes between host memory and a slot, and converts them if the host does that.
    ///
    /// # Safety
    /// Source and target hold that many staged bytes, or what they convert to, aligned to their
    /// elements. They do not overlap, and nothing else writes the source or uses the target.
    unsafe fn stage(&self, source: *const u8, target: *mut u8, bytes: usize, stores: Stores) {
        // SAFETY: the caller's.
        unsafe {
            match (self.conversion, stores) {
                (ElementConversion::OnHost(cast), _) => {
                    cast.convert(source, target, bytes, stores == Stores::Streaming);
                }
                (_, Stores::Cached) => source.copy_to_nonoverlapping(target, bytes),
                (_, Stores::Streaming) => copy_streaming_raw(source, target, bytes),
                (_, Stores::Demoted) => copy_demoting_raw(source, target, bytes),
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stores {
    /// Through the caches: best if the bytes fit and are soon read again.
    Cached,
    /// Past the caches, which saves reading what is overwritten.
    Streaming,
    /// Into the cache that all cores and the device share. The most work for the CPU, the least for
    /// memory.
    Demoted,
}

/// Lanes needed to demote lines as fast as the link takes them.
const DEMOTING_LANES: usize = 13;

/// Uploads up to this size are streamed.
const STREAMED_UPLOAD_BYTES: usize = 64 << 20;

/// The start of larger uploads is streamed, up to this size.
const STREAMED_UPLOAD_START_BYTES: usize = 16 << 20;

/// Downloads from this size on are streamed, since the caches could not hold them anyway.
const STREAMED_DOWNLOAD_BYTES: usize = 32 << 20;

/// Runs of this average length get a copy each, which leaves the link idle for some 3 µs.
const LONG_RUN_BYTES: usize = 1 << 20;

/// A copy in progress: what both directions share.
pub(super) struct ActiveCopy<'a> {
    device: DeviceSide<'a>,
    share: RingShare<'a>,
    chunks: Vec<Chunk>,
    scheduler: ChunkScheduler<Slot>,
}

impl<'a> ActiveCopy<'a> {
    pub(super) fn new(
        copy: StagedCopy<'a>,
        kernels: Option<Arc<StagingKernels>>,
        share: RingShare<'a>,
    ) -> Self {
        let chunks = copy.pieces.chunks(share.ring.slot_bytes);
        Self {
            device: DeviceSide {
                copy,
                core: &share.ring.core,
                kernels,
                has_many_chunks: chunks.len() > 1,
            },
            share,
            scheduler: ChunkScheduler::new(chunks.iter().map(Chunk::slices)),
            chunks,
        }
    }

    /// Works on this thread and on up to `lanes - 1` helpers.
    fn run(&self, lanes: usize, work: &impl ChunkWork<Slot>) -> Result<()> {
        let slices = self.scheduler.slices();
        let helpers = (lanes - 1).min(slices.saturating_sub(1));
        helper_threads::run(helpers, &|ticket| {
            self.scheduler.run(work, || ticket.is_valid());
        });
        let core = self.device.core;
        self.scheduler.result(|error| core.keep_stray_error(error))
    }

    /// Submits the copy of a chunk, and returns its slot with the fence of that copy.
    ///
    /// # Safety
    /// For an upload, the slot is filled.
    unsafe fn submit(&self, chunk: &Chunk, slot: Slot) -> Result<Slot> {
        let stream = self.device.copy.stream;
        self.share.submit_with_fence(stream, slot, |slot| {
            // SAFETY: the slot keeps its fence. The places are borrowed until the submission ends;
            // from then on the ledger protects them.
            unsafe { self.device.submit(chunk, slot) }
        })
    }

    /// Parts of a slice, each with its place in the slot.
    fn parts(
        &self,
        chunk: usize,
        slice: usize,
        slot: &Slot,
    ) -> impl Iterator<Item = (PiecePart<'_>, *mut u8)> {
        let chunk = &self.chunks[chunk];
        let parts = self.device.copy.pieces.parts(chunk, chunk.slice(slice));
        parts.map(|part| (part, slot.at(chunk.slot_offset(part.offset()))))
    }
}

impl Drop for ActiveCopy<'_> {
    /// After a failure, slots of chunks that were never closed go back.
    fn drop(&mut self) {
        for slot in self.scheduler.take_buffers() {
            self.share.put(slot);
        }
    }
}

/// Host to device.
///
/// With ordinary stores the lines sit dirty in the lanes' own caches, and until they are evicted the
/// copy engine fetches them at less than half the link's speed. In a long copy they are evicted in
/// time, in a short one they are not. Streaming stores go through memory, whose bandwidth then is
/// the limit. Demoting lines to the shared cache is best if the CPU can do it and there are many
/// lanes.
pub(super) struct Upload<'a> {
    active: ActiveCopy<'a>,
    demotes: bool,
}

impl<'a> Upload<'a> {
    pub(super) fn run(active: ActiveCopy<'a>, lanes: usize) -> Result<()> {
        let demotes = lanes >= DEMOTING_LANES && can_demote();
        let upload = Self { active, demotes };
        upload.active.run(lanes, &upload)
    }

    /// How to write the staged byte at `offset`.
    fn stores_at(&self, offset: usize) -> Stores {
        let copy = &self.active.device.copy;
        // If other callers are active, each has fewer lanes, and conversions are work enough:
        // streaming costs the CPU least.
        if helper_threads::callers() > 1 || copy.conversion.is_on_host() {
            return Stores::Streaming;
        }
        let short = copy.pieces.staged_bytes <= STREAMED_UPLOAD_BYTES;
        match self.demotes {
            true => Stores::Demoted,
            false if short || offset < STREAMED_UPLOAD_START_BYTES => Stores::Streaming,
            false => Stores::Cached,
        }
    }
}

impl ChunkWork<Slot> for Upload<'_> {
    fn open(&self, _: usize) -> Result<Option<Slot>> {
        self.active
            .share
            .take(|| self.active.scheduler.is_stopped())
    }

    fn slice(&self, chunk: usize, slice: usize, slot: &Slot) {
        let copy = &self.active.device.copy;
        for (part, staged) in self.active.parts(chunk, slice, slot) {
            let stores = self.stores_at(part.offset());
            // SAFETY: the source is borrowed until the upload returns. The device does not use the
            // slot, and this part of it belongs to this slice alone.
            unsafe { copy.stage(copy.host_memory(&part), staged, part.bytes, stores) };
        }
    }

    fn close(&self, chunk: usize, slot: Slot) -> Result<()> {
        let active = &self.active;
        // SAFETY: all slices are done.
        let slot = unsafe { active.submit(&active.chunks[chunk], slot) }?;
        active.share.put(slot);
        Ok(())
    }
}

/// Device to host.
pub(super) struct Download<'a> {
    active: ActiveCopy<'a>,
    arrivals: Vec<Arrival>,
    /// The chunk whose copy is submitted next.
    next: AtomicUsize,
}

/// A chunk's slot from the submission of its copy until the chunk is opened.
#[derive(Default)]
struct Arrival {
    submitted: AtomicBool,
    slot: Mutex<Option<Slot>>,
}

impl<'a> Download<'a> {
    /// Returns when the bytes are in host memory. `prepare` runs while the first chunks are on
    /// their way.
    pub(super) fn run(active: ActiveCopy<'a>, lanes: usize, prepare: impl FnOnce()) -> Result<()> {
        let download = Self {
            arrivals: active.chunks.iter().map(|_| Arrival::default()).collect(),
            active,
            next: AtomicUsize::new(0),
        };
        download.submit_first()?;
        prepare();
        download.active.run(lanes, &download)
    }

    /// Submits the first chunks, as many as there are slots for.
    fn submit_first(&self) -> Result<()> {
        let share = &self.active.share;
        let mut slot = share.take(|| self.active.scheduler.is_stopped())?;
        while let Some(free) = slot {
            if !self.submit_next(free)? {
                break;
            }
            slot = share.take_another();
        }
        Ok(())
    }

    /// Submits the copy of the next chunk into `slot`. False if there is none.
    fn submit_next(&self, slot: Slot) -> Result<bool> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(chunk) = self.active.chunks.get(next) else {
            self.active.share.put(slot);
            return Ok(false);
        };
        // SAFETY: a download.
        let slot = unsafe { self.active.submit(chunk, slot) }?;
        let arrival = &self.arrivals[next];
        *lock(&arrival.slot) = Some(slot);
        arrival.submitted.store(true, Ordering::Release);
        Ok(true)
    }

    fn stores(&self) -> Stores {
        let copy = &self.active.device.copy;
        let host_bytes = copy.conversion.host_bytes(copy.pieces.staged_bytes);
        match host_bytes >= STREAMED_DOWNLOAD_BYTES {
            true => Stores::Streaming,
            false => Stores::Cached,
        }
    }
}

impl ChunkWork<Slot> for Download<'_> {
    fn open(&self, chunk: usize) -> Result<Option<Slot>> {
        let arrival = &self.arrivals[chunk];
        let submitted = || arrival.submitted.load(Ordering::Acquire);
        if !wait_until(submitted, || self.active.scheduler.is_stopped()) {
            return Ok(None);
        }
        let slot = lock(&arrival.slot).take().expect("submitted before");
        self.active.share.settled(slot).map(Some)
    }

    fn slice(&self, chunk: usize, slice: usize, slot: &Slot) {
        let copy = &self.active.device.copy;
        for (part, staged) in self.active.parts(chunk, slice, slot) {
            // SAFETY: the target is borrowed exclusively until the download returns, and this part
            // of it belongs to this slice alone. The device has filled the slot and no longer uses
            // it.
            unsafe { copy.stage(staged, copy.host_memory(&part), part.bytes, self.stores()) };
        }
    }

    fn close(&self, _: usize, slot: Slot) -> Result<()> {
        match self.active.share.spare(slot) {
            Some(slot) => self.submit_next(slot).map(|_| ()),
            // The remaining slots fetch the rest.
            None => Ok(()),
        }
    }
}

impl Drop for Download<'_> {
    /// After a failure, chunks that are not needed any more are still on their way. Their slots
    /// carry the fences.
    fn drop(&mut self) {
        for arrival in &self.arrivals {
            if let Some(slot) = lock(&arrival.slot).take() {
                self.active.share.put(slot);
            }
        }
    }
}

/// The device side of a copy: it submits copies of whole chunks.
pub(super) struct DeviceSide<'a> {
    pub(super) copy: StagedCopy<'a>,
    pub(super) core: &'a Arc<DeviceCore>,
    /// Loaded if the copy needs them.
    pub(super) kernels: Option<Arc<StagingKernels>>,
    pub(super) has_many_chunks: bool,
}

impl DeviceSide<'_> {
    /// Submits what moves a chunk between its slot and its places.
    ///
    /// # Safety
    /// For an upload, the slot is filled. Until all submitted work is done, the places stay valid,
    /// nothing else uses the slot, and nothing else uses what is written or writes what is read.
    unsafe fn submit(&self, chunk: &Chunk, slot: &mut Slot) -> Result<()> {
        // SAFETY: the caller vouches for slot and places; every run lies inside of both.
        unsafe {
            if let ElementConversion::OnDevice(cast) = self.copy.conversion {
                return self.convert(cast, chunk, slot);
            }
            let runs = self.copy.pieces.runs(chunk);
            if !are_long(&runs) {
                return self.move_runs(&runs, chunk, slot);
            }
            runs.iter().try_for_each(|run| {
                let host = slot.at(chunk.slot_offset(run.offset));
                self.submit_copy(self.copy.direction.copy(host, run.device, run.bytes))
            })
        }
    }

    /// # Safety
    /// As for `Driver::copy_async`.
    pub(super) unsafe fn submit_copy(&self, copy: CopyOp) -> Result<()> {
        let stream = self.copy.stream.handle();
        // SAFETY: the caller's.
        Ok(unsafe { self.core.driver.copy_async(copy, stream) }?)
    }
}

/// Whether each run is worth a copy of its own.
fn are_long(runs: &[Run]) -> bool {
    let bytes: usize = runs.iter().map(|run| run.bytes).sum();
    runs.len() == 1 || bytes / runs.len().max(1) >= LONG_RUN_BYTES
}
