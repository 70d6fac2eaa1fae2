//! Host to device: lanes fill a slot, then it is copied on the caller's stream.

use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

use pinlane_kernels::can_demote;

use super::dock::{Layout, Yard};
use super::guard;
use super::haul::{Haul, Stores};
use super::mark::mark;
use super::plan;
use super::relay::{Chunks, Relay};
use super::ring::Slot;
use super::route::Chunk;
use super::share::Share;
use crate::{Result, Stream, helpers};

/// How lanes write what the copy engine will read.
///
/// With ordinary stores the lines sit dirty in the lanes' own caches, from where the engine fetches
/// them at less than half the link's speed, until they are evicted: in a long copy that happens in
/// time, in a short one it does not. Streaming stores go through memory, whose bandwidth is then
/// the limit. Handing lines on to the shared cache is best, where the CPU can and lanes are many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Staging {
    /// Streaming at first, then ordinary.
    Mixed,
    /// Handing lines on.
    Demoting,
}

/// Lanes that are needed to hand lines on as fast as the link takes them.
const DEMOTING_LANES: usize = 13;

/// Copies up to this size are streamed.
const STREAMED_BYTES: usize = 64 << 20;

/// The same for the beginning of larger copies.
const STREAMED_START_BYTES: usize = 16 << 20;

impl Staging {
    /// What suits so many lanes on this CPU.
    pub(crate) fn for_lanes(lanes: usize) -> Self {
        if lanes >= DEMOTING_LANES && can_demote() {
            Self::Demoting
        } else {
            Self::Mixed
        }
    }

    /// For the byte at `at` of a copy of `bytes`.
    fn stores(self, at: usize, bytes: usize, haul: Haul) -> Stores {
        // With others at work there are fewer lanes for each, and conversions are work enough:
        // streaming is the least.
        if helpers::callers() > 1 || haul != Haul::Copy {
            return Stores::Streaming;
        }
        match self {
            Self::Demoting => Stores::Demoted,
            Self::Mixed if bytes <= STREAMED_BYTES || at < STREAMED_START_BYTES => {
                Stores::Streaming
            }
            Self::Mixed => Stores::Cached,
        }
    }
}

/// An upload under way.
pub(crate) struct Upload<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) yard: Yard<'a>,
    pub(crate) haul: Haul,
    pub(crate) share: Share<'a>,
    staging: Staging,
    chunks: Vec<(Chunk, Filling)>,
}

/// A chunk's slot while it is filled.
#[derive(Default)]
struct Filling {
    start: AtomicPtr<u8>,
    slot: Mutex<Option<Slot>>,
}

impl<'a> Upload<'a> {
    pub(crate) fn new(
        stream: &'a Stream,
        yard: Yard<'a>,
        haul: Haul,
        share: Share<'a>,
        staging: Staging,
        chunks: Vec<Chunk>,
    ) -> Self {
        Self {
            stream,
            yard,
            haul,
            share,
            staging,
            chunks: chunks
                .into_iter()
                .map(|chunk| (chunk, Filling::default()))
                .collect(),
        }
    }

    pub(crate) fn relay(&self) -> Relay {
        Relay::new(
            self.chunks
                .iter()
                .map(|(chunk, _)| plan::slices(chunk.wire.len())),
        )
    }
}

impl Chunks for Upload<'_> {
    fn open(&self, chunk: usize, relay: &Relay) -> Result<bool> {
        let Some(slot) = self.share.take(relay)? else {
            return Ok(false);
        };
        let filling = &self.chunks[chunk].1;
        filling.start.store(slot.start(), Ordering::Relaxed);
        *guard(&filling.slot) = Some(slot);
        Ok(true)
    }

    fn slice(&self, chunk: usize, slice: usize) {
        let (chunk, filling) = &self.chunks[chunk];
        let start = filling.start.load(Ordering::Relaxed);
        let layout = Layout::of(self.yard.route, chunk, self.share.slot_bytes());
        for part in self
            .yard
            .route
            .parts(chunk, plan::slice(&chunk.wire, slice))
        {
            // SAFETY: the source is borrowed until the upload returns; the slot is large enough
            // for a chunk, is not used by the device, and this part of it is this slice's alone.
            unsafe {
                let source = part.leg.host.add(self.haul.host_bytes(part.skip));
                let target = start.add(layout.offset(part.at()));
                let bytes = self.yard.route.wire_bytes();
                let stores = self.staging.stores(part.at(), bytes, self.haul);
                self.haul.carry(source, target, part.bytes, stores);
            }
        }
    }

    fn close(&self, chunk: usize) -> Result<()> {
        let (chunk, filling) = &self.chunks[chunk];
        let slot = guard(&filling.slot).take().expect("opened before");
        mark(self.stream, &self.share, slot, |slot| {
            // SAFETY: all slices are done, `mark` keeps the slot until the device is, and the
            // places are borrowed until the submission ends and kept by their books from then on.
            unsafe { self.yard.land(chunk, slot) }
        })
        .map(|slot| self.share.put(slot))
    }
}

impl Drop for Upload<'_> {
    /// Slots that were being filled when it failed hold nothing that the device uses.
    fn drop(&mut self) {
        for (_, filling) in &self.chunks {
            if let Some(slot) = guard(&filling.slot).take() {
                self.share.put(slot);
            }
        }
    }
}
