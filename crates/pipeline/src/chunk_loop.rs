//! The loop over chunks: upload a group, launch the kernel on each, bring back the results.

use super::download::ChunkTarget;
use super::error::{Cause, PipelineError, RunResult, StageKind};
use super::kernel_call::{Chunk, KernelCall, RunSummary, Stage};
use super::pipeline::Pipeline;
use super::stage_recorder::{Recorder, StageStream};
use super::upload::{ChunkSource, UploadContext};
use pinlane_core::memory::{DeviceSlice, DeviceSliceMut};
use pinlane_core::{DeviceBuf, Error, Result, Scope};

/// Device buffers of one chunk.
pub(super) struct ChunkBuffers {
    /// `None` if the input is on the device already, and while the drain thread has the buffer.
    inputs: Vec<Option<DeviceBuf<u8>>>,
    /// `None` if the kernel works in place or writes to its final place, and while it is drained.
    output: Option<DeviceBuf<u8>>,
}

/// A run in progress.
pub(super) struct ChunkLoop<'r, 'a, 'k> {
    pub(super) pipeline: &'r Pipeline,
    pub(super) sources: Vec<ChunkSource<'a>>,
    pub(super) middle: KernelCall<'k>,
    pub(super) store: ChunkTarget<'a>,
    pub(super) items_at_most: usize,
    pub(super) recorder: Option<&'r Recorder>,
    pub(super) buffers: Vec<ChunkBuffers>,
    /// How many chunks may have buffers.
    pub(super) slots: usize,
}

