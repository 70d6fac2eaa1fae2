//! Why a program has no schedule.

/// A program that cannot run. Threads and steps are counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// A step names a stream that the program does not have.
    #[error("thread {thread}, step {step}: stream {stream} of {count}")]
    UnknownStream {
        /// Host thread.
        thread: usize,
        /// Its step.
        step: usize,
        /// What the step names.
        stream: u32,
        /// How many there are.
        count: u32,
    },
    /// A step names an event that the program does not have.
    #[error("thread {thread}, step {step}: event {event} of {count}")]
    UnknownEvent {
        /// Host thread.
        thread: usize,
        /// Its step.
        step: usize,
        /// What the step names.
        event: u32,
        /// How many there are.
        count: u32,
    },
    /// A step names a post that the program does not have.
    #[error("thread {thread}, step {step}: post {post} of {count}")]
    UnknownPost {
        /// Host thread.
        thread: usize,
        /// Its step.
        step: usize,
        /// What the step names.
        post: u32,
        /// How many there are.
        count: u32,
    },
    /// A wait for an event that was not recorded by then.
    #[error("thread {thread}, step {step}: event {event} was not recorded before")]
    NotRecorded {
        /// Host thread.
        thread: usize,
        /// Its step.
        step: usize,
        /// The event.
        event: u32,
    },
    /// A thread waits for a post that never comes.
    #[error("thread {thread}, step {step}: waits for post {post}, which never comes")]
    Deadlock {
        /// Host thread.
        thread: usize,
        /// Its step.
        step: usize,
        /// What it waits for.
        post: u32,
    },
    /// It takes longer than can be counted in nanoseconds.
    #[error("takes more than 2^64 nanoseconds")]
    TooLong,
}
