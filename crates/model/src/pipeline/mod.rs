//! Jobs that flow through a device chunk by chunk, and their programs.
//!
//! ```text
//!   Job    what is to be done: bytes in, a kernel, bytes out, and where they are
//!   Shape  how it is cut: chunk, streams, order, ring
//!     └─ program(job, profile) ──> schedule::Program, one to three host threads
//! ```
//!
//! Depth-first, a stream takes one chunk all the way; breadth-first, a group of chunks (one a
//! stream) makes each step together; stage streams are three, one a step, joined by events. A slot
//! of the ring is used again behind the end of its earlier chunk.

mod cut;
mod error;
mod job;
mod program;
mod serial;
mod shape;

pub(crate) use cut::Cut;
pub use error::PlanError;
pub use job::{Job, KernelTime, Memory};
pub use shape::{Order, Shape};