impl<'r, 'a> ChunkLoop<'r, 'a, '_> {
    /// Runs all chunks.
    pub(super) fn all(&mut self) -> RunResult<RunSummary> {
        let mut flowed = None;
        // On failure too: everything submitted ends before this returns.
        let mut ended = self.pipeline.device.scope(|scope| {
            flowed = Some(self.chunks(scope));
            Ok(())
        });
        let streams = self.pipeline.streams.iter();
        for stream in streams.chain([&self.pipeline.upload_stream]) {
            ended = ended.and(stream.synchronize());
        }
        let mut ended = ended.map_err(PipelineError::setup);
        for source in &mut self.sources {
            ended = ended.and(source.finish());
        }
        self.store.finish(&self.pipeline.cache);
        for slot in self.buffers.drain(..) {
            let buffers = slot.inputs.into_iter().chain([slot.output]).flatten();
            buffers.for_each(|buffer| self.pipeline.cache.put_device(buffer));
        }
        match (flowed.expect("set in the scope"), ended) {
            (Err(first), Err(error)) => {
                if let Cause::Pinlane(error) = error.cause {
                    self.pipeline.cache.note(error);
                }
                Err(first)
            }
            (flowed, ended) => flowed.and_then(|flowed| ended.map(|()| flowed)),
        }
    }

    fn chunks<'scope>(&mut self, scope: &'scope Scope<'scope, 'a>) -> RunResult<RunSummary> {
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
                        .prepare(self.items_at_most, &self.pipeline.cache)?;
                }
                group.push(Chunk {
                    number,
                    first_item,
                    items,
                });
                number += 1;
                first_item += items;
            }
            group.iter().try_for_each(|chunk| self.launch(chunk))?;
            group
                .iter()
                .try_for_each(|chunk| self.store(chunk, scope))?;
            if group.len() < self.pipeline.config.group() {
                return Ok(RunSummary {
                    chunks: number,
                    items: first_item as u64,
                    spans: Vec::new(),
                });
            }
        }
    }

    /// Uploads all inputs of the next chunk. Returns its items; 0 at the end.
    fn load<'scope>(&mut self, number: u64, scope: &'scope Scope<'scope, 'a>) -> RunResult<usize> {
        if self.sources.iter().all(ChunkSource::is_used_up) {
            return Ok(0);
        }
        let [stream, ..] = self.pipeline.config.streams_of(number);
        let direct = self.stage_stream(stream);
        let slot = self.slot_for(number)?;
        let in_place = matches!(self.middle, KernelCall::InPlace(_));
        let input = &mut self.buffers[slot].inputs[0];
        if in_place && input.is_none() {
            let returned = self.store.returned_device();
            *input = Some(returned.ok_or_else(PipelineError::stopped)?);
        }
        let pipeline = self.pipeline;
        let lanes = StageStream {
            stream: &pipeline.upload_stream,
            number: pipeline.streams.len() + 1,
            recorder: self.recorder,
        };
        let mut context = UploadContext {
            scope,
            stage_stream: lanes,
            cache: &pipeline.cache,
            items_at_most: self.items_at_most,
            slots: pipeline.config.slots,
        };
        let mut all = None;
        for (source, buffer) in self.sources.iter_mut().zip(&mut self.buffers[slot].inputs) {
            context.stage_stream = match source.uses_express_lane() {
                true => lanes,
                false => direct,
            };
            // The first input decides how many items the others load.
            let most = all.filter(|&items| items > 0).unwrap_or(self.items_at_most);
            let target = buffer.as_mut().map(DeviceBuf::whole_mut);
            let other_items = source.load(number, most, target, &context)?;
            let items = *all.get_or_insert(other_items);
            if items != other_items {
                let error = Error::InputsDiffer { items, other_items };
                return Err(PipelineError::at(number, StageKind::Read, error));
            }
        }
        Ok(all.unwrap_or(0))
    }

    fn stage_stream(&self, number: usize) -> StageStream<'r> {
        StageStream {
            stream: &self.pipeline.streams[number],
            number,
            recorder: self.recorder,
        }
    }

    /// Device buffers for a chunk: new ones, or those of an earlier chunk, which streams wait for.
    fn slot_for(&mut self, number: u64) -> RunResult<usize> {
        if self.buffers.len() < self.slots {
            match self.allocate_buffers() {
                Ok(slot) => self.buffers.push(slot),
                // Fewer buffers will do, as long as each chunk of a group has its own.
                Err(error) if self.buffers.len() >= self.pipeline.config.group() => {
                    self.pipeline.cache.note(error);
                    self.slots = self.buffers.len();
                }
                Err(error) => return Err(PipelineError::at(number, StageKind::Upload, error)),
            }
        }
        Ok(self.slot_of(number))
    }

    fn slot_of(&self, number: u64) -> usize {
        (number % self.buffers.len() as u64) as usize
    }

    fn allocate_buffers(&self) -> Result<ChunkBuffers> {
        let cache = &self.pipeline.cache;
        let in_place = matches!(self.middle, KernelCall::InPlace(_));
        let allocate = |needed: bool, item_bytes| {
            let buffer = needed.then(|| cache.device(item_bytes * self.items_at_most));
            buffer.transpose()
        };
        let inputs = self.sources.iter().map(|source| {
            let needed = in_place || !source.is_on_device();
            allocate(needed, source.item_bytes)
        });
        Ok(ChunkBuffers {
            inputs: inputs.collect::<Result<_>>()?,
            output: allocate(!in_place && !self.store.keeps(), self.store.item_bytes)?,
        })
    }

    /// Launches the kernel on a chunk.
    fn launch(&mut self, chunk: &Chunk) -> RunResult<()> {
        let failed = |error| PipelineError::at(chunk.number, StageKind::Kernel, error);
        let [_, number, _] = self.pipeline.config.streams_of(chunk.number);
        let stage_stream = self.stage_stream(number);
        let stage = Stage {
            stream: stage_stream.stream,
            chunk: *chunk,
        };
        let at = self.slot_of(chunk.number);
        let slot = &mut self.buffers[at];
        let kept = self.store.kept(chunk).map_err(failed)?;
        let bytes = chunk.items * self.store.item_bytes;
        let sources = &self.sources;
        let launched = match &mut self.middle {
            KernelCall::InPlace(kernel) => {
                let data = slot.inputs[0].as_mut().expect("loaded before");
                let mut data = data.range_mut(..bytes);
                let kept_touch = kept.as_ref().map(DeviceSliceMut::touch);
                let touches: Vec<_> = [data.touch()].into_iter().chain(kept_touch).collect();
                stage_stream.submit(StageKind::Kernel, chunk.number, &touches, |_| {
                    kernel(&stage, data.reborrow())?;
                    match kept {
                        Some(kept) => stage.stream.copy_on_device(data.as_read(), kept),
                        None => Ok(()),
                    }
                })
            }
            KernelCall::OutOfPlace(kernel) => {
                if kept.is_none() && slot.output.is_none() {
                    let returned = self.store.returned_device();
                    slot.output = Some(returned.ok_or_else(PipelineError::stopped)?);
                }
                let inputs = slot.inputs.iter().zip(sources);
                let inputs: Vec<DeviceSlice<'_, u8>> = inputs
                    .map(|(buffer, source)| match buffer {
                        Some(buffer) => buffer.range(..chunk.items * source.item_bytes),
                        None => source.device_chunk(chunk.first_item, chunk.items),
                    })
                    .collect();
                let output = kept.unwrap_or_else(|| {
                    let output = slot.output.as_mut().expect("there, as was seen to");
                    output.range_mut(..bytes)
                });
                let mut touches: Vec<_> = inputs.iter().map(DeviceSlice::touch).collect();
                touches.push(output.touch());
                stage_stream.submit(StageKind::Kernel, chunk.number, &touches, |_| {
                    kernel(&stage, &inputs, output)
                })
            }
        };
        launched.map_err(failed)
    }

    /// Brings the results of a chunk back.
    fn store<'scope>(&mut self, chunk: &Chunk, scope: &'scope Scope<'scope, 'a>) -> RunResult<()> {
        let [.., number] = self.pipeline.config.streams_of(chunk.number);
        let stage_stream = self.stage_stream(number);
        let at = self.slot_of(chunk.number);
        let slot = &mut self.buffers[at];
        let buffer = match self.middle {
            KernelCall::InPlace(_) => &mut slot.inputs[0],
            KernelCall::OutOfPlace(_) => &mut slot.output,
        };
        let cache = &self.pipeline.cache;
        self.store.store(chunk, buffer, stage_stream, scope, cache)
    }
}
