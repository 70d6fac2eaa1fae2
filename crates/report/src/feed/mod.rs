//! `feed`: a dataset run through the loader.

mod bottleneck;
mod html;
mod interval;
mod job;
mod plots;
mod text;

use serde::Serialize;

pub use self::bottleneck::FeedLimit;
pub use self::interval::FeedInterval;
pub use self::job::{FeedField, FeedJob, FeedNormalize, FeedShard, FeedTarget};
use crate::Origin;
use crate::format::{byte_rate, short_size};

/// Copies, by the device's clock.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct FeedLink {
    /// Time of completed copies.
    pub copy_ns: u64,
    /// Bytes of completed copies.
    pub copy_bytes: u64,
    /// Time of a one-byte copy, if measured.
    pub one_byte_ns: Option<u64>,
}

/// A sample that could not be read and was skipped.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FeedSkipped {
    /// Its number in the dataset.
    pub index: u64,
    /// Why.
    pub why: String,
}

/// Time spent by the reading threads, summed over all of them, by the real clock even if the device is
/// simulated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct FeedHost {
    /// Number of threads; 1 if the consumer reads.
    pub threads: u64,
    /// Total time.
    pub wall_ns: u64,
    /// Reading samples.
    pub read_ns: u64,
    /// Waiting for pinned slots in flight.
    pub slot_wait_ns: u64,
    /// Waiting because enough batches were ready.
    pub held_back_ns: u64,
    /// Time the consumer waited for batches.
    pub consumer_wait_ns: u64,
}

/// What was copied to the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct FeedDone {
    /// Complete epochs.
    pub epochs: u64,
    /// Batches.
    pub batches: u64,
    /// Samples, including padding.
    pub samples: u64,
    /// Samples that could not be read and were skipped.
    pub skipped: u64,
    /// Bytes of samples in the dataset, of the first `sample_batches` batches.
    pub sample_bytes: u64,
    /// Batches that `sample_bytes` covers. Not all if samples differ in length and batches were copied ahead
    /// but not taken.
    pub sample_batches: u64,
    /// Bytes copied to the device: samples, their offsets if lengths differ, and padding.
    pub moved_bytes: u64,
    /// Total time, by the clock of the device's machine (simulated for a simulated device). `None` if that
    /// clock is not available.
    pub elapsed_ns: Option<u64>,
    /// Time until the first batch, by the same clock.
    pub first_batch_ns: Option<u64>,
}

impl FeedDone {
    /// Bytes of samples, and bytes moved if they differ.
    pub(super) fn amounts(&self) -> String {
        let (samples, moved) = (short_size(self.sample_bytes), short_size(self.moved_bytes));
        if self.sample_bytes == self.moved_bytes {
            return samples;
        }
        let of = match self.sample_batches < self.batches {
            true => format!("of samples in the {} batches taken", self.sample_batches),
            false => "of samples".to_owned(),
        };
        format!("{samples} {of}, {moved} moved with lengths and padding")
    }

    /// Rates of both, if known.
    pub(super) fn rates(&self, samples: Option<f64>, moved: Option<f64>) -> String {
        let label = |rate: Option<f64>, what: &str| {
            rate.map_or(String::new(), |rate| format!(", {}{what}", byte_rate(rate)))
        };
        match self.sample_bytes == self.moved_bytes {
            true => label(samples, ""),
            false => label(samples, " of samples") + &label(moved, " moved"),
        }
    }
}

/// The kernels that stand for the consumer's work, by the device's clock.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct FeedKernel {
    /// Number of kernels.
    pub count: u64,
    /// Total time of the kernels.
    pub busy_ns: u64,
    /// From the start of the first to the end of the last.
    pub span_ns: u64,
}

impl FeedKernel {
    /// Share of `span_ns` in which no kernel ran.
    fn idle_share(&self) -> f64 {
        match self.span_ns {
            0 => 0.0,
            span_ns => (1.0 - self.busy_ns as f64 / span_ns as f64).max(0.0),
        }
    }
}

/// Time outside the known stages.
const REST: &str = "packing, submitting, starting";

/// A stage of the reading threads.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct FeedStage {
    /// Name.
    pub name: &'static str,
    /// Share of their time.
    pub share: f64,
}

impl FeedStage {
    /// Whether it is a stage, not the rest.
    fn is_known(&self) -> bool {
        self.name != REST
    }
}

