//! `load`: weights from files to a device.

mod list;
mod text;

use serde::Serialize;

use crate::Origin;
use crate::stats::middle_by_key;

pub use list::{LoadList, LoadListConverted, LoadListTensor};

/// What to load.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LoadJob {
    /// Files with any of the tensors.
    pub files: u64,
    /// Tensors.
    pub tensors: u64,
    /// Bytes in the files.
    pub bytes: u64,
    /// The rank whose rows are loaded; `None` for all rows.
    pub shard: Option<LoadShard>,
    /// Number of runs.
    pub repeat: u64,
    /// Whether to read back and compare the last run.
    pub verify: bool,
}

/// One rank of several.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct LoadShard {
    /// Rank, from 0.
    pub rank: u64,
    /// Number of ranks.
    pub world: u64,
}

/// What limited a load.
///
/// The twin of `pinlane::load::LoadLimit`: reports do not depend on the library.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadLimitedBy {
    /// Threads waited for the disk.
    Disk,
    /// Threads copied from the page cache, or converted.
    Cpu,
    /// Threads waited for copies to the device.
    Link,
}

/// Times of one load, by the host's clock. Times of threads are summed over all threads.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct LoadTimes {
    /// Opening files and reading their headers.
    pub headers_ns: u64,
    /// Creating the process's context on the device, for which the first run waits.
    pub context_ns: u64,
    /// From then until all tensors are on the device, including allocation.
    pub load_ns: u64,
    /// Sum of these.
    pub total_ns: u64,
    /// 1e9 bytes of files a second, over the total time.
    pub gb_per_s: f64,
    /// Reading threads.
    pub threads: u64,
    /// Bytes read through the page cache.
    pub page_cache_bytes: u64,
    /// Bytes read directly, bypassing it.
    pub direct_bytes: u64,
    /// Time in reads.
    pub reading_ns: u64,
    /// The part of it in which threads waited for the disk.
    pub blocked_ns: u64,
    /// Time in conversions.
    pub converting_ns: u64,
    /// Time waiting for copies to the device.
    pub waiting_ns: u64,
    /// What limited it.
    pub limit: LoadLimitedBy,
}

/// One of several ranks of a machine that load at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct LoadLocalRank {
    /// Rank on this machine, from 0.
    pub rank: u64,
    /// Number of ranks on this machine.
    pub world: u64,
    /// How they share the files.
    pub sharing: LoadSharing,
}

/// How ranks of one machine share the files that all of them load.
///
/// The twin of `pinlane::load::RankSharing`: reports do not depend on the library.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadSharing {
    /// All read through the page cache, each from another place.
    PageCache,
    /// The files do not fit into memory: each reads for itself.
    NoRoom,
    /// Each reads its own rows.
    OwnRows,
    /// Each reads for itself, bypassing the page cache.
    Direct,
}

/// One load. On a simulated device only copies take simulated time; files are read in real time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct LoadRun {
    /// Times; `None` on a simulated device.
    pub times: Option<LoadTimes>,
    /// Simulated copies, on a simulated device.
    pub simulated_copies: Option<LoadCopies>,
    /// Real work of the host, on a simulated device.
    pub host: Option<LoadHost>,
    /// The rank on this machine; `None` if there is only one.
    pub local_rank: Option<LoadLocalRank>,
}

/// Real work of the host of a simulated device, by its own clock. Times of threads are summed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct LoadHost {
    /// Opening files and reading their headers.
    pub headers_ns: u64,
    /// Reading threads.
    pub threads: u64,
    /// Time in reads.
    pub reading_ns: u64,
    /// Time in conversions.
    pub converting_ns: u64,
    /// Bytes read through the page cache.
    pub page_cache_bytes: u64,
    /// Bytes read directly, bypassing it.
    pub direct_bytes: u64,
}

/// Copies to a simulated device, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct LoadCopies {
    /// Number of copies.
    pub count: u64,
    /// Total bytes.
    pub bytes: u64,
    /// Simulated time.
    pub ns: u64,
}

/// The median of all runs but the first.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct LoadMedian {
    /// Number of these runs.
    pub runs: u64,
    /// From open until all tensors are ready.
    pub total_ns: u64,
    /// 1e9 bytes of files a second.
    pub gb_per_s: f64,
}

/// Conversion of tensors on the way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LoadConversion {
    /// Target type, as named in safetensors files.
    pub to: String,
    /// Converted tensors.
    pub converted: u64,
    /// Tensors that had this type already.
    pub already: u64,
    /// Tensors of types that are not converted, such as integers.
    pub left: u64,
}

/// Result of reading back and comparing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LoadVerify {
    /// Tensors that match the files, after conversion if any.
    pub tensors: u64,
    /// The first mismatch: file, tensor and byte.
    pub failure: Option<String>,
}

/// Memory of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct LoadMemory {
    /// Pinned memory for reading; `None` on a simulated device, where it depends on thread scheduling.
    pub pinned_bytes: Option<u64>,
    /// Device memory, including padding.
    pub device_bytes: u64,
}

/// Repeated loads of the same tensors.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Load {
    /// The device.
    #[serde(flatten)]
    pub origin: Origin,
    /// What to load.
    pub job: LoadJob,
    /// Whether everything was done; false after an interruption.
    pub complete: bool,
    /// Completed loads, in order.
    pub runs: Vec<LoadRun>,
    /// The median of all runs but the first; see [`push`](Self::push).
    pub median_of_later: Option<LoadMedian>,
    /// Memory in use after the last run.
    pub memory: Option<LoadMemory>,
    /// Conversion, if requested.
    pub conversion: Option<LoadConversion>,
    /// Verification, if requested.
    pub verify: Option<LoadVerify>,
}

impl Load {
    /// A report without runs.
    #[must_use]
    pub fn new(origin: Origin, job: LoadJob) -> Self {
        Self {
            origin,
            job,
            complete: false,
            runs: Vec::new(),
            median_of_later: None,
            memory: None,
            conversion: None,
            verify: None,
        }
    }

    /// Adds a completed load.
    pub fn push(&mut self, run: LoadRun) {
        self.runs.push(run);
        let mut later = self.later();
        self.median_of_later = middle_by_key(&mut later, total_ns).map(|median| LoadMedian {
            runs: later.len() as u64,
            total_ns: median.total_ns,
            gb_per_s: median.gb_per_s,
        });
    }

    /// The run to report in detail: the median of the later runs, or the only one.
    fn typical(&self) -> Option<LoadTimes> {
        let median = middle_by_key(&mut self.later(), total_ns);
        median.or_else(|| self.runs.first()?.times)
    }

    fn later(&self) -> Vec<LoadTimes> {
        let later = self.runs.iter().skip(1);
        later.filter_map(|run| run.times).collect()
    }
}

fn total_ns(times: &LoadTimes) -> u64 {
    times.total_ns
}

impl LoadTimes {
    fn share(&self, ns: u64) -> f64 {
        let all = self.reading_ns as f64 + self.converting_ns as f64 + self.waiting_ns as f64;
        if all > 0.0 { ns as f64 / all } else { 0.0 }
    }
}
