//! Datasets to the device: worker threads write samples straight into page-locked memory, batches are
//! copied ahead on a stream of their own, and whatever uses them waits for that by itself.
//!
//! ```text
//!   Loader ── Epoch ── Batch ── BatchField      what users hold
//!     layout, pack     where fields lie while they are read, and when they are copied
//!     shared_slot      several threads on one slot; the only memory that is shared
//!     sheet            one batch while it is read
//!     common           what a loader and its epochs share: the place that was reached
//!     engine           one epoch: open, read, deliver, take
//!     depot, landing   slots and device memory, kept from batch to batch
//!     finish, finisher what the device makes of a field
//! ```

mod batch;
mod common;
mod config;
mod deliver;
mod depot;
mod engine;
mod epoch;
mod error;
mod finish;
mod finisher;
mod landing;
mod layout;
mod open;
mod pack;
mod read;
mod shared_slot;
mod sheet;
mod skipped;
mod slot;
mod stats;

pub use batch::{Batch, BatchField};
pub use config::{LoaderConfig, OnError};
pub use epoch::Epoch;
pub use error::LoaderError;
pub use finish::DeviceTransform;
pub use skipped::Skipped;
pub use stats::LoaderStats;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::dataset::Dataset;
use super::{EpochState, SampleOrder};
use common::Core;
use depot::{Depot, Sizes};
use engine::Means;
use finisher::Finisher;
use layout::Layout;
use pinlane_core::Device;

/// Batches of a dataset, on the device, ahead of whoever uses them. Cheap to clone; all clones are the
/// same loader.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let device = pinlane::Device::sim("pcie3-x16")?;
/// use pinlane::load::dataset::{Dataset, Field, SampleError, SampleMut};
/// use pinlane::load::{Dtype, Loader, LoaderConfig};
///
/// /// Squares of the numbers below 1000.
/// struct Squares([Field; 1]);
///
/// impl Dataset for Squares {
///     fn len(&self) -> usize {
///         1000
///     }
///
///     fn fields(&self) -> &[Field] {
///         &self.0
///     }
///
///     fn read(&self, index: usize, sample: &mut SampleMut<'_>) -> Result<(), SampleError> {
///         let square = (index * index) as u32;
///         sample.fixed(0).copy_from_slice(&square.to_le_bytes());
///         Ok(())
///     }
/// }
///
/// let squares = Squares([Field::fixed("square", Dtype::U32, [])]);
/// let config = LoaderConfig::default().batch(64).shuffle(true);
/// let loader = Loader::new(&device, squares, config)?;
///
/// let stream = device.stream()?;
/// let mut seen = 0;
/// for epoch in 0..2 {
///     for batch in loader.epoch(epoch)? {
///         let batch = batch?;
///         let squares = batch.field("square").expect("there is one").typed::<u32>()?;
///         // Any stream may use it: it waits for the copy by itself.
///         assert_eq!(stream.copy_to_vec(squares)?[0] as usize, batch.indices()[0].pow(2));
///         seen += batch.len();
///     }
/// }
/// assert_eq!(seen, 2000);
/// # Ok(())
/// # }
/// ```
///
/// To go on after a restart, keep [`state`](Self::state) and give it to [`restore`](Self::restore).
#[derive(Clone)]
pub struct Loader {
    core: Arc<Core>,
}

impl Loader {
    /// A loader of a dataset. Nothing is read before the first epoch.
    ///
    /// # Errors
    /// When the configuration or a field of the dataset is not possible, or the device refuses.
    pub fn new(
        device: &Device,
        dataset: impl Dataset,
        config: LoaderConfig,
    ) -> Result<Self, LoaderError> {
        config.check()?;
        let (order, samples) = (config.order(), dataset.len());
        let first = SampleOrder::new(samples, 0, &order)?;
        let layout = Layout::new(dataset.fields())?;
        // No batch is larger than the first.
        let batch = match first.batches() {
            0 => 0,
            _ => first.batch_len(0),
        };
        let slot_bytes = layout.places(batch)?.bytes;
        let stream = device.stream()?;
        let finisher = Finisher::new(device, &stream, &layout, &config.device_transforms, batch)?;
        let sizes = Sizes {
            slot_bytes,
            finished_bytes: finisher.bytes(),
            slots: config.slots(slot_bytes),
            berths: config.prefetch + 1,
        };
        let counters = Arc::default();
        let workers = config.workers_on(device);
        let means = Means {
            depot: Arc::new(Depot::new(device, stream, sizes, &counters)),
            dataset: Arc::new(dataset),
            workers,
            run: run_length(&layout, batch, workers),
            layout: Arc::new(layout),
            finisher: Arc::new(finisher),
            counters,
            on_error: config.on_error,
            prefetch: config.prefetch as u64,
        };
        Ok(Self {
            core: Arc::new(Core::new(order, samples, means)),
        })
    }

