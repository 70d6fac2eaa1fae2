//! `overlap`: one job run in several ways.

use serde::Serialize;

use crate::Origin;
use crate::format::{duration, short_size};
use crate::timeline::{Chart, Timeline};

/// A job of copies, a kernel and CPU work, run in several ways.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Overlap {
    /// The device.
    #[serde(flatten)]
    pub origin: Origin,
    /// Bytes copied to the device, and back.
    pub bytes: u64,
    /// Kernel time alone.
    pub kernel_ns: u64,
    /// CPU work alone.
    pub host_ns: u64,
    /// Streams of the ways with several.
    pub streams: u32,
    /// What the planner predicted for its way; `None` if CPU work is part of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_ns: Option<u64>,
    /// One run per way.
    pub chart: Chart,
}

impl Overlap {
    /// A report of this job, with one timeline per way.
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
            _ => format!(", with {} of CPU work", duration(host_ns)),
        };
        let title = format!(
            "{} to the device, a kernel of {} and back{work}",
            short_size(bytes),
            duration(kernel_ns)
        );
        let chart = Chart::new(title, origin.clone(), ways);
        Self {
            origin,
            bytes,
            kernel_ns,
            host_ns,
            streams,
            predicted_ns: None,
            chart,
        }
    }

    /// Adds the prediction for the planned way.
    #[must_use]
    pub fn predicted(mut self, ns: Option<u64>) -> Self {
        self.predicted_ns = ns;
        self
    }

    /// Name of the planned way: its chunks, and its streams unless it has one per stage.
    #[must_use]
    pub fn planned_name(chunk_bytes: u64, streams: Option<u32>) -> String {
        let streams = match streams {
            Some(streams) => format!("{streams} streams"),
            None => "one stream per stage".to_owned(),
        };
        format!("Planned: chunks of {}, {streams}", short_size(chunk_bytes))
    }
}
