//! A dataset that was run through the loader.

mod done;
mod html;
mod job;
mod limit;
mod shard;
mod text;

use serde::Serialize;

pub use self::done::FeedDone;
pub use self::job::{FeedAsked, FeedField, FeedJob, FeedNormalize};
pub use self::limit::FeedLimit;
pub use self::shard::FeedShard;
use crate::{Origin, SCHEMA_VERSION};

/// The copies, by the device's clock.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct FeedLink {
    /// Time of those that are known to be done.
    pub copy_ns: u64,
    /// Bytes of these.
    pub copy_bytes: u64,
    /// What a copy of one byte takes, where it was measured.
    pub one_byte_ns: Option<u64>,
}

/// A sample that could not be had and was left out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FeedSkipped {
    /// Its number in the dataset.
    pub index: u64,
    /// Why.
    pub why: String,
}

/// What the threads that read samples spent their time with, all of them together, on the real
/// clock of the machine that ran them, whatever the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct FeedHost {
    /// How many there were; the one that asks for batches where that one reads.
    pub threads: u64,
    /// How long the whole took.
    pub wall_ns: u64,
    /// In the dataset.
    pub read_ns: u64,
    /// Waiting for page-locked memory whose copy was under way.
    pub slot_wait_ns: u64,
    /// Waiting since enough batches were ready.
    pub held_back_ns: u64,
    /// Time that whoever asked for batches waited for them.
    pub consumer_wait_ns: u64,
}

/// The kernels that stood for the consumer's work, by the device's clock.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct FeedKernel {
    /// How many ran.
    pub count: u64,
    /// Time of all of them together.
    pub busy_ns: u64,
    /// From the start of the first to the end of the last.
    pub span_ns: u64,
}

impl FeedKernel {
    /// Share of the time between the first kernel's start and the last one's end in which none ran.
    #[must_use]
    pub fn idle_share(&self) -> f64 {
        match self.span_ns {
            0 => 0.0,
            span_ns => (1.0 - self.busy_ns as f64 / span_ns as f64).max(0.0),
        }
    }
}

/// What threads do beside the stages.
const REST: &str = "packing, submitting, starting";

/// A stage that the reading threads spent time in.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct FeedStage {
    /// What they did.
    pub name: &'static str,
    /// Share of their time.
    pub share: f64,
}

impl FeedStage {
    /// Whether it is one of the stages, not the rest.
    fn is_known(&self) -> bool {
        self.name != REST
    }
}

/// A dataset that was run through the loader.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Feed {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// The device.
    #[serde(flatten)]
    pub origin: Origin,
    /// What was to be done.
    #[serde(flatten)]
    pub job: FeedJob,
    /// Whether it ran as long as it should.
    pub complete: bool,
    /// What came to the device.
    #[serde(flatten)]
    pub done: FeedDone,
    /// Samples a second, over all of it.
    pub samples_per_s: Option<f64>,
    /// 1e9 bytes of samples a second, over all of it. `None` where not all of them are known.
    pub sample_gb_per_s: Option<f64>,
    /// 1e9 bytes a second that were copied, over all of it.
    pub moved_gb_per_s: Option<f64>,
    /// The copies.
    pub link: FeedLink,
    /// 1e9 bytes a second while copies ran.
    pub link_gb_per_s: Option<f64>,
    /// Share of the time in which a copy ran.
    pub link_busy_share: Option<f64>,
    /// The threads that read.
    pub host: FeedHost,
    /// What these threads did, as shares of their time; none on a simulated device, whose waiting takes
    /// no real time.
    pub stages: Vec<FeedStage>,
    /// The kernels, where there were some.
    pub kernel: Option<FeedKernel>,
    /// Share of the time in which the GPU stood idle between kernels.
    pub gpu_idle_share: Option<f64>,
    /// Page-locked memory that it took.
    pub pinned_bytes: u64,
    /// What kept it from being faster.
    pub limit: Option<FeedLimit>,
    /// The first of the samples that were left out.
    pub first_skipped: Vec<FeedSkipped>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

impl Feed {
    /// A report; rates, shares and the limit follow from the rest.
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
            schema: SCHEMA_VERSION,
            samples_per_s: over(done.samples, elapsed_ns).map(|rate| rate * 1e9),
            sample_gb_per_s: over(done.sample_bytes, elapsed_ns)
                .filter(|_| done.sample_batches == done.batches),
            moved_gb_per_s: over(done.moved_bytes, elapsed_ns),
            link_gb_per_s: over(link.copy_bytes, Some(link.copy_ns)),
            link_busy_share: over(link.copy_ns, elapsed_ns).map(|share| share.min(1.0)),
            gpu_idle_share: kernel.map(|kernel| kernel.idle_share()),
            stages: match origin {
                Origin::Measured { .. } => host.stages(),
                _ => Vec::new(),
            },
            origin,
            job,
            complete: true,
            done,
            link,
            host,
            kernel,
            pinned_bytes: 0,
            limit: None,
            first_skipped: Vec::new(),
            notes: Vec::new(),
        };
        report.limit = report.find_limit();
        report
    }

    /// Whether samples were left out, and none was fed.
    #[must_use]
    pub fn all_skipped(&self) -> bool {
        self.done.samples == 0 && self.done.skipped > 0
    }

    /// Share of all the time in which a kernel ran.
    fn gpu_busy_share(&self) -> Option<f64> {
        let elapsed_ns = self.done.elapsed_ns.filter(|ns| *ns > 0)?;
        let busy_ns = self.kernel?.busy_ns;
        Some((busy_ns as f64 / elapsed_ns as f64).min(1.0))
    }

    /// The report as JSON, over several lines, with a line end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("plain data becomes JSON");
        json.push('\n');
        json
    }
}

impl FeedHost {
    /// The names are what the texts say. The last is whatever is not known.
    fn stages(&self) -> Vec<FeedStage> {
        let known = [self.read_ns, self.slot_wait_ns, self.held_back_ns];
        let known_ns = known.iter().fold(0, |sum: u64, ns| sum.saturating_add(*ns));
        // Clocks are read one behind the other: the parts may be a little more than the whole.
        let whole_ns = self
            .wall_ns
            .saturating_mul(self.threads.max(1))
            .max(known_ns);
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
