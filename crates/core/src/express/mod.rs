//! The express lane: ordinary memory at the speed of pinned memory.
//!
//! A driver moves pageable memory through a small pinned buffer of its own with one thread, at a
//! fraction of the link's speed. Here several lanes (threads) stage it through a ring of pinned
//! chunks. All copies are large and back to back on the caller's own stream, so they are in order
//! with everything else there.
//!
//! A large `copy_to_device`, from the public call to the driver:
//!
//! ```text
//!   express/copy_slice.rs    Stream::copy_to_device: the driver, a small slot or the ring?
//!   express/mod.rs           Express::run: how many lanes, which kernels
//!   submit.rs                Stream::begin: waits for earlier uses of the target
//!   express/pieces.rs        PieceList: cuts the copy into chunks, chunks into slices
//!   express/staged_copy.rs   Upload: what is done with a chunk
//!   helper_threads/mod.rs    helper_threads::run: they join the caller
//!   express/chunk_scheduler.rs    ChunkScheduler: each lane claims slices, all of the same chunk
//!   transfer_protocol/slot_filling.rs    SharedSlot: the first lane opens a chunk, the last one closes it
//!   express/ring.rs          RingShare: a free slot to open, a fence after the copy to close
//!     └ staged_copy.rs       DeviceSide::submit: Driver::copy_async
//! ```
//!
//! Downloads take the same path. Besides:
//!
//! ```text
//!   copy_many.rs         copies of many pieces
//!   conversion.rs        copies that convert their elements
//!   staging_kernels.rs   chunks that the device scatters, gathers or converts
//!   small_copy.rs        copies that the calling thread stages alone
//!   config.rs            lanes, ring size, thresholds
//! ```

mod chunk_scheduler;
mod config;
mod conversion;
mod copy_many;
mod copy_slice;
mod pieces;
mod ring;
mod small_copy;
mod staged_copy;
mod staging_kernels;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

pub use config::ExpressConfig;
pub use conversion::{Conversion, F32ToBf16, F32ToF16, U8ToF32};

use crate::device_core::DeviceCore;
use crate::driver_copy::Direction;
use crate::fence::DeviceFence;
use crate::logging::warn_once;
use crate::memory::{PinnedPool, Touch, is_fresh, prefault};
use crate::sync::{Arc as CoreArc, lock};
use crate::transfer_protocol::DeferredFree;
use crate::{Error, Result, Stream};
use conversion::ElementConversion;
use pieces::PieceList;
use ring::{Ring, RingShare, Slot};
use small_copy::{SMALL_SLOT_BYTES, SMALL_SLOTS};
use staged_copy::{ActiveCopy, Download, StagedCopy, Upload};
use staging_kernels::StagingKernels;

/// Up to this size a lane without helpers is at least as fast as the driver.
const ALONE_BYTES_AT_MOST: usize = 1 << 20;

/// Bytes of a copy that are worth another lane.
const LANE_BYTES: usize = 64 << 10;

/// Emptying slots is less work than filling them. More lanes would only take helpers away from
/// uploads that run at the same time.
const DOWNLOAD_LANES_AT_MOST: usize = 7;

/// Targets from this size on are checked for fresh memory.
const FRESH_BYTES: usize = 16 << 20;

/// The express lane of one device.
pub(crate) struct Express {
    core: Arc<DeviceCore>,
    pub(crate) config: ExpressConfig,
    ring: Ring,
    small_ring: Ring,
    kernels: Mutex<Option<Arc<StagingKernels>>>,
}

impl Express {
    /// `pool` must not cache: the rings reuse their slots themselves.
    pub(crate) fn new(
        core: &Arc<DeviceCore>,
        deferred: &CoreArc<DeferredFree<DeviceFence>>,
        pool: &PinnedPool,
        config: ExpressConfig,
    ) -> Result<Self> {
        config.check()?;
        let ring = |slot_bytes, slots| Ring::new(core, deferred, pool, slot_bytes, slots);
        Ok(Self {
            ring: ring(config.chunk_bytes, config.ring_chunks),
            small_ring: ring(SMALL_SLOT_BYTES, SMALL_SLOTS),
            kernels: Mutex::new(None),
            core: Arc::clone(core),
            config,
        })
    }

    /// Pinned memory that it holds.
    pub(crate) fn pinned_bytes(&self) -> usize {
        self.ring.pinned_bytes() + self.small_ring.pinned_bytes()
    }

    /// Frees idle memory and returns its pinned bytes.
    pub(crate) fn trim(&self) -> usize {
        // Slots that kernels have used keep those for themselves.
        drop(lock(&self.kernels).take());
        self.ring.trim() + self.small_ring.trim()
    }

