//! What to do: bytes in, a kernel, bytes out.

use serde::Serialize;

use super::{KernelTime, PlanError};
use crate::schedule::{Action, Program, Work};
use crate::{Direction, HostKind, Profile};

/// Bytes that are copied in, a kernel over them, bytes that are copied out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Job {
    /// Bytes that the kernel reads, at least 1.
    pub bytes_in: u64,
    /// Bytes that the kernel writes, in proportion to what it reads. May be 0.
    pub bytes_out: u64,
    /// Duration of the kernel.
    pub kernel: KernelTime,
    /// Where the input is.
    pub input: Memory,
    /// Where the output goes.
    pub output: Memory,
    /// Time that the submitting thread takes to make each chunk, before it copies the chunk. Work that a pipeline does
    /// beside a run has a thread of its own and is no part of this.
    pub host_ns_per_chunk: u64,
}

/// Where input comes from or output goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// Page-locked memory.
    Pinned,
    /// Ordinary memory, copied by the driver.
    Pageable,
    /// Ordinary memory, copied by the express lane.
    Express,
    /// Device memory: nothing is copied.
    Device,
}

impl Memory {
    /// The host memory of a copy by the driver; `None` if the express lane copies, or nothing does.
    pub(crate) fn host_kind(self) -> Option<HostKind> {
        match self {
            Self::Pinned => Some(HostKind::Pinned),
            Self::Pageable => Some(HostKind::Pageable),
            Self::Express | Self::Device => None,
        }
    }
}

impl Job {
    /// The program without any overlap: copy in, wait, kernel, wait, copy out, wait. An event is recorded
    /// behind all work. The driver does the copies of the express lane.
    ///
    /// # Errors
    /// [`PlanError`] with the invalid field.
    pub fn serial(&self, profile: &Profile) -> Result<Program, PlanError> {
        let mut job = *self;
        for memory in [&mut job.input, &mut job.output] {
            if *memory == Memory::Express {
                *memory = Memory::Pageable;
            }
        }
        job.check(profile)?;
        let mut program = Program::new(1, 1, 0);
        let thread = program.thread();
        let stages = [
            job.copy(Direction::HostToDevice, job.bytes_in),
            Some(job.kernel.work(job.bytes_in)?),
            job.copy(Direction::DeviceToHost, job.bytes_out),
        ];
        for work in stages.into_iter().flatten() {
            program.step(thread, Action::Submit { stream: 0, work });
            program.step(
                thread,
                Action::Record {
                    stream: 0,
                    event: 0,
                },
            );
            program.step(thread, Action::AwaitStream(0));
        }
        if job.host_ns_per_chunk > 0 {
            let ns = job.host_ns_per_chunk;
            program.step(thread, Action::HostWork { ns });
        }
        Ok(program)
    }

    /// Checks what every plan relies on.
    pub(crate) fn check(&self, profile: &Profile) -> Result<(), PlanError> {
        if self.bytes_in == 0 {
            return Err(PlanError::invalid("bytes_in", "must be at least 1"));
        }
        for (field, memory) in [("input", self.input), ("output", self.output)] {
            if memory == Memory::Express && profile.express.is_none() {
                let name = &profile.name;
                let reason = format!("profile {name} has no [express] section");
                return Err(PlanError::invalid(field, reason));
            }
        }
        self.kernel.ns(self.bytes_in).map(|_| ())
    }

    /// A copy of `bytes` by the driver, if the job has one in this direction.
    pub(crate) fn copy(&self, direction: Direction, bytes: u64) -> Option<Work> {
        let (memory, is_needed) = match direction {
            Direction::HostToDevice => (self.input, true),
            Direction::DeviceToHost => (self.output, self.bytes_out > 0),
        };
        let kind = memory.host_kind().filter(|_| is_needed)?;
        Some(Work::Copy {
            direction,
            kind,
            bytes,
        })
    }

    /// Whether input is copied to the device.
    pub(crate) fn copies_in(&self) -> bool {
        self.input != Memory::Device
    }

    /// Whether output is copied back.
    pub(crate) fn copies_out(&self) -> bool {
        self.output != Memory::Device && self.bytes_out > 0
    }

    /// Whether the express lane copies the input.
    pub(crate) fn express_in(&self) -> bool {
        self.input == Memory::Express
    }

    /// Whether the express lane copies the output.
    pub(crate) fn express_out(&self) -> bool {
        self.output == Memory::Express && self.bytes_out > 0
    }

    /// Whether the express lane copies anything.
    pub(crate) fn uses_express(&self) -> bool {
        self.express_in() || self.express_out()
    }
}
