//! How work runs: the event loop, the life of an operation, and what operations do to memory.

mod effects;
mod event_loop;
mod lifecycle;

pub(crate) use lifecycle::Running;
