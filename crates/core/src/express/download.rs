//! Device to host: slots are filled on the caller's stream, then lanes empty them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use super::dock::{Layout, Yard};
use super::guard;
use super::haul::{Haul, Stores};
use super::mark::mark;
use super::plan;
use super::relay::{Chunks, Relay};
use super::ring::Slot;
use super::route::Chunk;
use super::share::Share;
use crate::{Result, Stream};

/// Copies from this size on are written past the caches, which could not hold them anyway.
const STREAMED_BYTES: usize = 32 << 20;

/// A download under way.
pub(crate) struct Download<'a> {
    stream: &'a Stream,
    yard: Yard<'a>,
    haul: Haul,
    share: Share<'a>,
    chunks: Vec<(Chunk, Arrival)>,
    /// The chunk that is fetched next.
    next: AtomicUsize,
}

/// A chunk's slot from the time when its copy was submitted.
#[derive(Default)]
struct Arrival {
    submitted: AtomicBool,
    start: AtomicPtr<u8>,
    slot: Mutex<Option<Slot>>,
}

impl<'a> Download<'a> {
    pub(crate) fn new(
        stream: &'a Stream,
        yard: Yard<'a>,
        haul: Haul,
        share: Share<'a>,
        chunks: Vec<Chunk>,
    ) -> Self {
        Self {
            stream,
            yard,
            haul,
            share,
            chunks: chunks
                .into_iter()
                .map(|chunk| (chunk, Arrival::default()))
                .collect(),
            next: AtomicUsize::new(0),
        }
    }

    pub(crate) fn relay(&self) -> Relay {
        Relay::new(
            self.chunks
                .iter()
                .map(|(chunk, _)| plan::slices(chunk.wire.len())),
        )
    }

    /// Submit the first chunks, as many as there are slots for.
    pub(crate) fn start(&self, relay: &Relay) -> Result<()> {
        let mut slot = self.share.take(relay)?;
        while let Some(free) = slot {
            if !self.fetch_next(free)? {
                break;
            }
            slot = self.share.take_another();
        }
        Ok(())
    }

    /// Let the next chunk come into `slot`. False when there is none.
    fn fetch_next(&self, slot: Slot) -> Result<bool> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let Some((chunk, arrival)) = self.chunks.get(next) else {
            self.share.put(slot);
            return Ok(false);
        };
        let slot = mark(self.stream, &self.share, slot, |slot| {
            // SAFETY: `mark` keeps the slot until the device is done, and the places are borrowed
            // until the submission ends and kept by their books from then on.
            unsafe { self.yard.fetch(chunk, slot) }
        })?;
        *guard(&arrival.slot) = Some(slot);
        arrival.submitted.store(true, Ordering::Release);
        Ok(true)
    }

    fn stores(&self) -> Stores {
        if self.haul.host_bytes(self.yard.route.wire_bytes()) >= STREAMED_BYTES {
            Stores::Streaming
        } else {
            Stores::Cached
        }
    }
}

impl Chunks for Download<'_> {
    fn open(&self, chunk: usize, relay: &Relay) -> Result<bool> {
        let arrival = &self.chunks[chunk].1;
        if !relay.wait_for(|| arrival.submitted.load(Ordering::Acquire)) {
            return Ok(false);
        }
        let slot = guard(&arrival.slot).take().expect("submitted before");
        let slot = self.share.settled(slot)?;
        arrival.start.store(slot.start(), Ordering::Relaxed);
        *guard(&arrival.slot) = Some(slot);
        Ok(true)
    }

    fn slice(&self, chunk: usize, slice: usize) {
        let (chunk, arrival) = &self.chunks[chunk];
        let start = arrival.start.load(Ordering::Relaxed);
        let layout = Layout::of(self.yard.route, chunk, self.share.slot_bytes());
        for part in self
            .yard
            .route
            .parts(chunk, plan::slice(&chunk.wire, slice))
        {
            // SAFETY: the target is borrowed exclusively until the download returns, and this part
            // of it is this slice's alone; the device has filled the slot and let go of it.
            unsafe {
                let source = start.add(layout.offset(part.at()));
                let target = part.leg.host.add(self.haul.host_bytes(part.skip));
                self.haul.carry(source, target, part.bytes, self.stores());
            }
        }
    }

    fn close(&self, chunk: usize) -> Result<()> {
        let slot = guard(&self.chunks[chunk].1.slot).take();
        let slot = slot.expect("opened before");
        match self.share.spare(slot) {
            Some(slot) => self.fetch_next(slot).map(|_| ()),
            // The slots that are left fetch the rest.
            None => Ok(()),
        }
    }
}

impl Drop for Download<'_> {
    /// Chunks that nobody wants any more, since something failed, are still on their way: their
    /// slots carry the fences.
    fn drop(&mut self) {
        for (_, arrival) in &self.chunks {
            if let Some(slot) = guard(&arrival.slot).take() {
                self.share.put(slot);
            }
        }
    }
}
