//! The program of a shape: who submits what, and who waits for what.

use super::shape::STAGES;
use super::{Cut, Job, Memory, Order, PlanError, Shape};
use crate::schedule::{Action, Program, Work};
use crate::{Direction, ExpressCosts, Profile};

impl Shape {
    /// The program that does a job in this shape: a launching thread, and where the express lane is
    /// used one that fills its ring and one that empties it. Tags are the numbers of chunks.
    ///
    /// # Errors
    /// [`PlanError`] with the field that makes no sense.
    pub fn program(&self, job: &Job, profile: &Profile) -> Result<Program, PlanError> {
        let cut = self.cut_for_program(job)?;
        self.program_of_first(job, profile, cut.count)
    }

    /// The program of the first chunks only.
    pub(crate) fn program_of_first(
        &self,
        job: &Job,
        profile: &Profile,
        chunks: u64,
    ) -> Result<Program, PlanError> {
        job.check(profile)?;
        let cut = self.cut(job)?;
        let mut writer = Writer::new(self, job, cut, chunks.min(cut.count));
        writer.launcher()?;
        if let Some(express) = &profile.express {
            let bytes = cut.most_bytes();
            writer.program.lanes_percent = express.both_percent(bytes);
            if job.input == Memory::Express {
                writer.filler(express);
            }
            if job.output == Memory::Express {
                writer.emptier(express);
            }
        }
        Ok(writer.program)
    }
}

/// Writes the program of some chunks.
struct Writer<'a> {
    job: &'a Job,
    order: Order,
    cut: Cut,
    chunks: u32,
    streams: u32,
    slots: u32,
    program: Program,
    thread: usize,
}

/// A step of a chunk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    In,
    Kernel,
    Out,
}

/// What an event of a slot stands behind.
#[derive(Clone, Copy)]
enum Behind {
    CopyIn,
    Kernel,
    Chunk,
}

/// What a post of a chunk says.
#[derive(Clone, Copy)]
enum Said {
    Filled,
    Submitted,
    Emptied,
}

impl<'a> Writer<'a> {
    fn new(shape: &Shape, job: &'a Job, cut: Cut, chunks: u64) -> Self {
        // More streams or slots than chunks are never used.
        let chunks = u32::try_from(chunks).unwrap_or(u32::MAX);
        let streams = match shape.order {
            Order::StageStreams => STAGES,
            _ => shape.streams.min(chunks),
        };
        let slots = shape.ring_slots.min(chunks);
        Self {
            job,
            order: shape.order,
            cut,
            chunks,
            streams,
            slots,
            program: Program::new(streams, 3 * slots, 3 * chunks),
            thread: 0,
        }
    }

