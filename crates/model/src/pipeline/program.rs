//! The program of a shape: which thread submits what, and what waits for what.

use std::ops::Range;

use super::{Chunks, Job, Memory, PipelineOrder, PlanError, Shape};
use crate::schedule::{Action, Program, Work};
use crate::{Direction, ExpressCosts, Profile};

/// Chunks whose copies are waited for one by one at the end: those of earlier chunks are known to be done.
const AWAITED_MAX: u32 = 32;

/// Most chunks of a complete program.
const CHUNKS_MAX: u64 = 1 << 22;

impl Shape {
    /// The program that does a job in this shape: a submitting thread, and if the express lane is
    /// used, one that copies in and one that copies out. Tags are chunk numbers.
    ///
    /// It makes the calls that a pipeline of this shape makes once its streams and buffers exist: an event
    /// is recorded behind all work, and at the end every copy of pinned memory is waited for.
    ///
    /// # Errors
    /// [`PlanError`] with the invalid field.
    pub fn program(&self, job: &Job, profile: &Profile) -> Result<Program, PlanError> {
        let count = self.chunks(job)?.count;
        if count > CHUNKS_MAX {
            let reason = format!("{count} chunks, at most {CHUNKS_MAX} allowed");
            return Err(PlanError::invalid("chunk_bytes", reason));
        }
        self.program_of_first(job, profile, count)
    }

    /// The program of the first `count` chunks.
    pub(crate) fn program_of_first(
        &self,
        job: &Job,
        profile: &Profile,
        count: u64,
    ) -> Result<Program, PlanError> {
        job.check(profile)?;
        let chunks = self.chunks(job)?;
        let mut writer = ProgramWriter::new(self, job, chunks, count.min(chunks.count));
        writer.submitter()?;
        if let Some(express) = &profile.express {
            writer.program.express_both_percent = express.both_percent(chunks.most_bytes());
            if job.express_in() {
                writer.express(express, Direction::HostToDevice);
            }
            if job.express_out() {
                writer.express(express, Direction::DeviceToHost);
            }
        }
        Ok(writer.program)
    }
}

/// Writes the program of some chunks.
struct ProgramWriter<'a> {
    job: &'a Job,
    order: PipelineOrder,
    chunks: Chunks,
    /// Chunks that are written.
    count: u32,
    streams: u32,
    slots: u32,
    program: Program,
    /// The thread that is written.
    thread: usize,
}

/// A stage of a chunk, which is also its stream in [`PipelineOrder::StageStreams`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    CopyIn,
    Kernel,
    CopyOut,
}

impl Stage {
    const COUNT: u32 = 3;
}

/// The signals of a chunk, from one host thread to another.
#[derive(Clone, Copy)]
enum ChunkSignal {
    CopiedIn,
    Submitted,
    CopiedOut,
}

impl<'a> ProgramWriter<'a> {
    fn new(shape: &Shape, job: &'a Job, chunks: Chunks, count: u64) -> Self {
        // More streams or slots than chunks are never used.
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let streams = match shape.order {
            PipelineOrder::StageStreams => PipelineOrder::STAGES,
            _ => shape.streams.min(count),
        };
        let slots = shape.ring_slots.min(count);
        Self {
            job,
            order: shape.order,
            chunks,
            count,
            streams,
            slots,
            program: Program::new(streams, Stage::COUNT * count, 3 * count),
            thread: 0,
        }
    }

    /// The thread that submits everything.
    fn submitter(&mut self) -> Result<(), PlanError> {
        self.thread = self.program.thread();
        for chunks in self.groups() {
            for chunk in chunks.clone() {
                self.copy_in(chunk);
            }
            for chunk in chunks.clone() {
                self.kernel(chunk)?;
            }
            for chunk in chunks {
                self.copy_out(chunk);
            }
        }
        self.await_copies();
        for stream in 0..self.streams {
            self.add(0, Action::AwaitStream(stream));
        }
        Ok(())
    }

    /// Chunks whose stages are submitted together.
    fn groups(&self) -> impl Iterator<Item = Range<u32>> + use<> {
        let count = self.count;
        let group = match self.order {
            PipelineOrder::BreadthFirst => self.streams,
            _ => 1,
        };
        let firsts = (0..count).step_by(group as usize);
        firsts.map(move |first| first..(first + group).min(count))
    }

    /// Waits for the last copies of pinned memory, in the order of their submission.
    fn await_copies(&mut self) {
        let ends = [
            (Stage::CopyIn, self.job.input, true),
            (Stage::CopyOut, self.job.output, self.job.copies_out()),
        ];
        let pinned = ends.map(|(stage, memory, is_copied)| {
            (memory == Memory::Pinned && is_copied).then_some(stage)
        });
        // More are not remembered.
        let first = self.count.saturating_sub(AWAITED_MAX);
        for chunks in self.groups().filter(|chunks| chunks.end > first) {
            for stage in pinned.into_iter().flatten() {
                for chunk in chunks.clone() {
                    let event = self.event(chunk, stage);
                    self.add(chunk, Action::AwaitEvent(event));
                }
            }
        }
    }

    fn copy_in(&mut self, chunk: u32) {
        if self.job.express_in() {
            return self.await_signal(chunk, chunk, ChunkSignal::CopiedIn);
        }
        self.host_work(chunk);
        if !self.job.copies_in() {
            return;
        }
        self.take_slot(chunk, Stage::CopyIn);
        let bytes = self.chunks.bytes_in(chunk.into());
        let work = self.job.copy(Direction::HostToDevice, bytes);
        self.submit(chunk, Stage::CopyIn, work);
    }

