//! The program without any overlap.

use super::{Job, Memory, PlanError};
use crate::schedule::{Action, Program, Work};
use crate::{Direction, Profile};

impl Job {
    /// The job as one chunk and one step after the other: copy in, wait, kernel, wait, copy out,
    /// wait. What the express lane would copy is copied by the driver.
    ///
    /// # Errors
    /// [`PlanError`] with the field that makes no sense.
    pub fn serial(&self, profile: &Profile) -> Result<Program, PlanError> {
        let by_driver = |memory| match memory {
            Memory::Express => Memory::Pageable,
            other => other,
        };
        let job = Self {
            input: by_driver(self.input),
            output: by_driver(self.output),
            ..*self
        };
        job.check(profile)?;
        let mut program = Program::new(1, 0, 0);
        let thread = program.thread();
        let mut step = |work: Work| {
            program.step(thread, Action::Submit { stream: 0, work });
            program.step(thread, Action::AwaitStream(0));
        };
        if let Some(kind) = job.input.host_kind() {
            step(Work::Copy {
                direction: Direction::HostToDevice,
                kind,
                bytes: job.bytes_in,
            });
        }
        step(job.kernel.work(job.bytes_in)?);
        if let Some(kind) = job.output.host_kind()
            && job.bytes_out > 0
        {
            step(Work::Copy {
                direction: Direction::DeviceToHost,
                kind,
                bytes: job.bytes_out,
            });
        }
        if job.host_ns_per_chunk > 0 {
            let ns = job.host_ns_per_chunk;
            program.step(thread, Action::HostWork { ns });
        }
        Ok(program)
    }
}
