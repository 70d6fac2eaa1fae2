//! Setting up a run of a pipeline.

use std::sync::mpsc;

use super::chunk_loop::ChunkLoop;
use super::drain_thread::{DrainError, DrainTarget, DrainThread};
use super::error::{PipelineError, RunResult};
use super::pipeline::Pipeline;
use super::record::{Recorder, StageStream};
use super::source::ChunkSource;
use super::stage::{KernelCall, RunSummary};
use super::target::{ChunkTarget, DrainChannels, TargetKind, TargetSpec, TargetState};
use pinlane_core::{Error, Result};

impl Pipeline {
    pub(super) fn flow<R>(
        &self,
        sources: Vec<ChunkSource<'_>>,
        middle: KernelCall<'_>,
        spec: TargetSpec<'_>,
        work: impl FnOnce() -> R,
    ) -> RunResult<(RunSummary, R)> {
        check_lengths(&sources, &spec)?;
        let widest = sources.iter().map(|source| source.item_bytes);
        let widest = widest.chain([spec.item_bytes]).max().unwrap_or(1);
        let items_at_most = (self.config.chunk_bytes / widest).max(1);
        // Short inputs get short buffers.
        let mut known = sources.iter().map(ChunkSource::known_items);
        let longest = known.try_fold(1, |most, items| Some(items?.max(most)));
        let items_at_most = items_at_most.min(longest.unwrap_or(usize::MAX));
        let record = || Recorder::begin(&self.device, &self.streams[0]);
        let recorder = self.config.record.then(record).transpose()?;
        let TargetSpec { target, item_bytes } = spec;
        let run = |way| {
            let mut run = ChunkLoop {
                pipeline: self,
                sources,
                middle,
                store: ChunkTarget { way, item_bytes },
                items_at_most,
                recorder: recorder.as_ref(),
                buffers: Vec::new(),
                slots: self.config.slots,
            };
            run.all(work)
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
        let (mut flow, worked) = flowed?;
        if let Some(recorder) = recorder {
            self.download_stream.synchronize()?; // the other streams are idle by now
            flow.spans = recorder.end()?;
        }
        Ok((flow, worked))
    }

    /// Runs with a drain thread.
    fn drained<R>(
        &self,
        bin: DrainTarget<'_>,
        recorder: Option<&Recorder>,
        run: impl FnOnce(DrainChannels) -> RunResult<R>,
    ) -> RunResult<R> {
        let (finished, landed) = mpsc::channel();
        let (give_back, returned) = mpsc::channel();
        let drain = DrainThread {
            bin,
            stage_stream: StageStream {
                stream: &self.download_stream,
                number: self.streams.len(),
                recorder,
            },
            cache: &self.cache,
        };
        std::thread::scope(|threads| {
            let thread = std::thread::Builder::new().name("pinlane-drain".to_owned());
            let emptying = thread
                .spawn_scoped(threads, move || drain.run(&landed, &give_back))
                .map_err(PipelineError::setup)?;
            let ran = run(DrainChannels::new(finished, returned, self.config.slots));
            match emptying.join() {
                Ok(Ok(())) => ran,
                // The drain thread failed at an earlier chunk.
                Ok(Err(DrainError::Chunk(error))) => Err(error),
                Ok(Err(DrainError::Flush(error))) => ran.and(Err(error)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

/// Checks that known lengths agree.
pub(super) fn check_lengths(sources: &[ChunkSource<'_>], spec: &TargetSpec<'_>) -> Result<()> {
    let items = sources.iter().find_map(ChunkSource::known_items);
    let room = spec.known_bytes().map(|bytes| bytes / spec.item_bytes);
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
