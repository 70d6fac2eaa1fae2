//! What one process did.

use super::event::{Event, HostMemory, Operation, Route};

/// Whether the lines of Python programs are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PythonLines {
    /// No interpreter in the process.
    NoPython,
    /// Known.
    Known,
    /// The interpreter is of a version whose frames cannot be read.
    UnknownVersion,
}

impl PythonLines {
    /// All of them, in the order in which they are stored.
    pub(super) const ALL: [Self; 3] = [Self::NoPython, Self::Known, Self::UnknownVersion];
}

/// A function on the stack of a call.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Frame {
    /// Of a Python program.
    Python {
        /// Its file.
        file: String,
        /// The line in it.
        line: u32,
        /// Its name.
        function: String,
    },
    /// Of native code.
    Native {
        /// Module, symbol and offset: `libx.so!f+0x10`.
        name: String,
        /// The path of the module; empty if it is not known.
        module: String,
        /// The call's place in the module.
        offset: u64,
    },
}

impl Frame {
    /// A native function of which only a name is known.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self::Native {
            name: name.into(),
            module: String::new(),
            offset: 0,
        }
    }
}

/// The calls of one place in the program that do the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// Innermost first, Python's before native ones.
    pub frames: Vec<Frame>,
    /// What the calls do.
    pub operation: Operation,
    /// Between which memories.
    pub route: Route,
    /// The kind of host memory.
    pub memory: HostMemory,
    /// Whether the calls are asynchronous.
    pub is_async: bool,
    /// Their totals.
    pub totals: Totals,
}

/// Totals of the calls of a site.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Calls.
    pub calls: u64,
    /// Bytes copied, allocated or registered.
    pub bytes: u64,
    /// The time that the program waited for them.
    pub ns: u64,
    /// The longest one.
    pub longest_ns: u64,
    /// Calls that failed.
    pub failures: u64,
    /// Result of one that failed; 0 if none did.
    pub failure_code: u32,
}

/// What one process did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recording {
    /// The system's number of the process.
    pub process: u32,
    /// Its command line, perhaps cut.
    pub command: String,
    /// When it made its first call.
    pub start_ns: u64,
    /// When it ended; `None` if it was killed.
    pub end_ns: Option<u64>,
    /// Whether the lines of Python programs are known.
    pub python: PythonLines,
    /// Call sites; events refer to them by index.
    pub sites: Vec<Site>,
    /// The first calls, in order of their start.
    pub events: Vec<Event>,
    /// All calls.
    pub calls: u64,
}

impl Recording {
    /// Calls beyond those in the list. Queries are never in it: programs poll.
    #[must_use]
    pub fn calls_not_stored(&self) -> u64 {
        let is_query = |site: &&Site| {
            matches!(
                site.operation,
                Operation::QueryEvent | Operation::QueryStream
            )
        };
        let queries = self
            .sites
            .iter()
            .filter(is_query)
            .map(|site| site.totals.calls);
        let queries = queries.fold(0, u64::saturating_add);
        self.calls
            .saturating_sub(queries)
            .saturating_sub(self.events.len() as u64)
    }
}
