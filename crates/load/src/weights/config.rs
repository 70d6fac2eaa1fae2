//! Settings of a load.

use std::fmt;
use std::sync::Arc;

use pinlane_core::internal::cpus;
use pinlane_model::Profile;

use super::rank_sharing::threads_of_rank;
use crate::setters::setters;
use crate::{Dtype, Shard};

/// How files are read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[non_exhaustive]
pub enum Io {
    /// Buffered for cached data, direct for the rest; decided per piece. For one of several
    /// [ranks of a machine](LoadConfig::local_rank): buffered if the files fit into memory.
    #[default]
    Auto,
    /// Through the page cache.
    Buffered,
    /// Bypassing the page cache (`O_DIRECT`).
    Direct,
}

/// Settings of a load. The defaults suit current GPUs and disks.
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
    /// Reader threads, at most; `None`: as many as the express lane has lanes, and no more than this rank's share of
    /// the CPUs.
    pub threads: Option<usize>,
    /// Type to convert floating-point tensors to.
    pub convert: Option<Dtype>,
    /// Bytes per copy: a multiple of 4096, from 16 KiB to 1 GiB.
    pub piece_bytes: Option<usize>,
    /// Limit of pinned memory, at least 32 KiB. `None`: 128 MiB, or 8 MiB per thread when converting,
    /// and at least two pieces. Never more than the budget has left.
    pub pinned_bytes: Option<usize>,
    /// Window of a load into given memory ([`Weights::start_into`](crate::Weights::start_into)): while tensors
    /// that were given memory but not taken have this many bytes on the device, none is given more. So at most
    /// this and the largest tensor are ahead of the consumer. `None`: no limit. Other loads refuse it.
    pub device_bytes: Option<u64>,
    /// The rank of this process among those of its machine; `None`: as the launcher says
    /// ([`Shard::local_from_env`]). Several ranks that load the same files read the disk once, if the files fit
    /// into half of the available memory: with [`Io::Auto`], all read through the page cache, and rank `r` of `w`
    /// begins at `r / w` of the bytes and wraps. [`LoadStats::sharing`](crate::LoadStats::sharing) is what was chosen.
    /// The budget of pinned memory is divided by what the launcher says only.
    pub local_rank: Option<Shard>,
    /// Called on the thread that takes the tensors, as bytes arrive on the device.
    pub on_progress: Option<ProgressCallback>,
}

/// A callback for the progress of a load; see [`LoadConfig::on_progress`].
#[derive(Clone)]
pub struct ProgressCallback(pub(super) Arc<dyn Fn(LoadProgress) + Send + Sync>);

/// Progress of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LoadProgress {
    /// Bytes of the files that have arrived on the device.
    pub bytes: u64,
    /// Bytes to load.
    pub total_bytes: u64,
    /// Complete tensors.
    pub tensors: usize,
    /// Tensors to load.
    pub total_tensors: usize,
}

impl LoadConfig {
    /// The settings that calibration of this machine found, for loads without conversion.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use pinlane::load::LoadConfig;
    /// use pinlane_model::Profile;
    ///
    /// # let text = Profile::builtin("h200").unwrap().to_toml() + "\n[files]\nthreads = 2\nbytes_per_s = 9_000_000_000\n";
    /// let profile = Profile::from_toml(&text)?; // written by `pinlane calibrate`
    /// let config = LoadConfig::calibrated(&profile);
    /// # assert!(config.threads.is_some_and(|threads| (1..=2).contains(&threads)));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn calibrated(profile: &Profile) -> Self {
        Self {
            // This process may have fewer CPUs than the calibration had.
            threads: profile
                .files
                .map(|files| cpus().min(files.threads as usize))
                .map(|threads| {
                    threads_of_rank(threads, Shard::local_from_env().unwrap_or_default())
                }),
            ..Self::default()
        }
    }

    setters! {
        io: Io, threads: usize, convert: Dtype, piece_bytes: usize, pinned_bytes: usize, device_bytes: u64,
        local_rank: Shard
    }

    /// Calls `callback` as bytes arrive on the device.
    #[must_use]
    pub fn on_progress(mut self, callback: impl Fn(LoadProgress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(ProgressCallback(Arc::new(callback)));
        self
    }
}

impl fmt::Debug for ProgressCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgressCallback")
    }
}
