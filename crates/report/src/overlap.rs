//! One job done in several ways.

use serde::Serialize;

use crate::format::amount;
use crate::timeline::layout::words::duration;
use crate::timeline::{Chart, Timeline};
use crate::{Origin, SCHEMA_VERSION};

/// A job of copies, a kernel and work for the CPU, done in several ways.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Overlap {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// The device.
    #[serde(flatten)]
    pub origin: Origin,
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
    /// A report of this job, and of each way to do it.
    #[must_use]
    pub fn new(
        origin: Origin,
        bytes: u64,
        kernel_ns: u64,
        host_ns: u64,
        streams: u32,
        ways: Vec<Timeline>,
    ) -> Self {
        let work = match host_ns {
            0 => String::new(),
            _ => format!(", with {} of work for the CPU", duration(host_ns)),
        };
        let title = format!(
            "{} to the device, a kernel of {} and back{work}",
            amount(bytes),
            duration(kernel_ns)
        );
        let chart = Chart::new(title, origin.clone(), ways);
        Self {
            schema: SCHEMA_VERSION,
            origin,
            bytes,
            kernel_ns,
            host_ns,
            streams,
            chart,
        }
    }

    /// What the planned way is called: its chunks, and its streams where it is not one a stage.
    #[must_use]
    pub fn planned_name(chunk_bytes: u64, streams: Option<u32>) -> String {
        let streams = match streams {
            Some(streams) => format!("{streams} streams"),
            None => "a stream a stage".to_owned(),
        };
        format!("Planned: chunks of {}, {streams}", amount(chunk_bytes))
    }

    /// As JSON, over several lines, with a line end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("plain data becomes JSON");
        json.push('\n');
        json
    }
}
