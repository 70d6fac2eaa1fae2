//! Setting up a run of a pipeline.

use std::panic::resume_unwind;
use std::thread;

use super::chunk_loop::ChunkLoop;
use super::download::{ChunkTarget, DrainChannels, TargetKind, TargetSpec, TargetState};
use super::drain_thread::{DrainError, DrainTarget, DrainThread};
use super::error::{PipelineError, RunResult};
use super::kernel_call::RunSummary;
use super::pipeline::{Pipeline, RunParts};
use super::stage_recorder::{Recorder, StageStream};
use super::upload::ChunkSource;
use pinlane_core::internal::HostThreads;

impl Pipeline {
    /// Runs all chunks.
    pub(super) fn flow(&self, parts: RunParts<'_, '_>) -> RunResult<RunSummary> {
        let RunParts {
            sources,
            kernel,
            target: TargetSpec { target, item_bytes },
        } = parts;
        let widest = sources.iter().map(|source| source.item_bytes);
        let widest = widest.chain([item_bytes]).max().unwrap_or(1);
        let items_at_most = (self.config.chunk_bytes / widest).max(1);
        // Short inputs get short buffers.
        let mut known = sources.iter().map(ChunkSource::known_items);
        let longest = known.try_fold(1, |most, items| Some(items?.max(most)));
        let items_at_most = items_at_most.min(longest.unwrap_or(usize::MAX));
        let record = || Recorder::begin(&self.device, &self.streams[0]);
        let recorder = self.config.record.then(record).transpose()?;
        let run = |way| {
            let mut run = ChunkLoop {
                pipeline: self,
                sources,
                middle: kernel,
                store: ChunkTarget { way, item_bytes },
                items_at_most,
                recorder: recorder.as_ref(),
                buffers: Vec::new(),
                slots: self.config.slots,
            };
            run.all()
        };
        let flowed = match target {
            TargetKind::Pinned(target) => run(TargetState::Pinned(Some(target))),
            TargetKind::Device(target) => run(TargetState::Device(Some(target))),
            TargetKind::Pageable(memory) => {
                let room_bytes = memory.len();
                self.drained(DrainTarget::Memory(memory), recorder.as_ref(), |channels| {
                    run(TargetState::Express(channels, room_bytes))
                })
            }
            TargetKind::Each(take) => {
                self.drained(DrainTarget::Taker(take), recorder.as_ref(), |channels| {
                    run(TargetState::Each(channels))
                })
            }
        };
        let mut flow = flowed?;
        if let Some(recorder) = recorder {
            self.download_stream.synchronize()?; // the other streams are idle by now
            flow.spans = recorder.end()?;
        }
        Ok(flow)
    }

    /// Runs with a drain thread.
    fn drained(
        &self,
        bin: DrainTarget<'_>,
        recorder: Option<&Recorder>,
        run: impl FnOnce(DrainChannels) -> RunResult<RunSummary>,
    ) -> RunResult<RunSummary> {
        let host = HostThreads::begin(&self.device);
        let (finished, landed) = host.channel();
        let (give_back, returned) = host.channel();
        let drain = DrainThread {
            bin,
            stage_stream: StageStream {
                stream: &self.download_stream,
                number: self.streams.len(),
                recorder,
            },
            cache: &self.cache,
        };
        thread::scope(|scope| {
            let emptying = host
                .spawn(scope, "pinlane-drain", move || {
                    drain.run(&landed, &give_back)
                })
                .map_err(PipelineError::setup)?;
            let ran = run(DrainChannels::new(finished, returned, self.config.slots));
            match emptying.join() {
                Ok(Ok(())) => ran,
                // The drain thread failed at an earlier chunk.
                Ok(Err(DrainError::Chunk(error))) => Err(error),
                Ok(Err(DrainError::Flush(error))) => ran.and(Err(error)),
                Err(panic) => resume_unwind(panic),
            }
        })
    }

    /// Runs `work` on another thread beside `run`, and returns when both are done. A panic of either goes on then.
    pub(super) fn meanwhile<R: Send>(
        &self,
        work: impl FnOnce() -> R + Send,
        run: impl FnOnce() -> RunResult<RunSummary>,
    ) -> RunResult<(RunSummary, R)> {
        let host = HostThreads::begin(&self.device);
        thread::scope(|scope| {
            let working = host.spawn(scope, "pinlane-work", work);
            let working = working.map_err(PipelineError::setup)?;
            let ran = run();
            let worked = working.join().unwrap_or_else(|panic| resume_unwind(panic));
            Ok((ran?, worked))
        })
    }
}