/// A dataset run through the loader.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Feed {
    /// The device.
    #[serde(flatten)]
    pub origin: Origin,
    /// The job.
    #[serde(flatten)]
    pub job: FeedJob,
    /// Whether the target was reached; false after an interruption.
    pub complete: bool,
    /// What was copied to the device.
    #[serde(flatten)]
    pub done: FeedDone,
    /// Samples a second, over the total time.
    pub samples_per_s: Option<f64>,
    /// 1e9 bytes of samples a second, over the total time; `None` if not all are known.
    pub sample_gb_per_s: Option<f64>,
    /// 1e9 bytes copied a second, over the total time.
    pub moved_gb_per_s: Option<f64>,
    /// Copies.
    pub link: FeedLink,
    /// 1e9 bytes a second while copies ran.
    pub link_gb_per_s: Option<f64>,
    /// Share of the time in which a copy ran.
    pub link_busy_share: Option<f64>,
    /// Reading threads.
    pub host: FeedHost,
    /// Stages as shares of the threads' time; empty on a simulated device, where waiting takes no real time.
    pub stages: Vec<FeedStage>,
    /// Kernels, if any.
    pub kernel: Option<FeedKernel>,
    /// Share of the time in which the GPU was idle between kernels.
    pub gpu_idle_share: Option<f64>,
    /// The run over time, after the first batch; empty if the time was not measured.
    pub intervals: Vec<FeedInterval>,
    /// Pinned memory in use.
    pub pinned_bytes: u64,
    /// What limited the rate.
    pub limit: Option<FeedLimit>,
    /// The first skipped samples.
    pub first_skipped: Vec<FeedSkipped>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

impl Feed {
    /// A report; rates, shares and the limit are computed.
    #[must_use]
    pub fn new(
        origin: Origin,
        job: FeedJob,
        done: FeedDone,
        link: FeedLink,
        host: FeedHost,
        kernel: Option<FeedKernel>,
    ) -> Self {
        let over = |amount: u64, ns: Option<u64>| {
            let ns = ns.filter(|ns| *ns > 0 && amount > 0)?;
            Some(amount as f64 / ns as f64)
        };
        let elapsed_ns = done.elapsed_ns;
        let mut report = Self {
            samples_per_s: over(done.samples, elapsed_ns).map(|rate| rate * 1e9),
            sample_gb_per_s: over(done.sample_bytes, elapsed_ns)
                .filter(|_| done.sample_batches == done.batches),
            moved_gb_per_s: over(done.moved_bytes, elapsed_ns),
            link_gb_per_s: over(link.copy_bytes, Some(link.copy_ns)),
            link_busy_share: over(link.copy_ns, elapsed_ns).map(|share| share.min(1.0)),
            gpu_idle_share: kernel.map(|kernel| kernel.idle_share()),
            stages: match origin.is_measured() {
                true => host.stages(),
                false => Vec::new(),
            },
            origin,
            job,
            complete: true,
            done,
            link,
            host,
            kernel,
            intervals: Vec::new(),
            pinned_bytes: 0,
            limit: None,
            first_skipped: Vec::new(),
            notes: Vec::new(),
        };
        report.limit = report.find_limit();
        report
    }

    /// Whether all samples were skipped.
    #[must_use]
    pub fn all_skipped(&self) -> bool {
        self.done.samples == 0 && self.done.skipped > 0
    }

    /// Share of the total time in which the consumer waited for batches.
    fn wait_share(&self) -> Option<f64> {
        if self.intervals.is_empty() {
            return None;
        }
        let elapsed_ns = self.done.elapsed_ns.filter(|ns| *ns > 0)?;
        let waits_ns = self.intervals.iter().map(|interval| interval.wait_ns);
        let waits_ns = waits_ns.chain(self.done.first_batch_ns);
        let wait_ns = waits_ns.fold(0, u64::saturating_add);
        Some((wait_ns as f64 / elapsed_ns as f64).min(1.0))
    }

    /// Share of the total time in which a kernel ran.
    fn gpu_busy_share(&self) -> Option<f64> {
        let elapsed_ns = self.done.elapsed_ns.filter(|ns| *ns > 0)?;
        let busy_ns = self.kernel?.busy_ns;
        Some((busy_ns as f64 / elapsed_ns as f64).min(1.0))
    }
}

impl FeedHost {
    /// The known stages, and the rest.
    fn stages(&self) -> Vec<FeedStage> {
        let known = [self.read_ns, self.slot_wait_ns, self.held_back_ns];
        let known_ns = known.into_iter().fold(0, u64::saturating_add);
        // Clocks are read one after the other, so the parts may slightly exceed the whole.
        let all_ns = self.wall_ns.saturating_mul(self.threads.max(1));
        let whole_ns = all_ns.max(known_ns);
        if whole_ns == 0 {
            return Vec::new();
        }
        let stage = |name, ns: u64| FeedStage {
            name,
            share: ns as f64 / whole_ns as f64,
        };
        vec![
            stage("reading samples", self.read_ns),
            stage("waiting for copies", self.slot_wait_ns),
            stage("held back by the consumer", self.held_back_ns),
            stage(REST, whole_ns - known_ns),
        ]
    }
}