    /// The thread that submits everything.
    fn launcher(&mut self) -> Result<(), PlanError> {
        self.thread = self.program.thread();
        let group = match self.order {
            Order::BreadthFirst => self.streams,
            _ => 1,
        };
        for first in (0..self.chunks).step_by(group as usize) {
            let chunks = first..(first + group).min(self.chunks);
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
        // The stream of the last chunk comes last.
        for stream in 0..self.streams {
            let stream = match self.order {
                Order::StageStreams => stream,
                _ => (self.chunks + stream) % self.streams,
            };
            self.add(0, Action::AwaitStream(stream));
        }
        Ok(())
    }

    fn copy_in(&mut self, chunk: u32) {
        if !self.job.copies_in() {
            return;
        }
        if self.fills() {
            let said = self.post(chunk, Said::Filled);
            return self.add(chunk, Action::AwaitPost(said));
        }
        self.take_slot(chunk, Stage::In);
        let bytes = self.cut.bytes_in(chunk.into());
        self.copy(chunk, Stage::In, Direction::HostToDevice, bytes);
        if self.order == Order::StageStreams {
            self.record(chunk, Stage::In, Behind::CopyIn);
        }
    }

    fn kernel(&mut self, chunk: u32) -> Result<(), PlanError> {
        if !self.job.copies_in() {
            self.take_slot(chunk, Stage::Kernel);
        } else if self.order == Order::StageStreams && !self.fills() {
            self.wait(chunk, Stage::Kernel, Behind::CopyIn);
        }
        let work = self.job.kernel.work(self.cut.bytes_in(chunk.into()))?;
        self.submit(chunk, Stage::Kernel, work);
        if self.order == Order::StageStreams && self.job.copies_out() && !self.empties() {
            self.record(chunk, Stage::Kernel, Behind::Kernel);
        }
        Ok(())
    }

    fn copy_out(&mut self, chunk: u32) {
        if self.job.copies_out() && !self.empties() {
            if self.order == Order::StageStreams {
                self.wait(chunk, Stage::Out, Behind::Kernel);
            }
            let bytes = self.cut.bytes_out(chunk.into());
            self.copy(chunk, Stage::Out, Direction::DeviceToHost, bytes);
        }
        let next = chunk.saturating_add(self.slots);
        let waited_for = next < self.chunks && self.first_stream(next) != self.last_stream(chunk);
        let lanes = self.fills() || self.empties();
        if lanes || waited_for {
            self.record(chunk, self.last_stage(), Behind::Chunk);
        }
        if lanes {
            let said = self.post(chunk, Said::Submitted);
            self.add(chunk, Action::Post(said));
        }
        if self.job.host_ns_per_chunk > 0 {
            let ns = self.job.host_ns_per_chunk;
            self.add(chunk, Action::HostWork { ns });
        }
    }

    /// Whether the express lane brings the input.
    fn fills(&self) -> bool {
        self.job.input == Memory::Express
    }

    /// Whether the express lane fetches the output.
    fn empties(&self) -> bool {
        self.job.output == Memory::Express && self.job.copies_out()
    }

    /// The thread that has the lanes bring the input.
    fn filler(&mut self, express: &ExpressCosts) {
        self.thread = self.program.thread();
        let direction = Direction::HostToDevice;
        for chunk in 0..self.chunks {
            if let Some(earlier) = chunk.checked_sub(self.slots) {
                self.await_end(chunk, earlier);
            }
            let ns = express.ns(direction, self.cut.bytes_in(chunk.into()));
            self.add(chunk, Action::Lanes { direction, ns });
            self.add(chunk, Action::Post(self.post(chunk, Said::Filled)));
        }
    }

    /// The thread that has the lanes fetch the output.
    fn emptier(&mut self, express: &ExpressCosts) {
        if !self.job.copies_out() {
            return;
        }
        self.thread = self.program.thread();
        let direction = Direction::DeviceToHost;
        for chunk in 0..self.chunks {
            let said = self.post(chunk, Said::Submitted);
            self.add(chunk, Action::AwaitPost(said));
            let event = self.event(chunk, Behind::Chunk);
            self.add(chunk, Action::AwaitEvent(event));
            let ns = express.ns(direction, self.cut.bytes_out(chunk.into()));
            self.add(chunk, Action::Lanes { direction, ns });
            self.add(chunk, Action::Post(self.post(chunk, Said::Emptied)));
        }
    }

    /// A host thread waits until an earlier chunk is over.
    fn await_end(&mut self, chunk: u32, earlier: u32) {
        if self.empties() {
            let said = self.post(earlier, Said::Emptied);
            return self.add(chunk, Action::AwaitPost(said));
        }
        let said = self.post(earlier, Said::Submitted);
        self.add(chunk, Action::AwaitPost(said));
        let event = self.event(earlier, Behind::Chunk);
        self.add(chunk, Action::AwaitEvent(event));
    }

    /// The first step of a chunk waits for the end of the chunk that had its slot.
    fn take_slot(&mut self, chunk: u32, stage: Stage) {
        let Some(earlier) = chunk.checked_sub(self.slots) else {
            return;
        };
        if self.empties() {
            self.await_end(chunk, earlier);
        } else if self.last_stream(earlier) != self.stream(chunk, stage) {
            self.wait(chunk, stage, Behind::Chunk);
        }
    }

    fn copy(&mut self, chunk: u32, stage: Stage, direction: Direction, bytes: u64) {
        let memory = match direction {
            Direction::HostToDevice => self.job.input,
            Direction::DeviceToHost => self.job.output,
        };
        if let Some(kind) = memory.host_kind() {
            let work = Work::Copy {
                direction,
                kind,
                bytes,
            };
            self.submit(chunk, stage, work);
        }
    }

    fn submit(&mut self, chunk: u32, stage: Stage, work: Work) {
        let stream = self.stream(chunk, stage);
        self.add(chunk, Action::Submit { stream, work });
    }

    fn record(&mut self, chunk: u32, stage: Stage, behind: Behind) {
        let (stream, event) = (self.stream(chunk, stage), self.event(chunk, behind));
        self.add(chunk, Action::Record { stream, event });
    }

    fn wait(&mut self, chunk: u32, stage: Stage, behind: Behind) {
        let (stream, event) = (self.stream(chunk, stage), self.event(chunk, behind));
        self.add(chunk, Action::Wait { stream, event });
    }

    fn add(&mut self, chunk: u32, action: Action) {
        self.program.tagged(self.thread, action, chunk);
    }

    fn stream(&self, chunk: u32, stage: Stage) -> u32 {
        match self.order {
            Order::StageStreams => stage as u32,
            _ => chunk % self.streams,
        }
    }

    fn first_stream(&self, chunk: u32) -> u32 {
        let stage = if self.job.copies_in() && !self.fills() {
            Stage::In
        } else {
            Stage::Kernel
        };
        self.stream(chunk, stage)
    }

    fn last_stage(&self) -> Stage {
        if self.job.copies_out() && !self.empties() {
            Stage::Out
        } else {
            Stage::Kernel
        }
    }

    fn last_stream(&self, chunk: u32) -> u32 {
        self.stream(chunk, self.last_stage())
    }

    /// The event of a chunk's slot.
    fn event(&self, chunk: u32, behind: Behind) -> u32 {
        behind as u32 * self.slots + chunk % self.slots
    }

    /// The post of a chunk.
    fn post(&self, chunk: u32, said: Said) -> u32 {
        said as u32 * self.chunks + chunk
    }
}
