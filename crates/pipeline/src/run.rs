//! The loop: load a group of chunks, launch the kernel on each, store what it gave.

use super::Pipeline;
use super::error::{Cause, PipelineError, StageKind};
use super::flow::{Chunk, Flow, Middle, Stage};
use super::load::{Bays, Dock, Feed};
use super::record::{Recorder, Track};
use super::store::Store;
use pinlane_core::memory::{DeviceSlice, DeviceSliceMut};
use pinlane_core::{DeviceBuf, Error, Result, Scope};

/// Device buffers of one chunk.
pub(super) struct Bay {
    inputs: Bays,
    /// `None` where the kernel works in place or its results stay on the device, and while the
    /// buffer is being emptied.
    output: Option<DeviceBuf<u8>>,
}

/// One run under way.
pub(super) struct Run<'r, 'a, 'k> {
    pub(super) pipeline: &'r Pipeline,
    pub(super) feeds: Vec<Feed<'a>>,
    pub(super) middle: Middle<'k>,
    pub(super) store: Store<'a>,
    pub(super) item_bytes: usize,
    pub(super) items_at_most: usize,
    pub(super) recorder: Option<&'r Recorder>,
    pub(super) bays: Vec<Bay>,
    /// How many there may be.
    pub(super) slots: usize,
}

impl<'r, 'a> Run<'r, 'a, '_> {
    /// All chunks, and `work` when they are submitted.
    pub(super) fn all<R>(
        &mut self,
        work: impl FnOnce() -> R,
    ) -> std::result::Result<(Flow, R), PipelineError> {
        let device = &self.pipeline.device;
        let mut flowed = None;
        let settled = device.scope(|scope| {
            let chunks = self.chunks(scope);
            self.store.close(); // who waits for the results to end need not wait for the host's work
            flowed = Some(chunks.map(|counts| (counts, work())));
            Ok(())
        });
        // Also where it failed: everything submitted ends before this returns.
        let mut ended = settled;
        for stream in self.pipeline.streams.iter().chain([&self.pipeline.forth]) {
            ended = ended.and(stream.synchronize());
        }
        let mut ended = ended.map_err(PipelineError::setup);
        for feed in &mut self.feeds {
            ended = ended.and(feed.finish());
        }
        self.store.finish(&self.pipeline.shelf);
        for bay in self.bays.drain(..) {
            let buffers = bay.inputs.into_iter().chain([bay.output]).flatten();
            buffers.for_each(|buffer| self.pipeline.shelf.put_device(buffer));
        }
        let ((chunks, items), worked) = match (flowed.expect("set in the scope"), ended) {
            (Ok(flowed), Ok(())) => flowed,
            (Ok(_), Err(error)) => return Err(error),
            (Err(first), ended) => {
                if let Err(PipelineError {
                    cause: Cause::Pinlane(error),
                    ..
                }) = ended
                {
                    self.pipeline.shelf.note(error);
                }
                return Err(first);
            }
        };
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
                if number == 0 {
                    // Before a group of inputs takes all memory that can be pinned.
                    self.store
                        .prepare(self.items_at_most, &self.pipeline.shelf)?;
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
                    return Err(PipelineError::stopped());
                }
            }
            for chunk in &group {
                if !self.store(chunk, scope)? {
                    return Err(PipelineError::stopped());
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
        if self.feeds.iter().all(Feed::is_used_up) {
            return Ok(0);
        }
        let [stream, ..] = self.pipeline.config.streams_of(number);
        let bay = self.bay(number)?;
        let in_place = matches!(self.middle, Middle::InPlace(_));
        let input = &mut self.bays[bay].inputs[0];
        if in_place && input.is_none() {
            *input = self.store.returned_device();
            if input.is_none() {
                return Err(PipelineError::stopped());
            }
        }
        let pipeline = self.pipeline;
        let lanes = Track {
            stream: &pipeline.forth,
            number: pipeline.streams.len() + 1,
            recorder: self.recorder,
        };
        let mut dock = Dock {
            scope,
            track: lanes,
            shelf: &pipeline.shelf,
            items_at_most: self.items_at_most,
            slots: pipeline.config.slots,
        };
        let mut all = None;
        for index in 0..self.feeds.len() {
            dock.track = match self.feeds[index].goes_by_lanes() {
                true => lanes,
                false => self.track(stream),
            };
            let feed = &mut self.feeds[index];
            let target = self.bays[bay].inputs[index].as_mut();
            // What was loaded first decides for the others.
            let most = match all {
                None | Some(0) => self.items_at_most,
                Some(items) => items,
            };
            let items = feed.load(number, most, target.map(DeviceBuf::whole_mut), &dock)?;
            match all {
                Some(first) if first != items => {
                    let error = Error::InputsDiffer {
                        items: first,
                        other_items: items,
                    };
                    return Err(PipelineError::at(number, StageKind::Read, error));
                }
                _ => all = Some(items),
            }
        }
        Ok(all.unwrap_or(0))
    }

    fn track(&self, number: usize) -> Track<'r> {
        Track {
            stream: &self.pipeline.streams[number],
            number,
            recorder: self.recorder,
        }
    }

    /// Device buffers for a chunk: new ones, or those of an earlier chunk, for which the streams
    /// wait by themselves.
    fn bay(&mut self, number: u64) -> std::result::Result<usize, PipelineError> {
        if self.bays.len() < self.slots {
            match self.new_bay() {
                Ok(bay) => self.bays.push(bay),
                // Fewer will do, as long as a group has one each.
                Err(error) if self.bays.len() >= self.pipeline.config.group() => {
                    self.pipeline.shelf.note(error);
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
        let track = self.track(number);
        let stage = Stage {
            stream: track.stream,
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
                let mut data = data.range_mut(..bytes);
                let kept_touch = kept.as_ref().map(DeviceSliceMut::touch);
                let touches: Vec<_> = [data.touch()].into_iter().chain(kept_touch).collect();
                track.submit(StageKind::Kernel, chunk.number, &touches, |_| {
                    kernel(&stage, data.reborrow())?;
                    match kept {
                        Some(kept) => stage.stream.copy_on_device(data.as_read(), kept),
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
                let mut touches: Vec<_> = inputs.iter().map(DeviceSlice::touch).collect();
                touches.push(output.touch());
                track.submit(StageKind::Kernel, chunk.number, &touches, |_| {
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
        let track = self.track(number);
        let at = self.bay_of(chunk.number);
        let bay = &mut self.bays[at];
        let buffer = match self.middle {
            Middle::InPlace(_) => &mut bay.inputs[0],
            Middle::Apart(_) => &mut bay.output,
        };
        let shelf = &self.pipeline.shelf;
        self.store.store(chunk, buffer, track, scope, shelf)
    }
}
