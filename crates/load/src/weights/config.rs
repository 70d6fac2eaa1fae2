//! How weights are loaded.

use std::fmt;
use std::sync::Arc;

use pinlane_model::Profile;

use crate::{Dtype, Fault, LoadError};
use pinlane_core::{Device, internal};

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
    /// Threads that read, never more than there is work for; `None`: as many as the express lane has
    /// lanes.
    pub threads: Option<usize>,
    /// Turn tensors of floating-point numbers into this type.
    pub convert: Option<Dtype>,
    /// Bytes that are copied at once: a multiple of 4096, from 16 KiB to 1 GiB.
    pub piece_bytes: Option<usize>,
    /// Page-locked memory that is taken at most, from 32 KiB; `None`: 128 MiB, or 8 MiB a thread where
    /// elements are converted, and at least two pieces. Never more than the budget has left.
    pub pinned_bytes: Option<usize>,
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

impl LoadConfig {
    /// As a calibration of this machine says, for loads that do not convert.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use pinlane::load::LoadConfig;
    /// use pinlane_model::Profile;
    ///
    /// # let text = Profile::builtin("h200").unwrap().to_toml() + "\n[files]\nthreads = 2\nbytes_per_s = 9_000_000_000\n";
    /// let profile = Profile::from_toml(&text)?; // what `pinlane calibrate` wrote
    /// let config = LoadConfig::calibrated(&profile);
    /// # assert!(config.threads.is_some_and(|threads| (1..=2).contains(&threads)));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn calibrated(profile: &Profile) -> Self {
        let cpus = internal::cpus();
        Self {
            // This process may have fewer CPUs than that one had.
            threads: profile.files.map(|files| cpus.min(files.threads as usize)),
            ..Self::default()
        }
    }

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

    /// Take so many bytes of page-locked memory at most.
    #[must_use]
    pub fn pinned_bytes(mut self, bytes: usize) -> Self {
        self.pinned_bytes = Some(bytes);
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
}

pub(super) fn bad(field: &'static str, reason: &'static str) -> LoadError {
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
