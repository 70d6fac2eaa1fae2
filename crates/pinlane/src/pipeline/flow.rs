//! The loop: load a group of chunks, launch the kernel on each, store what it gave.

use std::sync::mpsc;

use super::Pipeline;
use super::drain::{Bin, Drain};
use super::error::{PipelineError, StageKind};
use super::load::{Bays, Dock, Feed};
use super::record::{Recorded, Recorder};
use super::store::{Sink, Store, Target};
use crate::memory::{DeviceSlice, DeviceSliceMut};
use crate::{DeviceBuf, Error, Result, Scope, Stream};

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
    stream: &'a Stream,
    chunk: Chunk,
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

/// Device buffers of one chunk.
struct Bay {
    inputs: Bays,
    /// `None` where the kernel works in place or its results stay on the device, and while the
    /// buffer is being emptied.
    output: Option<DeviceBuf<u8>>,
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
                store_is_express: room_bytes.is_some(),
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
            flow.spans = recorder.end()?;
            // The end of the input was looked for, too.
            flow.spans.retain(|span| span.chunk < flow.chunks);
        }
        Ok((flow, worked))
    }

    /// Run with a thread that empties what comes back.
    fn drained<R>(
        &self,
        bin: Bin<'_>,
        recorder: Option<&Recorder>,
        run: impl FnOnce(
            (
                mpsc::Sender<super::drain::Landing>,
                mpsc::Receiver<super::drain::Returned>,
            ),
        ) -> std::result::Result<R, PipelineError>,
    ) -> std::result::Result<R, PipelineError> {
        let (landings, landed) = mpsc::channel();
        let (give_back, returned) = mpsc::channel();
        let drain = Drain {
            bin,
            stream: &self.back,
            shelf: &self.shelf,
            recorder,
        };
        std::thread::scope(|threads| {
            let emptying = threads.spawn(move || drain.run(&landed, &give_back));
            let ran = run((landings, returned));
            let emptied = match emptying.join() {
                Ok(emptied) => emptied,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            // Where both failed, the emptying thread was at an earlier chunk.
            emptied.and(ran)
        })
    }
}

/// One run under way.
struct Run<'r, 'a, 'k> {
    pipeline: &'r Pipeline,
    feeds: Vec<Feed<'a>>,
    middle: Middle<'k>,
    store: Store<'a>,
    item_bytes: usize,
    items_at_most: usize,
    recorder: Option<&'r Recorder>,
    store_is_express: bool,
    bays: Vec<Bay>,
    /// How many there may be.
    slots: usize,
}

impl<'a> Run<'_, 'a, '_> {
    /// All chunks, and `work` when they are submitted.
    fn all<R>(
        &mut self,
        work: impl FnOnce() -> R,
    ) -> std::result::Result<(Flow, R), PipelineError> {
        let device = &self.pipeline.device;
        let mut flowed = None;
        let settled = device.scope(|scope| {
            let chunks = self.chunks(scope);
            flowed = Some(chunks.map(|counts| (counts, work())));
            Ok(())
        });
        // Also where it failed: everything submitted ends before this returns.
        let mut ended = settled;
        for stream in &self.pipeline.streams {
            ended = ended.and(stream.synchronize());
        }
        for feed in &mut self.feeds {
            ended = ended.and(feed.finish(&self.pipeline.shelf));
        }
        for bay in self.bays.drain(..) {
            let buffers = bay.inputs.into_iter().chain([bay.output]).flatten();
            buffers.for_each(|buffer| self.pipeline.shelf.put_device(buffer));
        }
        let ((chunks, items), worked) = flowed.expect("set in the scope")?;
        ended?;
        let flow = Flow {
            chunks,
            items,
            spans: Vec::new(),
        };
        Ok((flow, worked))
    }

