//! `dot`: a dot product with its vectors in three kinds of memory.

mod text;

use serde::Serialize;

use crate::Origin;

/// How the products are summed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DotKernel {
    /// As a tree, in `f64`, in a fixed order.
    Tree,
    /// By atomic additions to one `f32`, in any order.
    Atomic,
}

/// The job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct DotJob {
    /// Elements of each of the two vectors.
    pub items: u64,
    /// Seed of the numbers.
    pub seed: u64,
    /// How the products are summed.
    pub kernel: DotKernel,
    /// Runs of each way; the median one is reported.
    pub repeat: u32,
}

/// Times of a run, by the device's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct DotTimes {
    /// Both vectors to the device.
    pub copy_ns: u64,
    /// The kernels.
    pub kernel_ns: u64,
    /// The result to the host.
    pub result_ns: u64,
    /// Sum.
    pub total_ns: u64,
}

impl DotTimes {
    /// Times of a run, with their sum.
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

/// A computed dot product and its error.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DotResult {
    /// Its value.
    pub value: f64,
    /// Bits of the double, in hexadecimal.
    pub bits: String,
    /// Relative distance from the reference.
    pub relative_error: f64,
}

impl DotResult {
    /// A result with its relative error.
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
    /// The median run; `None` if the simulated device does not model it.
    pub times: Option<DotTimes>,
    /// The result.
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

/// The tree kernel as a reference for an atomic one, on vectors in device memory.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DotTree {
    /// Its median time.
    pub kernel_ns: u64,
    /// The result.
    #[serde(flatten)]
    pub result: DotResult,
}

/// A dot product, computed in three ways.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Dot {
    /// The device.
    #[serde(flatten)]
    pub origin: Origin,
    /// The job.
    #[serde(flatten)]
    pub job: DotJob,
    /// Bytes copied to the device by each way.
    pub bytes: u64,
    /// Time to allocate pinned memory for both vectors; not part of any run.
    pub pinned_memory_ns: Option<u64>,
    /// The reference: computed on the CPU in double precision, with compensated summation.
    pub reference: f64,
    /// The three ways.
    #[serde(flatten)]
    pub ways: DotWays,
    /// Whether all runs gave the same bits.
    pub same_bits: bool,
    /// How many times faster pinned memory is than ordinary memory.
    pub speedup_pinned: Option<f64>,
    /// How many times faster the express lane is than the driver.
    pub speedup_express: Option<f64>,
    /// The tree kernel, if the job used another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<DotTree>,
}

impl Dot {
    /// A report; bytes and speed-ups are computed.
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

    /// Whether the result is reproducible, as the tree kernel's must be.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.same_bits || self.job.kernel == DotKernel::Atomic
    }
}
