//! The dot product, with its vectors in three kinds of memory.

mod text;

use serde::Serialize;

use crate::{Origin, SCHEMA_VERSION};

/// How the products are added.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DotKernel {
    /// As a tree, in `f64`, in an order that never changes.
    Tree,
    /// By atomic additions to one `f32`, in any order.
    Atomic,
}

/// What was to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct DotJob {
    /// Elements of each of the two vectors.
    pub items: u64,
    /// Seed of the numbers.
    pub seed: u64,
    /// How they are added.
    pub kernel: DotKernel,
    /// Runs of each way, of which the median one is told.
    pub repeat: u32,
}

/// Where the time of a run went, by the device's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct DotTimes {
    /// Both vectors to the device.
    pub copy_ns: u64,
    /// The kernels.
    pub kernel_ns: u64,
    /// The result to the host.
    pub result_ns: u64,
    /// All of it.
    pub total_ns: u64,
}

impl DotTimes {
    /// The times of a run; their sum follows.
    #[must_use]
    pub fn new(copy_ns: u64, kernel_ns: u64, result_ns: u64) -> Self {
        Self {
            copy_ns,
            kernel_ns,
            result_ns,
            total_ns: copy_ns.saturating_add(kernel_ns).saturating_add(result_ns),
        }
    }
}

/// A dot product that was computed, and how far it is from the right one.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DotResult {
    /// Its value.
    pub value: f64,
    /// Its bits as a double, in hexadecimal.
    pub bits: String,
    /// Distance from the reference, as a share of it.
    pub relative_error: f64,
}

impl DotResult {
    /// A result with its distance from the reference.
    #[must_use]
    pub fn new(value: f64, relative_error: f64) -> Self {
        Self {
            value,
            bits: format!("{:#018x}", value.to_bits()),
            relative_error,
        }
    }
}

/// One way: the vectors in one kind of memory.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DotWay {
    /// The median run. `None` where the simulated device has no figures for it.
    pub times: Option<DotTimes>,
    /// What came out.
    #[serde(flatten)]
    pub result: DotResult,
}

/// The three ways.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DotWays {
    /// Ordinary memory, copied by the driver.
    pub standard: DotWay,
    /// Pinned memory.
    pub pinned: DotWay,
    /// Ordinary memory, copied by the express lane.
    pub express: DotWay,
}

/// The tree kernel beside an atomic one, on vectors that are on the device.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DotTree {
    /// Its median time.
    pub kernel_ns: u64,
    /// What came out.
    #[serde(flatten)]
    pub result: DotResult,
}

/// The dot product of two vectors, done three ways.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Dot {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// The device.
    #[serde(flatten)]
    pub origin: Origin,
    /// What was to be done.
    #[serde(flatten)]
    pub job: DotJob,
    /// Bytes that each way copies to the device.
    pub bytes: u64,
    /// What getting pinned memory for both vectors took, which no time of a run holds.
    pub pinned_memory_ns: Option<u64>,
    /// The right result: computed on the CPU, in double precision, with the rounding errors added up.
    pub reference: f64,
    /// The three ways.
    #[serde(flatten)]
    pub ways: DotWays,
    /// Whether all runs of all ways gave the same bits.
    pub same_bits: bool,
    /// How many times faster pinned memory is than ordinary memory.
    pub speedup_pinned: Option<f64>,
    /// How many times faster the express lane is than the driver.
    pub speedup_express: Option<f64>,
    /// The right kernel, where another one was at work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<DotTree>,
}

impl Dot {
    /// A report; bytes and speed-ups follow from the rest.
    #[must_use]
    pub fn new(
        origin: Origin,
        job: DotJob,
        pinned_memory_ns: Option<u64>,
        reference: f64,
        ways: DotWays,
        same_bits: bool,
    ) -> Self {
        let against_standard = |way: &DotWay| {
            let (standard, way) = ways.standard.times.zip(way.times)?;
            let both = standard.total_ns > 0 && way.total_ns > 0;
            both.then(|| standard.total_ns as f64 / way.total_ns as f64)
        };
        Self {
            schema: SCHEMA_VERSION,
            origin,
            bytes: job.items.saturating_mul(8),
            job,
            pinned_memory_ns,
            reference,
            speedup_pinned: against_standard(&ways.pinned),
            speedup_express: against_standard(&ways.express),
            ways,
            same_bits,
            tree: None,
        }
    }

    /// Whether the job went well: the tree kernel must give the same bits again and again.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.same_bits || self.job.kernel == DotKernel::Atomic
    }

    /// The report as JSON, over several lines, with a line end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("plain data becomes JSON");
        json.push('\n');
        json
    }
}