    /// All batches of an epoch. Its order depends on the seed, the epoch and the shard alone.
    ///
    /// # Errors
    /// While another epoch of this loader is under way, and when no thread can be started.
    pub fn epoch(&self, epoch: u64) -> Result<Epoch, LoaderError> {
        self.start(epoch, 0)
    }

    /// Where the consumer is: the epoch, and how many batches of it were handed out. What was only
    /// read ahead does not count.
    ///
    /// At the end of an epoch nothing of it is left, and [`restore`](Self::restore) gives no batch:
    /// the one after it begins with `epoch(state.epoch + 1)`. After an error it is the place of the
    /// first batch that did not get to the device, even if it was handed out before that was known;
    /// those behind it come again.
    #[must_use]
    pub fn state(&self) -> EpochState {
        self.core.state()
    }

    /// The batches that were left when `state` was taken, of this loader or of one like it.
    ///
    /// ```
    /// # use pinlane::load::dataset::{Dataset, Field, SampleError, SampleMut};
    /// # use pinlane::load::{Dtype, Loader, LoaderConfig};
    /// # struct Nothing([Field; 0]);
    /// # impl Dataset for Nothing {
    /// #     fn len(&self) -> usize { 10 }
    /// #     fn fields(&self) -> &[Field] { &self.0 }
    /// #     fn read(&self, _: usize, _: &mut SampleMut<'_>) -> Result<(), SampleError> { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let device = pinlane::Device::sim("pcie3-x16")?;
    /// # let config = LoaderConfig::default().batch(4);
    /// # let loader = Loader::new(&device, Nothing([]), config.clone())?;
    /// let mut epoch = loader.epoch(7)?;
    /// epoch.next().expect("a batch")?;
    /// let state = loader.state();
    /// drop((epoch, loader));
    ///
    /// # let loader = Loader::new(&device, Nothing([]), config)?;
    /// let mut rest = loader.restore(&state)?; // in another process, another day
    /// assert_eq!(rest.next().expect("a batch")?.indices(), [4, 5, 6, 7]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When it is the state of another order: another seed, shard, batch or number of samples. Otherwise
    /// as [`epoch`](Self::epoch).
    pub fn restore(&self, state: &EpochState) -> Result<Epoch, LoaderError> {
        state.check(&self.core.order, self.core.samples)?;
        self.start(state.epoch, state.batch)
    }

    /// Batches of this epoch, or of any: all have as many.
    #[must_use]
    pub fn batches(&self) -> usize {
        let order = SampleOrder::new(self.core.samples, 0, &self.core.order);
        order.expect("checked when the loader was made").batches()
    }

    /// Threads that read samples; with 0 the thread that asks for a batch does.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.core.means.workers
    }

    /// What was done so far, and how long each stage took.
    #[must_use]
    pub fn stats(&self) -> LoaderStats {
        self.core.means.counters.stats()
    }

    fn start(&self, epoch: u64, first: u64) -> Result<Epoch, LoaderError> {
        let core = &self.core;
        let order = SampleOrder::new(core.samples, epoch, &core.order)?;
        if core.busy.swap(true, Ordering::Acquire) {
            return Err(LoaderError::Busy);
        }
        core.handed_out(epoch, first.min(order.batches() as u64));
        Epoch::start(core, epoch, order, first)
    }
}

impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader")
            .field("samples", &self.core.samples)
            .field("order", &self.core.order)
            .field("workers", &self.core.means.workers)
            .finish_non_exhaustive()
    }
}

/// Samples that a thread claims at a time: enough bytes that the claim does not count, few enough that
/// all threads end a batch at about the same time.
fn run_length(layout: &Layout, batch: usize, workers: usize) -> usize {
    const RUN_BYTES: usize = 256 << 10;
    let by_bytes = RUN_BYTES / layout.sample_bytes().max(1);
    by_bytes.min(batch / (4 * workers.max(1))).max(1)
}