    fn chunks<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, 'a>,
    ) -> std::result::Result<(u64, u64), PipelineError> {
        let (mut number, mut first_item) = (0, 0);
        let mut group = Vec::with_capacity(self.pipeline.config.group());
        loop {
            group.clear();
            while group.len() < self.pipeline.config.group() {
                let items = self.load(number, scope)?;
                if items == 0 {
                    break;
                }
                group.push(Chunk {
                    number,
                    first_item,
                    items,
                });
                number += 1;
                first_item += items;
            }
            for chunk in &group {
                if !self.launch(chunk)? {
                    return Ok((number, first_item as u64)); // the emptying thread knows why
                }
            }
            for chunk in &group {
                if !self.store(chunk, scope)? {
                    return Ok((number, first_item as u64)); // as above
                }
            }
            if group.len() < self.pipeline.config.group() {
                return Ok((number, first_item as u64));
            }
        }
    }

    /// Load all inputs of the next chunk. How many items; 0 at the end.
    fn load<'scope>(
        &mut self,
        number: u64,
        scope: &'scope Scope<'scope, 'a>,
    ) -> std::result::Result<usize, PipelineError> {
        let [stream, ..] = self.pipeline.config.streams_of(number);
        let bay = self.bay(number)?;
        let in_place = matches!(self.middle, Middle::InPlace(_));
        let input = &mut self.bays[bay].inputs[0];
        if in_place && input.is_none() {
            *input = self.store.returned_device();
            if input.is_none() {
                return Ok(0); // the emptying thread has stopped
            }
        }
        let pipeline = self.pipeline;
        let dock = Dock {
            scope,
            stream: &pipeline.streams[stream],
            shelf: &pipeline.shelf,
            slots: pipeline.config.slots,
        };
        let mut all = None;
        for (index, feed) in self.feeds.iter_mut().enumerate() {
            let target = self.bays[bay].inputs[index].as_mut();
            // What was loaded first decides for the others.
            let most = match all {
                None | Some(0) => self.items_at_most,
                Some(items) => items,
            };
            let load = || feed.load(number, most, target.map(DeviceBuf::whole_mut), &dock);
            let items = match self.recorder {
                Some(recorder) => {
                    let mut loaded = Ok(0);
                    let around =
                        recorder.around(StageKind::Upload, number, stream, dock.stream, || {
                            loaded = load();
                            Ok(())
                        });
                    around.map_err(|error| PipelineError::at(number, StageKind::Upload, error))?;
                    loaded?
                }
                None => load()?,
            };
            match all {
                Some(first) if first != items => {
                    let error = Error::LengthMismatch {
                        source_len: first,
                        target_len: items,
                    };
                    return Err(PipelineError::at(number, StageKind::Read, error));
                }
                _ => all = Some(items),
            }
        }
        Ok(all.unwrap_or(0))
    }

    /// Device buffers for a chunk: new ones, or those of an earlier chunk, for which the streams
    /// wait by themselves.
    fn bay(&mut self, number: u64) -> std::result::Result<usize, PipelineError> {
        if self.bays.len() < self.slots {
            match self.new_bay() {
                Ok(bay) => self.bays.push(bay),
                // Fewer will do, as long as a group has one each.
                Err(_) if self.bays.len() >= self.pipeline.config.group() => {
                    self.slots = self.bays.len();
                }
                Err(error) => return Err(PipelineError::at(number, StageKind::Upload, error)),
            }
        }
        Ok(self.bay_of(number))
    }

    fn bay_of(&self, number: u64) -> usize {
        (number % self.bays.len() as u64) as usize
    }

    fn new_bay(&self) -> Result<Bay> {
        let shelf = &self.pipeline.shelf;
        let in_place = matches!(self.middle, Middle::InPlace(_));
        let inputs = self
            .feeds
            .iter()
            .map(|feed| match feed.is_there() && !in_place {
                true => Ok(None),
                false => shelf.device(feed.item_bytes * self.items_at_most).map(Some),
            });
        let inputs = inputs.collect::<Result<_>>()?;
        let output = match in_place || self.store.keeps() {
            true => None,
            false => Some(shelf.device(self.item_bytes * self.items_at_most)?),
        };
        Ok(Bay { inputs, output })
    }

    /// Launch the kernel on a chunk. `false` when the emptying thread has stopped.
    fn launch(&mut self, chunk: &Chunk) -> std::result::Result<bool, PipelineError> {
        let failed = |error| PipelineError::at(chunk.number, StageKind::Kernel, error);
        let [_, number, _] = self.pipeline.config.streams_of(chunk.number);
        let stage = Stage {
            stream: &self.pipeline.streams[number],
            chunk: *chunk,
        };
        let at = self.bay_of(chunk.number);
        let bay = &mut self.bays[at];
        let kept = self.store.kept(chunk).map_err(failed)?;
        let bytes = chunk.items * self.item_bytes;
        let feeds = &self.feeds;
        let launched = match &mut self.middle {
            Middle::InPlace(kernel) => {
                let data = bay.inputs[0].as_mut().expect("loaded before");
                around(self.recorder, &stage, number, || {
                    kernel(&stage, data.range_mut(..bytes))?;
                    match kept {
                        Some(kept) => stage.stream.copy_on_device(data.range(..bytes), kept),
                        None => Ok(()),
                    }
                })
            }
            Middle::Apart(kernel) => {
                if kept.is_none() && bay.output.is_none() {
                    bay.output = self.store.returned_device();
                    if bay.output.is_none() {
                        return Ok(false);
                    }
                }
                let inputs = bay.inputs.iter().zip(feeds);
                let inputs: Vec<DeviceSlice<'_, u8>> = inputs
                    .map(|(buffer, feed)| match buffer {
                        Some(buffer) => buffer.range(..chunk.items * feed.item_bytes),
                        None => feed.there(chunk.first_item, chunk.items),
                    })
                    .collect();
                let output = match kept {
                    Some(kept) => kept,
                    None => {
                        let output = bay.output.as_mut().expect("there, as was seen to");
                        output.range_mut(..bytes)
                    }
                };
                around(self.recorder, &stage, number, || {
                    kernel(&stage, &inputs, output)
                })
            }
        };
        launched.map(|()| true).map_err(failed)
    }

    /// Bring a chunk's results where they belong. `false` when the emptying thread has stopped.
    fn store<'scope>(
        &mut self,
        chunk: &Chunk,
        scope: &'scope Scope<'scope, 'a>,
    ) -> std::result::Result<bool, PipelineError> {
        let [.., number] = self.pipeline.config.streams_of(chunk.number);
        let stream = &self.pipeline.streams[number];
        let at = self.bay_of(chunk.number);
        let bay = &mut self.bays[at];
        let buffer = match self.middle {
            Middle::InPlace(_) => &mut bay.inputs[0],
            Middle::Apart(_) => &mut bay.output,
        };
        let shelf = &self.pipeline.shelf;
        let mut store = || self.store.store(chunk, buffer, stream, scope, shelf);
        // Chunks for the express lane are recorded where they are emptied.
        let Some(recorder) = self.recorder.filter(|_| !self.store_is_express) else {
            return store();
        };
        let mut stored = Ok(true);
        let recorded = recorder.around(StageKind::Download, chunk.number, number, stream, || {
            stored = store();
            Ok(())
        });
        recorded.map_err(|error| PipelineError::at(chunk.number, StageKind::Download, error))?;
        stored
    }
}

/// Launch, between two events where that is wanted.
fn around(
    recorder: Option<&Recorder>,
    stage: &Stage<'_>,
    stream: usize,
    launch: impl FnOnce() -> Result<()>,
) -> Result<()> {
    match recorder {
        Some(recorder) => {
            let (chunk, on) = (stage.chunk.number, stage.stream);
            recorder.around(StageKind::Kernel, chunk, stream, on, launch)
        }
        None => launch(),
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
