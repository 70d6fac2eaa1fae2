//! One job done in several ways.

use serde::Serialize;

use crate::SCHEMA_VERSION;
use crate::timeline::Chart;

/// A job of copies, a kernel and work for the CPU, done in several ways.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Overlap {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// Bytes to the device, and as many back.
    pub bytes: u64,
    /// The kernel alone.
    pub kernel_ns: u64,
    /// The CPU's work alone.
    pub host_ns: u64,
    /// Streams of the ways that have several.
    pub streams: u32,
    /// Each way: its name, time, speed-up and what ran when.
    pub chart: Chart,
}

impl Overlap {
    /// A report of this job.
    #[must_use]
    pub fn new(bytes: u64, kernel_ns: u64, host_ns: u64, streams: u32, chart: Chart) -> Self {
        Self {
            schema: SCHEMA_VERSION,
            bytes,
            kernel_ns,
            host_ns,
            streams,
            chart,
        }
    }

    /// As JSON, over several lines, with a line end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("plain data becomes JSON");
        json.push('\n');
        json
    }
}
