//! The express lane: ordinary memory at the speed of pinned memory.
//!
//! A driver moves pageable memory through a small pinned buffer of its own with one thread, at a
//! fraction of what the link carries. Here several lanes (threads) stage it through a ring of pinned
//! chunks, and all copies go, large and back to back, onto the caller's own stream: so they are in
//! order with everything else there, by construction.
//!
//! ```text
//!   Stream::copy_to_device … upload_many … upload_as          the calls            (calls/)
//!     Express     one a device: configuration, ring, kernels                       (this file)
//!       Route     pieces one behind the other on the "wire", cut into chunks       (route, plan)
//!       Relay     lanes work on the same chunk; knows no GPU                       (relay)
//!       Upload    open: a free slot   slice: haul   close: copy on the stream      (upload)
//!       Download  open: it arrived    slice: haul   close: next copy               (download)
//!       Haul      a slice between host memory and slot: copy or convert            (haul)
//!       Yard      a chunk between slot and device: copy, scatter, convert          (dock, toolbox, side)
//!       Ring      slots of pinned memory, each with the fence of its last use      (ring, share, mark)
//! ```

mod calls;
mod config;
mod dock;
mod download;
mod haul;
mod mark;
mod plan;
mod relay;
mod ring;
mod route;
mod share;
mod side;
mod small;
mod toolbox;
mod upload;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use calls::{Conversion, F32ToBf16, F32ToF16, U8ToF32};
pub use config::ExpressConfig;

use crate::device_core::DeviceCore;
use crate::fence::DeviceFence;
use crate::memory::{Touch, is_fresh, prefault};
use crate::protocol::DeferredFree;
use crate::stream::SubmitError;
use crate::sync::Arc as CoreArc;
use crate::{Result, Stream, crew};
use dock::{Dock, Layout, Yard};
use download::Download;
use haul::Haul;
use relay::{Chunks, Relay};
use ring::{Ring, Slot};
use route::Route;
use share::Share;
use small::{POCKET_BYTES, POCKETS};
use toolbox::Toolbox;
use upload::{Staging, Upload};

/// Beyond this size the driver, which stages and copies at the same time, outruns a caller that has
/// no helpers.
const ALONE_BYTES: usize = 1 << 20;

/// Bytes of a copy that are worth a lane.
const LANE_BYTES: usize = 768 << 10;

/// Emptying slots is less work than filling them: more lanes would only be missed by uploads that
/// run at the same time.
const DOWNLOAD_LANES_AT_MOST: usize = 7;

/// From this size on it is worth a look whether a target is fresh memory.
const FRESH_BYTES: usize = 16 << 20;

/// The express lane of one device.
pub(crate) struct Express {
    link: Arc<DeviceCore>,
    config: ExpressConfig,
    ring: Ring,
    pockets: Ring,
    toolbox: Mutex<Option<Arc<Toolbox>>>,
}

/// What a copy looks like.
#[derive(Clone, Copy)]
struct Trip<'a> {
    stream: &'a Stream,
    touches: &'a [Touch<'a>],
    route: &'a Route,
    haul: Haul,
    dock: Dock,
}

impl Express {
    pub(crate) fn new(
        link: &Arc<DeviceCore>,
        lot: &CoreArc<DeferredFree<DeviceFence>>,
        config: ExpressConfig,
    ) -> Result<Self> {
        config.check()?;
        Ok(Self {
            ring: Ring::new(link, lot, config.chunk_bytes, config.ring_chunks),
            pockets: Ring::new(link, lot, POCKET_BYTES, POCKETS),
            toolbox: Mutex::new(None),
            link: Arc::clone(link),
            config,
        })
    }

    pub(crate) fn config(&self) -> &ExpressConfig {
        &self.config
    }

    /// Pinned memory that it holds.
    pub(crate) fn pinned_bytes(&self) -> usize {
        self.ring.pinned_bytes() + self.pockets.pinned_bytes()
    }

    /// Free what is idle.
    pub(crate) fn trim(&self) -> usize {
        // Slots that were used by a kernel keep the toolbox for themselves.
        drop(self.toolbox().take());
        self.ring.trim() + self.pockets.trim()
    }

    /// Whether one thread alone could not keep up with the driver's own, which does nothing else.
    fn is_outrun(&self, bytes: usize) -> bool {
        let alone = self.config.lanes == 1 && self.link.driver.info().simulated.is_none();
        alone && bytes > ALONE_BYTES
    }

    /// Whether lanes are not worth it. Waking them takes longer than a copy of some size.
    fn is_small(&self, bytes: usize) -> bool {
        let asleep = self.config.lanes > 1 && !crew::is_awake();
        let threshold_bytes = match asleep {
            true => self.config.threshold_asleep_bytes,
            false => self.config.threshold_bytes,
        };
        bytes < threshold_bytes
    }

    /// Lanes for so many bytes: each is to have a few slices, or it is not worth its waking.
    fn lanes_for(&self, trip: &Trip<'_>, at_most: usize) -> usize {
        let worth = 1 + trip.route.wire_bytes() / LANE_BYTES;
        let lanes = match trip.haul {
            Haul::Copy => self.config.lanes.min(at_most),
            _ => self.config.converting_lanes,
        };
        lanes.min(worth)
    }

