//! Batches of a dataset on the device: worker threads write samples directly into pinned memory, batches
//! are copied ahead on a stream of their own, and any work on a batch waits for its copy on the device.
//!
//! ```text
//!   Loader ── Epoch ── Batch ── BatchField      the public interface
//!     epoch_scheduler   one epoch: which batch to open next, which are ready, when to stop
//!     workers           reading samples, on several threads
//!     submit_batch      submitting the copy of a batch that is read
//!     pending_batch     a batch while its samples are read
//!     batch_layout      where fields lie in a batch, while it is read and when it is copied
//!     buffers           pinned slots and device memory, reused from batch to batch
//!     device_transform  kernels that run on a field after its copy
//! ```

mod batch;
mod batch_layout;
mod buffers;
mod config;
mod device_transform;
mod epoch;
mod epoch_scheduler;
mod error;
mod pending_batch;
mod submit_batch;
mod workers;

pub use batch::{Batch, BatchField};
pub use config::{LoaderConfig, OnError};
pub use device_transform::DeviceTransform;
pub use epoch::{Epoch, NextBatch};
pub use error::{LoaderError, SkippedSample};

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use pinlane_core::Device;
use pinlane_core::internal::{exact_pool, lock};

use crate::dataset::Dataset;
use crate::{EpochState, OrderConfig, SampleOrder};
use batch_layout::BatchLayout;
use buffers::BatchBuffers;
use device_transform::DeviceTransforms;
use error::Result;

/// Loads batches of a dataset to the device, ahead of the consumer. Cheap to clone; clones share one loader.
///
/// ```
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
///         sample.write("square", &[(index * index) as u32])
///     }
/// }
///
/// let squares = Squares([Field::fixed("square", Dtype::U32, [])]);
/// let config = LoaderConfig::default().batch(64).shuffle(true);
/// let loader = Loader::new(&device, squares, config)?;
///
/// let stream = device.stream()?;
/// let mut samples = 0;
/// for epoch in 0..2 {
///     for batch in loader.epoch(epoch)? {
///         let batch = batch?;
///         let squares = batch.field("square").expect("the dataset has it").typed::<u32>()?;
///         // Any stream may use it: the stream waits for the copy.
///         assert_eq!(stream.copy_to_vec(squares)?[0] as usize, batch.indices()[0].pow(2));
///         samples += batch.len();
///     }
/// }
/// assert_eq!(samples, 2000);
/// # Ok::<(), pinlane::Error>(())
/// ```
///
/// To resume after a restart, save [`state`](Self::state) and pass it to [`restore`](Self::restore).
#[derive(Clone)]
pub struct Loader {
    core: Arc<LoaderCore>,
}

/// What a loader has done so far, over all epochs, and how long each stage took.
///
/// The largest of the workers' times shows the bottleneck: [`held_back_ns`](Self::held_back_ns) the consumer
/// ([`consumer_wait_ns`](Self::consumer_wait_ns) is small), [`slot_wait_ns`](Self::slot_wait_ns) the link,
/// [`read_ns`](Self::read_ns) the dataset.
///
/// Times are those of the host's clock, also on a simulated device, except [`copy_ns`](Self::copy_ns).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LoaderStats {
    /// Batches submitted to the device.
    pub batches: u64,
    /// Samples in them.
    pub samples: u64,
    /// Samples left out.
    pub skipped: u64,
    /// Bytes copied.
    pub bytes: u64,
    /// Time the consumer waited for batches.
    pub consumer_wait_ns: u64,
    /// Time spent in the dataset, summed over workers.
    pub read_ns: u64,
    /// Time spent waiting for pinned memory that was being copied, summed over workers.
    pub slot_wait_ns: u64,
    /// Time spent waiting because enough batches were ready, summed over workers.
    pub held_back_ns: u64,
    /// Time of completed copies, by the device's clock.
    pub copy_ns: u64,
    /// Bytes of these copies.
    pub copy_bytes: u64,
}

/// What a loader, its epoch and the workers share.
struct LoaderCore {
    order: OrderConfig,
    samples: usize,
    dataset: Box<dyn Dataset>,
    layout: BatchLayout,
    transforms: DeviceTransforms,
    buffers: Arc<BatchBuffers>,
    on_error: OnError,
    prefetch: u64,
    workers: usize,
    /// Samples that a thread claims at a time.
    claim_len: usize,
    /// How far the consumer is.
    position: Mutex<EpochState>,
    /// An epoch is running.
    busy: AtomicBool,
}

