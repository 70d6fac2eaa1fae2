//! A run from its beginning to its end: what it is given, and what it tells.

use std::sync::mpsc;

use super::Pipeline;
use super::drain::{Bin, Drain, Failed, Landing, Returned};
use super::error::PipelineError;
use super::load::Feed;
use super::record::{Recorded, Recorder, Track};
use super::run::Run;
use super::store::{Sink, Store, Target};
use pinlane_core::memory::{DeviceSlice, DeviceSliceMut};
use pinlane_core::{Error, Result, Stream};

/// What a run did.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Flow {
    /// Chunks that went through.
    pub chunks: u64,
    /// Items of all chunks.
    pub items: u64,
    /// When each stage of each chunk was on the device, where
    /// [`record`](super::PipelineConfig::record) is set; by the time that it ended.
    pub spans: Vec<Recorded>,
}

/// Where a kernel is launched, and for which chunk.
#[derive(Debug)]
pub struct Stage<'a> {
    pub(super) stream: &'a Stream,
    pub(super) chunk: Chunk,
}

/// Some items, one behind the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub(super) number: u64,
    pub(super) first_item: usize,
    pub(super) items: usize,
}

impl Stage<'_> {
    /// The stream to submit to.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        self.stream
    }

    /// Number of the chunk, from 0.
    #[must_use]
    pub fn chunk(&self) -> u64 {
        self.chunk.number
    }

    /// Items before this chunk.
    #[must_use]
    pub fn first_item(&self) -> usize {
        self.chunk.first_item
    }

    /// Items of this chunk.
    #[must_use]
    pub fn items(&self) -> usize {
        self.chunk.items
    }
}

pub(super) type Apart<'k> =
    &'k mut dyn FnMut(&Stage<'_>, &[DeviceSlice<'_, u8>], DeviceSliceMut<'_, u8>) -> Result<()>;
pub(super) type InPlace<'k> = &'k mut dyn FnMut(&Stage<'_>, DeviceSliceMut<'_, u8>) -> Result<()>;

/// What launches the kernel.
pub(super) enum Middle<'k> {
    Apart(Apart<'k>),
    InPlace(InPlace<'k>),
}

impl Pipeline {
    pub(super) fn flow<R>(
        &self,
        feeds: Vec<Feed<'_>>,
        middle: Middle<'_>,
        sink: Sink<'_>,
        work: impl FnOnce() -> R,
    ) -> std::result::Result<(Flow, R), PipelineError> {
        check_lengths(&feeds, &sink)?;
        let widest = feeds.iter().map(|feed| feed.item_bytes);
        let widest = widest.chain([sink.item_bytes]).max().unwrap_or(1);
        let items_at_most = (self.config.chunk_bytes / widest).max(1);
        // Short inputs need no long buffers.
        let mut known = feeds.iter().map(Feed::known_items);
        let items_at_most = match known.try_fold(1, |most, items| Some(items?.max(most))) {
            Some(items) => items_at_most.min(items),
            None => items_at_most,
        };
        let recorder = match self.config.record {
            true => Some(Recorder::begin(&self.device, &self.streams[0])?),
            false => None,
        };
        let Sink { target, item_bytes } = sink;
        let slots = self.config.slots;
        let room_bytes = match &target {
            Target::Pageable(memory) => Some(memory.len()),
            _ => None,
        };
        let run = |store| {
            let mut run = Run {
                pipeline: self,
                feeds,
                middle,
                store,
                item_bytes,
                items_at_most,
                recorder: recorder.as_ref(),
                bays: Vec::new(),
                slots,
            };
            run.all(work)
        };
        let flowed = match target {
            Target::Pinned(target) => run(Store::pinned(target, item_bytes, slots)),
            Target::Device(target) => run(Store::device(target, item_bytes, slots)),
            Target::Pageable(memory) => {
                self.drained(Bin::Memory(memory), recorder.as_ref(), |channels| {
                    run(Store::drained(channels, room_bytes, item_bytes, slots))
                })
            }
            Target::Each(take) => self.drained(Bin::Taker(take), recorder.as_ref(), |channels| {
                run(Store::drained(channels, None, item_bytes, slots))
            }),
        };
        let (mut flow, worked) = flowed?;
        if let Some(recorder) = recorder {
            self.back.synchronize()?; // the others are idle by now
            flow.spans = recorder.end()?;
        }
        Ok((flow, worked))
    }

    /// Run with a thread that empties what comes back.
    fn drained<R>(
        &self,
        bin: Bin<'_>,
        recorder: Option<&Recorder>,
        run: impl FnOnce(
            (mpsc::Sender<Landing>, mpsc::Receiver<Returned>),
        ) -> std::result::Result<R, PipelineError>,
    ) -> std::result::Result<R, PipelineError> {
        let (landings, landed) = mpsc::channel();
        let (give_back, returned) = mpsc::channel();
        let drain = Drain {
            bin,
            track: Track {
                stream: &self.back,
                number: self.streams.len(),
                recorder,
            },
            shelf: &self.shelf,
        };
        std::thread::scope(|threads| {
            let thread = std::thread::Builder::new().name("pinlane-drain".to_owned());
            let emptying = thread
                .spawn_scoped(threads, move || drain.run(&landed, &give_back))
                .map_err(PipelineError::setup)?;
            let ran = run((landings, returned));
            match emptying.join() {
                Ok(Ok(())) => ran,
                // The emptying thread was at an earlier chunk.
                Ok(Err(Failed::Chunk(error))) => Err(error),
                Ok(Err(Failed::Flush(error))) => ran.and(Err(error)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

/// Where all lengths are known, they agree.
fn check_lengths(feeds: &[Feed<'_>], sink: &Sink<'_>) -> Result<()> {
    let items = feeds.iter().find_map(Feed::known_items);
    let room = sink.known_bytes().map(|bytes| bytes / sink.item_bytes);
    match (items, room) {
        (Some(source_len), Some(target_len)) if source_len != target_len => {
            Err(Error::LengthMismatch {
                source_len,
                target_len,
            })
        }
        _ => Ok(()),
    }
}
