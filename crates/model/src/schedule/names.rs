//! The names of streams, events and posts in a step.

use super::{Program, ScheduleError};

/// Checks the names in a step.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) program: &'a Program,
    pub(super) thread: usize,
    pub(super) step: usize,
}

impl Names<'_> {
    pub(super) fn stream(self, stream: u32) -> Result<(), ScheduleError> {
        let Self { thread, step, .. } = self;
        let count = self.program.streams;
        if stream < count {
            return Ok(());
        }
        Err(ScheduleError::UnknownStream {
            thread,
            step,
            stream,
            count,
        })
    }

    pub(super) fn event(self, event: u32) -> Result<(), ScheduleError> {
        let Self { thread, step, .. } = self;
        let count = self.program.events;
        if event < count {
            return Ok(());
        }
        Err(ScheduleError::UnknownEvent {
            thread,
            step,
            event,
            count,
        })
    }

    pub(super) fn post(self, post: u32) -> Result<(), ScheduleError> {
        let Self { thread, step, .. } = self;
        let count = self.program.posts;
        if post < count {
            return Ok(());
        }
        Err(ScheduleError::UnknownPost {
            thread,
            step,
            post,
            count,
        })
    }
}