impl Loader {
    /// A loader for a dataset. Nothing is read before the first epoch.
    ///
    /// # Errors
    /// If the configuration or a field of the dataset is invalid, or a device call fails.
    pub fn new(device: &Device, dataset: impl Dataset, config: LoaderConfig) -> Result<Self> {
        config.check()?;
        let (order, samples) = (config.order(), dataset.len());
        // No batch is larger than the first.
        let batch = SampleOrder::new(samples, 0, &order)?.batch_len(0);
        let layout = BatchLayout::new(dataset.fields())?;
        let (_, slot_bytes) = layout.places(batch).ok_or_else(|| LoaderError::Config {
            field: "batch",
            reason: format!("{batch} samples do not fit into the address space"),
        })?;
        let stream = device.stream()?;
        let transforms =
            DeviceTransforms::new(device, &stream, &layout, &config.device_transforms, batch)?;
        let buffers = BatchBuffers {
            device: device.clone(),
            stream,
            slot_bytes,
            transformed_bytes: transforms.bytes,
            slots_max: config.slots(slot_bytes),
            device_batches_max: config.prefetch + 1,
            stats: Mutex::default(),
            alive: Arc::default(),
            pinned_pool: exact_pool(device),
            lists: Mutex::default(),
            changed: Condvar::new(),
        };
        let workers = config.workers_on(device);
        Ok(Self {
            core: Arc::new(LoaderCore {
                order,
                samples,
                dataset: Box::new(dataset),
                buffers: Arc::new(buffers),
                transforms,
                on_error: config.on_error,
                prefetch: config.prefetch as u64,
                workers,
                claim_len: claim_len(&layout, batch, workers),
                layout,
                position: Mutex::new(EpochState::new(0, 0, &order, samples)),
                busy: AtomicBool::new(false),
            }),
        })
    }

    /// Start an epoch. Its order depends only on the seed, the epoch and the shard.
    ///
    /// # Errors
    /// If another epoch of this loader is running, or no thread can be started.
    pub fn epoch(&self, epoch: u64) -> Result<Epoch> {
        let order = SampleOrder::new(self.core.samples, epoch, &self.core.order)?;
        Epoch::start(&self.core, epoch, order, 0)
    }

    /// The position of the consumer: the epoch, and how many of its batches were handed out. Batches that
    /// were only read ahead do not count.
    ///
    /// At the end of an epoch, [`restore`](Self::restore) yields no batches; start the next one with
    /// `epoch(state.epoch + 1)`. After an error, the position is that of the first batch that did not reach
    /// the device, even if it was handed out: it and the following ones come again.
    #[must_use]
    pub fn state(&self) -> EpochState {
        self.core.state()
    }

    /// Resume the epoch of a saved state, of this loader or of one with the same dataset and seed. The number of ranks
    /// and the batch size may be others: each sample that is left comes once, if all ranks resume with the state of the
    /// same step. Batches then count from 0 again.
    ///
    /// ```
    /// # use pinlane::load::{Loader, LoaderConfig, dataset::from_fn};
    /// # let device = pinlane::Device::sim("pcie3-x16")?;
    /// # let config = LoaderConfig::default().batch(4);
    /// # let loader = Loader::new(&device, from_fn(10, [], |_, _| Ok(())), config.clone())?;
    /// let mut epoch = loader.epoch(7)?;
    /// epoch.next().expect("a batch")?;
    /// let state = loader.state();
    /// drop((epoch, loader));
    ///
    /// # let loader = Loader::new(&device, from_fn(10, [], |_, _| Ok(())), config)?;
    /// let mut rest = loader.restore(&state)?; // in another process, another day
    /// assert_eq!(rest.next().expect("a batch")?.indices(), [4, 5, 6, 7]);
    /// # Ok::<(), pinlane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`epoch`](Self::epoch), and if the state has another seed or number of samples.
    pub fn restore(&self, state: &EpochState) -> Result<Epoch> {
        let (order, first) = state.remaining(&self.core.order, self.core.samples)?;
        Epoch::start(&self.core, state.epoch, order, first)
    }

    /// The number of batches that would come if a state was [restored](Self::restore).
    ///
    /// # Errors
    /// If the state has another seed or number of samples.
    pub fn batches_left(&self, state: &EpochState) -> Result<u64> {
        let (order, first) = state.remaining(&self.core.order, self.core.samples)?;
        Ok(order.batches() as u64 - first)
    }

    /// Number of batches in an epoch. All epochs have the same.
    #[must_use]
    pub fn batches(&self) -> usize {
        let order = SampleOrder::new(self.core.samples, 0, &self.core.order);
        order.expect("checked when the loader was made").batches()
    }

    /// Number of threads that read samples. With 0, the consumer's thread does.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.core.workers
    }

    /// What the loader has done so far, and how long each stage took.
    #[must_use]
    pub fn stats(&self) -> LoaderStats {
        *lock(&self.core.buffers.stats)
    }
}

impl LoaderCore {
    fn state(&self) -> EpochState {
        *lock(&self.position)
    }
}

impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader")
            .field("samples", &self.core.samples)
            .field("order", &self.core.order)
            .field("workers", &self.core.workers)
            .finish_non_exhaustive()
    }
}

/// Samples to claim at a time: so many that claims cost nothing, so few that all threads finish together.
fn claim_len(layout: &BatchLayout, batch: usize, workers: usize) -> usize {
    const CLAIM_BYTES: usize = 256 << 10;
    let add = |sum: usize, bytes: &usize| sum.saturating_add(*bytes);
    let by_bytes = CLAIM_BYTES / layout.strides.iter().fold(0, add).max(1);
    by_bytes.min(batch / (4 * workers.max(1))).max(1)
}

fn elapsed_ns(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
