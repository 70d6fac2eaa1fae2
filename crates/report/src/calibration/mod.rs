//! A machine, calibrated: its main figures and the profile that was made of them.

mod text;

use serde::Serialize;
use serde_json::Value;

use crate::{Origin, SCHEMA_VERSION};

/// Copies of one kind of memory, 1e9 bytes a second each way. `None` where they take no time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct BothRates {
    /// Host to device.
    pub h2d_gb_per_s: Option<f64>,
    /// Device to host.
    pub d2h_gb_per_s: Option<f64>,
}

/// The express lane.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ExpressFigures {
    /// Threads at work.
    pub lanes: u32,
    /// What they move, one direction at a time.
    pub rates: BothRates,
    /// While both directions are busy, each takes this many percent of its time alone.
    pub both_percent: u64,
}

/// Files that are in the page cache, read and copied to the device.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct FileFigures {
    /// Threads that read.
    pub threads: u32,
    /// Bytes of files, 1e9 a second.
    pub gb_per_s: f64,
}

/// What page-locking costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct PinningFigures {
    /// Allocating 1 GiB of pinned memory.
    pub alloc_ns_per_gib: u64,
    /// Page-locking 1 GiB in place.
    pub register_ns_per_gib: u64,
}

/// The main figures of a calibration.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CalibrationFigures {
    /// Bytes of the copies that the rates are of: the largest that were measured.
    pub copy_bytes: u64,
    /// Page-locked memory.
    pub pinned: BothRates,
    /// Ordinary memory, copied by the driver.
    pub pageable: BothRates,
    /// While both directions are busy, a pinned copy takes this many percent of its time alone.
    pub both_ways_percent: u64,
    /// Both directions of pinned memory together, while both are busy.
    pub both_ways_gb_per_s: Option<f64>,
    /// Ordinary memory, copied by the express lane; `None` where it was not measured.
    pub express: Option<ExpressFigures>,
    /// Files that are in the page cache; `None` where that was not measured.
    pub files: Option<FileFigures>,
    /// A kernel that does nothing.
    pub launch_ns: u64,
    /// From one engine to the next.
    pub handover_ns: u64,
    /// Turning a copy engine to another stream.
    pub switch_ns: u64,
    /// The host's time for submitting one copy or kernel.
    pub submit_ns: u64,
    /// Until a thread that waited runs again.
    pub wake_ns: u64,
    /// Device memory that a kernel reads and writes; `None` where that takes no time.
    pub kernel_gb_per_s: Option<f64>,
    /// Page-locking.
    pub pinning: PinningFigures,
}

/// A calibration, as it went.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Calibration {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// The device.
    #[serde(flatten)]
    pub origin: Origin,
    /// When it was, in UTC.
    pub at: String,
    /// How long it took, by the clock of the device's machine.
    pub took_ns: u64,
    /// What came out.
    pub figures: CalibrationFigures,
    /// The profile as data, with the field names of its file.
    pub calibrated_profile: Value,
    /// Files that hold the profile now.
    pub written: Vec<String>,
    /// Whether a file that should hold it could not be written.
    pub write_failed: bool,
    /// A command to go on with.
    pub next: String,
}

impl Calibration {
    /// A calibration of which nothing is written yet.
    #[must_use]
    pub fn new(
        origin: Origin,
        at: impl Into<String>,
        took_ns: u64,
        figures: CalibrationFigures,
        calibrated_profile: Value,
    ) -> Self {
        Self {
            schema: SCHEMA_VERSION,
            origin,
            at: at.into(),
            took_ns,
            figures,
            calibrated_profile,
            written: Vec::new(),
            write_failed: false,
            next: String::new(),
        }
    }

    /// The report as JSON, over several lines, with a line end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("plain data becomes JSON");
        json.push('\n');
        json
    }
}
