//! How work runs: the event loop, the life of an operation, and what operations do to memory.

mod effects;
mod event_loop;
mod operation;

pub(crate) use operation::Running;