    fn kernel(&mut self, chunk: u32) -> Result<(), PlanError> {
        let has_stage_streams = self.order == PipelineOrder::StageStreams;
        if !self.job.copies_in() {
            self.take_slot(chunk, Stage::Kernel);
        } else if has_stage_streams && !self.job.express_in() {
            self.wait(chunk, Stage::Kernel, chunk, Stage::CopyIn);
        }
        let work = self.job.kernel.work(self.chunks.bytes_in(chunk.into()))?;
        self.submit(chunk, Stage::Kernel, Some(work));
        Ok(())
    }

    fn copy_out(&mut self, chunk: u32) {
        if self.last_stage() == Stage::CopyOut {
            if self.order == PipelineOrder::StageStreams {
                self.wait(chunk, Stage::CopyOut, chunk, Stage::Kernel);
            }
            let bytes = self.chunks.bytes_out(chunk.into());
            let work = self.job.copy(Direction::DeviceToHost, bytes);
            self.submit(chunk, Stage::CopyOut, work);
        }
        if self.job.uses_express() {
            self.signal(chunk, ChunkSignal::Submitted);
        }
    }

    /// The thread that copies a chunk in makes it first.
    fn host_work(&mut self, chunk: u32) {
        if self.job.host_ns_per_chunk > 0 {
            let ns = self.job.host_ns_per_chunk;
            self.add(chunk, Action::HostWork { ns });
        }
    }

    /// The thread that copies one direction by the express lane.
    fn express(&mut self, express: &ExpressCosts, direction: Direction) {
        self.thread = self.program.thread();
        for chunk in 0..self.count {
            let (bytes, copied) = match direction {
                Direction::HostToDevice => {
                    if let Some(earlier) = chunk.checked_sub(self.slots) {
                        self.await_done(chunk, earlier);
                    }
                    self.host_work(chunk);
                    (self.chunks.bytes_in(chunk.into()), ChunkSignal::CopiedIn)
                }
                Direction::DeviceToHost => {
                    self.await_computed(chunk, chunk);
                    (self.chunks.bytes_out(chunk.into()), ChunkSignal::CopiedOut)
                }
            };
            let ns = express.ns(direction, bytes);
            self.add(chunk, Action::ExpressCopy { direction, ns });
            self.signal(chunk, copied);
        }
    }

    /// The host thread waits until an earlier chunk is done, its output included.
    fn await_done(&mut self, chunk: u32, earlier: u32) {
        if self.job.express_out() {
            self.await_signal(chunk, earlier, ChunkSignal::CopiedOut);
        } else {
            self.await_computed(chunk, earlier);
        }
    }

    /// The host thread waits until the device is done with a chunk.
    fn await_computed(&mut self, chunk: u32, awaited: u32) {
        self.await_signal(chunk, awaited, ChunkSignal::Submitted);
        let event = self.event(awaited, self.last_stage());
        self.add(chunk, Action::AwaitEvent(event));
    }

    /// The first stage of a chunk waits for the kernel and the copy out of the previous chunk of its slot.
    fn take_slot(&mut self, chunk: u32, stage: Stage) {
        let Some(earlier) = chunk.checked_sub(self.slots) else {
            return;
        };
        if self.job.express_out() {
            self.await_done(chunk, earlier);
            return;
        }
        let last = self.last_stage();
        let users = [Some(Stage::Kernel), (last != Stage::Kernel).then_some(last)];
        for user in users.into_iter().flatten() {
            if self.stream(earlier, user) != self.stream(chunk, stage) {
                self.wait(chunk, stage, earlier, user);
            }
        }
    }

    fn submit(&mut self, chunk: u32, stage: Stage, work: Option<Work>) {
        if let Some(work) = work {
            let (stream, event) = (self.stream(chunk, stage), self.event(chunk, stage));
            self.add(chunk, Action::Submit { stream, work });
            self.add(chunk, Action::Record { stream, event });
        }
    }

    /// A stage of a chunk waits for a stage of this or an earlier chunk.
    fn wait(&mut self, chunk: u32, stage: Stage, of: u32, awaited: Stage) {
        let (stream, event) = (self.stream(chunk, stage), self.event(of, awaited));
        self.add(chunk, Action::Wait { stream, event });
    }

    fn signal(&mut self, chunk: u32, signal: ChunkSignal) {
        let signal = self.signal_number(chunk, signal);
        self.add(chunk, Action::Signal(signal));
    }

    fn await_signal(&mut self, chunk: u32, of: u32, signal: ChunkSignal) {
        let signal = self.signal_number(of, signal);
        self.add(chunk, Action::AwaitSignal(signal));
    }

    fn add(&mut self, chunk: u32, action: Action) {
        self.program.tagged(self.thread, action, chunk);
    }

    fn stream(&self, chunk: u32, stage: Stage) -> u32 {
        match self.order {
            PipelineOrder::StageStreams => stage as u32,
            _ => chunk % self.streams,
        }
    }

    fn last_stage(&self) -> Stage {
        if self.job.copies_out() && !self.job.express_out() {
            Stage::CopyOut
        } else {
            Stage::Kernel
        }
    }

    /// The event behind a stage of a chunk.
    fn event(&self, chunk: u32, stage: Stage) -> u32 {
        stage as u32 * self.count + chunk
    }

    fn signal_number(&self, chunk: u32, signal: ChunkSignal) -> u32 {
        signal as u32 * self.count + chunk
    }
}
