//! What a traced program did: each call, and totals by call site.
//!
//! ```text
//!   TraceFile ── mapped file: header | sites | text of sites | events ──> read_traces ── Recording
//! ```
//!
//! The library writes into a mapped file, so a killed program leaves all that it has done. The file has a fixed size, whose
//! blocks are reserved when it is made: a full disk is an error then, not a signal later.

mod event;
mod layout;
mod reader;
mod recording;
mod trace_file;

pub use event::{Event, HostMemory, Operation, Route};
pub use layout::MAX_EVENTS;
pub use reader::{TraceError, parse, read_traces};
pub use recording::{Frame, PythonLines, Recording, Site, Totals};
pub use trace_file::{SiteKey, TraceFile};