    /// Lanes will be wanted soon.
    fn rouse(&self) {
        if self.config.lanes > 1 {
            crew::rouse();
        }
    }

    /// Where a copy is staged that the caller stages alone.
    fn ring_for_small(&self, bytes: usize) -> &Ring {
        if bytes <= POCKET_BYTES {
            &self.pockets
        } else {
            &self.ring
        }
    }

    /// A slot to begin with. `None` where no memory can be pinned for the lane: then the driver's
    /// plain copy has to do.
    fn board(&self, ring: &Ring) -> Result<Option<Slot>> {
        match ring.claim() {
            Ok(slot) => Ok(Some(slot)),
            Err(crate::Error::Driver(error)) if error.is_fatal() => Err(error.into()),
            Err(error) => {
                static WARNED: AtomicBool = AtomicBool::new(false);
                if !WARNED.swap(true, Ordering::Relaxed) {
                    eprintln!(
                        "pinlane: no pinned memory for the express lane ({error}); \
                         copies of ordinary memory go at the driver's speed"
                    );
                }
                self.note(error);
                Ok(None)
            }
        }
    }

    /// Returns once the host memory may be reused.
    fn upload(&self, first: Slot, trip: Trip<'_>) -> Result<()> {
        let lanes = self.lanes_for(&trip, usize::MAX);
        self.travel(first, trip, |share, yard, chunks| {
            let staging = Staging::for_lanes(lanes);
            let upload = Upload::new(trip.stream, yard, trip.haul, share, staging, chunks);
            let relay = upload.relay();
            run(lanes, &relay, &upload);
            relay.into_result(|error| self.note(error))
        })
    }

    /// Returns once the bytes are in host memory.
    fn download(&self, first: Slot, trip: Trip<'_>) -> Result<()> {
        let lanes = self.lanes_for(&trip, DOWNLOAD_LANES_AT_MOST);
        self.travel(first, trip, |share, yard, chunks| {
            let download = Download::new(trip.stream, yard, trip.haul, share, chunks);
            let relay = download.relay();
            download.start(&relay)?;
            // While the first chunks are on their way.
            self.prepare_target(&trip);
            run(lanes, &relay, &download);
            relay.into_result(|error| self.note(error))
        })
    }

    /// Fault fresh memory in, which lanes that write side by side would do several times over.
    fn prepare_target(&self, trip: &Trip<'_>) {
        let leg = trip.route.first();
        let bytes = trip.haul.host_bytes(leg.bytes);
        if bytes >= FRESH_BYTES && self.config.lanes > 1 && is_fresh(leg.host, bytes) {
            // SAFETY: the target of the download, borrowed exclusively.
            unsafe { prefault(leg.host, bytes) };
        }
    }

    fn travel<'a>(
        &'a self,
        first: Slot,
        trip: Trip<'a>,
        go: impl FnOnce(Share<'a>, Yard<'a>, Vec<route::Chunk>) -> Result<()>,
    ) -> Result<()> {
        let share = Share::new(&self.ring, first, self.config.ring_chunks.div_ceil(2));
        let toolbox = match trip.dock.needs_kernels(trip.route) {
            true => Some(self.tools()?),
            false => None,
        };
        let slot_bytes = self.ring.slot_bytes();
        let data_bytes = slot_bytes - Layout::head_bytes(trip.route, slot_bytes);
        let chunks = trip
            .route
            .chunks(data_bytes, Layout::pieces_at_most(slot_bytes));
        let yard = Yard {
            link: &self.link,
            stream: trip.stream,
            route: trip.route,
            dock: trip.dock,
            toolbox,
            aside: chunks.len() > 1,
        };
        let submission = trip.stream.begin(trip.touches)?;
        let went = go(share, yard, chunks);
        let finished = submission.finish().map_err(SubmitError::into_error);
        match (went, finished) {
            (Err(error), Err(second)) => {
                self.note(second);
                Err(error)
            }
            (went, finished) => went.and(finished.map(|_| ())),
        }
    }

    /// Keep an error of the driver's that no caller can be told of.
    fn note(&self, error: crate::Error) {
        if let crate::Error::Driver(error) = error {
            self.link.keep_stray(error);
        }
    }

    fn tools(&self) -> Result<Arc<Toolbox>> {
        let mut toolbox = self.toolbox();
        if let Some(loaded) = &*toolbox {
            return Ok(Arc::clone(loaded));
        }
        let loaded = Arc::new(Toolbox::load(&self.link)?);
        *toolbox = Some(Arc::clone(&loaded));
        Ok(loaded)
    }

    fn toolbox(&self) -> MutexGuard<'_, Option<Arc<Toolbox>>> {
        guard(&self.toolbox)
    }
}

/// The caller and as many helpers as there are lanes beside it.
fn run(lanes: usize, relay: &Relay, work: &impl Chunks) {
    let helpers = (lanes - 1).min(relay.slices().saturating_sub(1));
    crew::together(helpers, &|seat| relay.run(work, || seat.may_stay()));
}

/// Locks, also after a panic elsewhere: what the locks here guard is never left half-changed.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
