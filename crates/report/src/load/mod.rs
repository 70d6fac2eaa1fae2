//! Weights from files to a device.

mod list;
mod text;

use serde::Serialize;

use crate::{Origin, SCHEMA_VERSION};

pub use list::{LoadList, LoadListConverted, LoadListTensor};

/// What was to be loaded.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LoadJob {
    /// Files that have some of the tensors.
    pub files: u64,
    /// Tensors.
    pub tensors: u64,
    /// Their bytes in the files.
    pub bytes: u64,
    /// Rows of which rank, where not all rows were wanted.
    pub shard: Option<LoadShard>,
    /// How many times.
    pub repeat: u64,
    /// Whether the last time was to be read back and compared.
    pub verify: bool,
}

/// The rows of one rank of several.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct LoadShard {
    /// Which one, from 0.
    pub rank: u64,
    /// How many there are.
    pub world: u64,
}

/// What kept a load from being faster.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadLimitedBy {
    /// Threads waited for the disk.
    Disk,
    /// Threads copied out of the page cache, or converted.
    Cpu,
    /// Threads waited for copies to the device.
    Link,
}

/// What one load took, by the host's clock. Times of threads are those of all of them together.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct LoadTimes {
    /// Opening files and reading their headers.
    pub headers_ns: u64,
    /// Making the context of the process on the device, which the first run has to wait for.
    pub context_ns: u64,
    /// From then to all tensors on the device, with getting memory there.
    pub load_ns: u64,
    /// All three.
    pub total_ns: u64,
    /// 1e9 bytes of files a second, by all three.
    pub gb_per_s: f64,
    /// Threads that read.
    pub threads: u64,
    /// Bytes that were read through the page cache.
    pub page_cache_bytes: u64,
    /// Bytes that were read past it.
    pub direct_bytes: u64,
    /// Threads in reads.
    pub reading_ns: u64,
    /// How much of it they did not run, but waited for the disk.
    pub blocked_ns: u64,
    /// Threads in conversions.
    pub converting_ns: u64,
    /// Threads that waited for copies to the device.
    pub waiting_ns: u64,
    /// What kept it from being faster.
    pub limit: LoadLimitedBy,
}

/// One load. On a simulated device only its copies take simulated time: files are read by the threads
/// of a real machine.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct LoadRun {
    /// What it took; `None` on a simulated device.
    pub times: Option<LoadTimes>,
    /// What the copies take on a simulated device.
    pub simulated_copies: Option<LoadCopies>,
    /// What was real of it on a simulated device.
    pub host: Option<LoadHost>,
}

/// What the machine behind a simulated device did, by its own clock. Times of threads are those of all
/// of them together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct LoadHost {
    /// Opening files and reading their headers.
    pub headers_ns: u64,
    /// Threads that read.
    pub threads: u64,
    /// Threads in reads.
    pub reading_ns: u64,
    /// Threads in conversions.
    pub converting_ns: u64,
    /// Bytes that were read through the page cache.
    pub page_cache_bytes: u64,
    /// Bytes that were read past it.
    pub direct_bytes: u64,
}

/// Copies to a simulated device, one behind the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct LoadCopies {
    /// How many.
    pub count: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Simulated time that they take.
    pub ns: u64,
}

/// The middle one of all runs but the first.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct LoadMedian {
    /// How many these are.
    pub runs: u64,
    /// From open to all tensors ready.
    pub total_ns: u64,
    /// 1e9 bytes of files a second.
    pub gb_per_s: f64,
}

/// Tensors that were to become another type on the way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LoadConversion {
    /// The type, as safetensors files name it.
    pub to: String,
    /// Tensors that were converted.
    pub converted: u64,
    /// Tensors that were of this type before.
    pub already: u64,
    /// Tensors of types that stay as they are, such as integers.
    pub left: u64,
}

/// What reading back and comparing gave.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LoadVerify {
    /// Tensors that were read back and are as in the files, converted as they were on the way.
    pub tensors: u64,
    /// The first thing that was wrong: file, tensor and byte.
    pub failure: Option<String>,
}

/// Memory that a load takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct LoadMemory {
    /// Pinned memory that files were read into; `None` on a simulated device, where it depends on
    /// how the threads of a real machine took turns.
    pub pinned_bytes: Option<u64>,
    /// Memory on the device, with what lies between tensors.
    pub device_bytes: u64,
}

/// Loads of the same tensors, one behind the other.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Load {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// The device.
    #[serde(flatten)]
    pub origin: Origin,
    /// What was to be loaded.
    pub job: LoadJob,
    /// Whether all was done that was to be done.
    pub complete: bool,
    /// Loads that came to their end, the first one first.
    pub runs: Vec<LoadRun>,
    /// The middle one of the later ones; see [`push`](Self::push).
    pub median_of_later: Option<LoadMedian>,
    /// Memory that is in use after the last one.
    pub memory: Option<LoadMemory>,
    /// Where a type was asked for.
    pub conversion: Option<LoadConversion>,
    /// Where it was asked for.
    pub verify: Option<LoadVerify>,
}

impl Load {
    /// Nothing has been loaded yet.
    #[must_use]
    pub fn new(origin: Origin, job: LoadJob) -> Self {
        Self {
            schema: SCHEMA_VERSION,
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

    /// A load has come to its end.
    pub fn push(&mut self, run: LoadRun) {
        self.runs.push(run);
        let later = self.later();
        self.median_of_later = later.get(later.len() / 2).map(|median| LoadMedian {
            runs: later.len() as u64,
            total_ns: median.total_ns,
            gb_per_s: median.gb_per_s,
        });
    }

    /// The run that figures are told of: the only one, or the middle one of the later ones.
    fn typical(&self) -> Option<LoadTimes> {
        let later = self.later();
        match later.get(later.len() / 2) {
            Some(median) => Some(*median),
            None => self.runs.first()?.times,
        }
    }

    /// All but the first, the shortest first.
    fn later(&self) -> Vec<LoadTimes> {
        let later = self.runs.iter().skip(1);
        let mut times: Vec<_> = later.filter_map(|run| run.times).collect();
        times.sort_by_key(|times| times.total_ns);
        times
    }

    /// The report as JSON, over several lines, with a line end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("plain data becomes JSON");
        json.push('\n');
        json
    }
}

impl LoadTimes {
    /// What threads spent on this, as a share of their time.
    fn share(&self, ns: u64) -> f64 {
        let all = self.reading_ns as f64 + self.converting_ns as f64 + self.waiting_ns as f64;
        match all > 0.0 {
            true => ns as f64 / all,
            false => 0.0,
        }
    }
}