    /// The first slot of a copy. `None` if no memory can be pinned; then the driver has to copy.
    fn claim_first_slot(&self, ring: &Ring) -> Result<Option<Slot>> {
        match ring.claim() {
            Ok(slot) => Ok(Some(slot)),
            Err(Error::Driver(error)) if error.is_fatal() => Err(error.into()),
            Err(error) => {
                static WARNED: AtomicBool = AtomicBool::new(false);
                let message = format_args!(
                    "no pinned memory for the express lane ({error}); \
                     copies of ordinary memory run at the driver's speed"
                );
                warn_once(&WARNED, message);
                self.core.keep_stray_error(error);
                Ok(None)
            }
        }
    }

    /// Runs a copy as one submission to its stream. Returns once the host memory may be reused, or holds
    /// the bytes.
    fn run(&self, first: Slot, copy: StagedCopy<'_>) -> Result<()> {
        let share = RingShare::new(&self.ring, first, self.config.ring_chunks.div_ceil(2));
        let caller = copy.stream;
        caller.check_thread()?;
        let Some(stream) = caller.side_stream()? else {
            return self.run_on_stream(share, copy);
        };
        // Helpers submit chunks, and on their threads the caller's handle is another stream.
        stream.follow(caller)?;
        let ran = self.run_on_stream(share, StagedCopy { stream, ..copy });
        self.first_error(ran, caller.follow(stream))
    }

    fn run_on_stream(&self, share: RingShare<'_>, copy: StagedCopy<'_>) -> Result<()> {
        let kernels = match copy.needs_kernels() {
            true => Some(self.load_kernels()?),
            false => None,
        };
        let lanes = self.lanes_for(&copy);
        let active = ActiveCopy::new(copy, kernels, share);
        let submission = copy.stream.begin(copy.touches)?;
        let ran = match copy.direction {
            Direction::Upload => Upload::run(active, lanes),
            Direction::Download => Download::run(active, lanes, || self.prepare_target(&copy)),
        };
        let finished = submission.finish().map_err(Error::from);
        self.first_error(ran, finished.map(|_| ()))
    }

    /// The first of two errors. A second one is kept.
    fn first_error(&self, first: Result<()>, second: Result<()>) -> Result<()> {
        match (first, second) {
            (Err(error), Err(second)) => {
                self.core.keep_stray_error(second);
                Err(error)
            }
            (first, second) => first.and(second),
        }
    }

    /// Lanes for a copy. A lane with less than a few slices is not worth waking a helper.
    fn lanes_for(&self, copy: &StagedCopy<'_>) -> usize {
        let worth = 1 + copy.pieces.staged_bytes / LANE_BYTES;
        let lanes = match (copy.conversion.is_on_host(), copy.direction) {
            (true, _) => self.config.converting_lanes,
            (false, Direction::Upload) => self.config.lanes,
            (false, Direction::Download) => self.config.lanes.min(DOWNLOAD_LANES_AT_MOST),
        };
        lanes.min(worth)
    }

    /// Faults in fresh memory once. Lanes that write to it side by side would do so several times.
    fn prepare_target(&self, copy: &StagedCopy<'_>) {
        let piece = &copy.pieces.list[0];
        let bytes = copy.conversion.host_bytes(piece.bytes);
        if bytes >= FRESH_BYTES && self.config.lanes > 1 && is_fresh(piece.host, bytes) {
            // SAFETY: the target of the download, borrowed exclusively.
            unsafe { prefault(piece.host, bytes) };
        }
    }

    fn load_kernels(&self) -> Result<Arc<StagingKernels>> {
        let mut kernels = lock(&self.kernels);
        let loaded = match kernels.take() {
            Some(loaded) => loaded,
            None => Arc::new(StagingKernels::load(&self.core)?),
        };
        Ok(Arc::clone(kernels.insert(loaded)))
    }
}

impl Stream {
    fn express(&self) -> Arc<Express> {
        self.shared().express()
    }

    /// A staged copy on this stream, without conversion.
    fn staged<'a>(
        &'a self,
        direction: Direction,
        pieces: &'a PieceList,
        touches: &'a [Touch<'a>],
    ) -> StagedCopy<'a> {
        StagedCopy {
            stream: self,
            direction,
            touches,
            pieces,
            conversion: ElementConversion::None,
        }
    }

    /// An empty copy: only checks that the memory may be used here.
    fn copy_nothing(&self, touches: &[Touch<'_>]) -> Result<()> {
        touches
            .iter()
            .try_for_each(|touch| touch.region.may_be_used_by(self.shared()))
    }
}
