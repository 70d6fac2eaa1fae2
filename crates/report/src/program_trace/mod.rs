//! `trace`: what an unmodified program's copies cost, what they could cost, and what is wrong.

mod html;
mod text;

use serde::Serialize;

use crate::{MemoryKind, Origin, Route};

/// What a program did.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ProgramTrace {
    /// The device.
    #[serde(flatten)]
    pub origin: Origin,
    /// The program and its arguments.
    pub command: String,
    /// Processes that used the driver.
    pub processes: u64,
    /// Traced calls.
    pub calls: u64,
    /// From the first call to the end; `None` on a simulated device.
    pub elapsed_ns: Option<u64>,
    /// Places that call the driver, the most time lost first.
    pub sites: Vec<TraceSite>,
    /// What is wrong, the most time lost first.
    pub findings: Vec<TraceFinding>,
    /// The profile that times were computed with, if there is one.
    pub profile: Option<String>,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// Sites that text and pages show.
    #[serde(skip)]
    pub top: usize,
}

/// The calls of one place that do the same.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TraceSite {
    /// The line of the program, or its native function.
    pub place: String,
    /// All functions that led to the call, innermost first.
    pub frames: Vec<String>,
    /// What the calls do.
    pub action: TraceAction,
    /// Direction of a copy between host and device.
    pub route: Option<Route>,
    /// Kind of host memory, if it is known.
    pub memory: Option<MemoryKind>,
    /// Whether the program asked for an asynchronous operation.
    pub asynchronous: bool,
    /// Number of calls.
    pub calls: u64,
    /// Calls that failed.
    pub failures: u64,
    /// Bytes copied, allocated or registered.
    pub bytes: u64,
    /// The time that the program waited for them; computed on a simulated device, `None` if it cannot be.
    pub ns: Option<u64>,
    /// The same copies from pinned memory, computed.
    pub pinned_ns: Option<u64>,
    /// The same copies over the express lane, computed.
    pub express_ns: Option<u64>,
    /// What the program would save with the better of these.
    pub lost_ns: Option<u64>,
}

named_enum! {
    /// What traced calls do.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TraceAction {
        /// Copies memory.
        Copy = "copy",
        /// Copies rows of a matrix, or a block.
        StridedCopy = "strided copy",
        /// Copies memory of a device to a device.
        DeviceCopy = "copy on the device",
        /// Copies several ranges.
        BatchCopy = "batch of copies",
        /// Allocates pinned memory.
        Allocate = "pinned allocation",
        /// Frees it.
        Free = "free of pinned memory",
        /// Page-locks ordinary memory.
        Register = "registration",
        /// Ends that.
        Unregister = "unregistration",
        /// Waits for the device.
        Wait = "wait",
        /// Creates a stream.
        CreateStream = "stream creation",
        /// Records an event, or makes a stream wait for one.
        Event = "event call",
        /// Asks whether something is done.
        Query = "query",
    }
}

/// Something that could be better.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TraceFinding {
    /// A short name that does not change.
    pub id: &'static str,
    /// What is wrong.
    pub title: &'static str,
    /// Calls that have it.
    pub calls: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The time that it costs, if it is known.
    pub lost_ns: Option<u64>,
    /// Where.
    pub places: Vec<String>,
    /// What to do.
    pub remedy: &'static str,
}

impl TraceSite {
    /// What the calls do, in words: `async pageable copy to device`.
    pub(crate) fn what(&self) -> String {
        let kind = if self.asynchronous && self.action.is_copy() {
            "async "
        } else {
            ""
        };
        let memory = match self.memory.filter(|_| self.action.is_copy()) {
            Some(memory) => format!("{} ", memory.name()),
            None => String::new(),
        };
        let direction = match self.route {
            Some(Route::H2d) => " to device",
            Some(Route::D2h) => " to host",
            _ => "",
        };
        let failed = match self.failures {
            0 => String::new(),
            failures => format!(", {failures} failed"),
        };
        format!("{kind}{memory}{}{direction}{failed}", self.action.name())
    }
}

impl TraceAction {
    fn is_copy(self) -> bool {
        matches!(
            self,
            Self::Copy | Self::StridedCopy | Self::DeviceCopy | Self::BatchCopy
        )
    }
}

impl ProgramTrace {
    /// The sites that are shown.
    fn shown(&self) -> &[TraceSite] {
        &self.sites[..self.sites.len().min(self.top)]
    }

    /// How times of copies came about, for the foot of a table.
    fn computed_note(&self) -> String {
        match &self.profile {
            Some(profile) => format!("*: computed with profile {profile}, not measured."),
            None => "*: not known; run `pinlane calibrate` once.".to_owned(),
        }
    }

    /// Name of the column of times.
    fn time_name(&self) -> &'static str {
        match self.origin.is_measured() {
            true => "time",
            false => "time*",
        }
    }
}
