//! How weights are loaded.

use std::fmt;
use std::sync::Arc;

use crate::Device;
use crate::load::{Dtype, Fault, LoadError, PlanOptions};

/// How files are read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Io {
    /// Through the page cache what is in it, past it what is not: piece by piece, as the system
    /// says.
    #[default]
    Auto,
    /// Through the page cache.
    Buffered,
    /// Past the page cache.
    Direct,
}

/// How weights are loaded. The defaults are good for a GPU and a disk of today.
///
/// ```
/// use pinlane::load::{Dtype, Io, LoadConfig};
///
/// let config = LoadConfig::default()
///     .convert(Dtype::Bf16)
///     .io(Io::Direct)
///     .on_progress(|so_far| eprint!("\r{} of {} bytes", so_far.bytes, so_far.total_bytes));
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LoadConfig {
    /// How files are read.
    pub io: Io,
    /// Threads that read, at most one a piece; `None`: as many as the express lane has lanes.
    pub threads: Option<usize>,
    /// Turn tensors of floating-point numbers into this type.
    pub convert: Option<Dtype>,
    /// Bytes that are read at once: a multiple of 4096, from 16 KiB to 1 GiB.
    pub piece_bytes: Option<usize>,
    /// Called by the thread that takes the tensors, as bytes land.
    pub progress: Option<OnProgress>,
}

/// A function that is told how far a load has come.
#[derive(Clone)]
pub struct OnProgress(Arc<dyn Fn(LoadProgress) + Send + Sync>);

/// How far a load has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LoadProgress {
    /// Bytes of files that are on the device.
    pub bytes: u64,
    /// All that will be.
    pub total_bytes: u64,
    /// Tensors that are complete.
    pub tensors: usize,
    /// All of them.
    pub total_tensors: usize,
}

/// Bytes that a thread reads at once. With a few of them under way for each thread, the link sees
/// large copies, and what was read is still in the CPU's caches when it is copied.
const PIECE_BYTES: usize = 4 << 20;

/// An element that starts with the last byte of a page is not torn where two pages are read.
const READ_BYTES_AT_LEAST: usize = 2 * 4096;

impl LoadConfig {
    /// Read files in this way.
    #[must_use]
    pub fn io(mut self, io: Io) -> Self {
        self.io = io;
        self
    }

    /// Read with so many threads.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Turn tensors of floating-point numbers into this type.
    #[must_use]
    pub fn convert(mut self, to: Dtype) -> Self {
        self.convert = Some(to);
        self
    }

    /// Call `told` as bytes land.
    #[must_use]
    pub fn on_progress(mut self, told: impl Fn(LoadProgress) + Send + Sync + 'static) -> Self {
        self.progress = Some(OnProgress(Arc::new(told)));
        self
    }

    pub(super) fn threads_for(&self, device: &Device) -> Result<usize, LoadError> {
        match self.threads {
            Some(0) => Err(bad("threads", "at least 1")),
            Some(threads) => Ok(threads),
            None => Ok(device.express_config().lanes),
        }
    }

    /// How many times larger the smallest elements become.
    fn growth(&self) -> usize {
        let kind = self.convert.and_then(Dtype::float_kind);
        kind.map_or(1, |kind| kind.bytes() / 2)
    }

    /// Bytes of a slot.
    pub(super) fn slot_bytes(&self) -> Result<usize, LoadError> {
        let bytes = self.piece_bytes.unwrap_or(PIECE_BYTES);
        match bytes.is_multiple_of(4096) && (4 * 4096..=1 << 30).contains(&bytes) {
            true => Ok(bytes.max(READ_BYTES_AT_LEAST * self.growth())),
            false => Err(bad(
                "piece_bytes",
                "a multiple of 4096, from 16384 to 1073741824",
            )),
        }
    }

    /// Elements that become larger still fit a slot.
    pub(super) fn plan_options(&self) -> Result<PlanOptions, LoadError> {
        let options = PlanOptions::default();
        let piece_bytes = self.slot_bytes()? / self.growth();
        Ok(PlanOptions {
            piece_bytes: (piece_bytes / 4096 * 4096) as u64,
            ..options
        })
    }
}

fn bad(field: &'static str, reason: &'static str) -> LoadError {
    Fault::BadConfig { field, reason }.into()
}

impl OnProgress {
    pub(super) fn tell(&self, progress: LoadProgress) {
        (self.0)(progress);
    }
}

impl fmt::Debug for OnProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnProgress")
    }
}
