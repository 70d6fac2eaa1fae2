//! An opened device.

use std::fmt;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use pinlane_driver::{
    DeviceInfo, Driver, EventFlags, MemoryInfo, Platform, PointerKind, StreamFlags,
};

use crate::completion_notifier::CompletionNotifier;
use crate::device_core::DeviceCore;
use crate::driver_handles::{NON_BLOCKING, OwnStream};
use crate::express::Express;
use crate::fence::{DeviceFence, EventPool};
use crate::logging::log_error;
use crate::memory::{DeviceMemory, DeviceStore, PinnedPool};
use crate::sync::{Arc as CoreArc, lock};
use crate::transfer_protocol::{DeferredFree, Fence};
use crate::{Budget, Error, Event, ExpressConfig, Result, Stream};

/// A GPU, real or simulated, opened for use. Cheap to clone; all clones are the same device.
///
/// ```
/// # fn main() -> pinlane::Result<()> {
/// use pinlane::Device;
///
/// let device = Device::sim("pcie3-x16")?; // or `Device::cuda(0)?`
/// let stream = device.stream()?;
/// let mut on_device = device.alloc::<f32>(1024)?;
///
/// let mut buffer = device.pinned::<f32>(1024)?;
/// buffer.fill(1.5);
/// let transfer = stream.upload(buffer, &mut on_device)?; // the transfer owns the buffer now
/// let buffer = transfer.wait()?; // and returns it
/// # drop(buffer);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Device {
    pub(crate) shared: Arc<Shared>,
}

/// State shared by streams, device buffers and transfers. Dropping it shuts the device down.
pub(crate) struct Shared {
    pub(crate) core: Arc<DeviceCore>,
    pub(crate) notifier: CompletionNotifier,
    /// Stream for stream-ordered frees, created on first use.
    returns: Mutex<Option<Arc<OwnStream>>>,
    pub(crate) events: Arc<EventPool>,
    pub(crate) deferred: CoreArc<DeferredFree<DeviceFence>>,
    /// Orders submissions to the default stream, which can have many handles.
    pub(crate) default_submit_order: Arc<Mutex<()>>,
    /// Taken by the shutdown before it frees parked buffers.
    express: Mutex<Option<Arc<Express>>>,
    /// Pinned buffers that loads and pipelines reuse.
    pub(crate) pinned_store: PinnedPool,
    /// Memory of dropped [`PinnedBuf`](crate::PinnedBuf)s, in whole pages, for new ones.
    pub(crate) pinned_cache: PinnedPool,
}

/// How long shutdown waits for each buffer that is still in flight.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);

/// What a device currently holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct DeviceStats {
    /// Pinned host memory in bytes, including idle memory and the express lane's. Buffers of up to 4 MiB count
    /// in whole pages.
    pub pinned_bytes: u64,
    /// Pinned host memory of dropped buffers, of loads and of pipelines, kept for reuse, in bytes.
    pub idle_pinned_bytes: u64,
    /// Pinned host memory of the express lane in bytes.
    pub express_bytes: u64,
    /// Registered host memory in bytes.
    pub registered_bytes: u64,
    /// Device memory in bytes, including cached memory.
    pub device_bytes: u64,
    /// Device memory of dropped buffers cached for reuse, in bytes.
    pub kept_bytes: u64,
    /// Buffers whose owner was dropped while they were in flight, and what waits to be
    /// [released](Device::release_when_idle).
    pub parked: usize,
}

impl Device {
    /// Opens device number `ordinal` of a platform.
    pub fn open(platform: &dyn Platform, ordinal: u32) -> Result<Self> {
        Ok(Self::from_driver(platform.open(ordinal)?))
    }

    /// Uses an opened driver. Page-locked memory counts against [`Budget::process`].
    #[must_use]
    pub fn from_driver(driver: Arc<dyn Driver>) -> Self {
        Self::with_budget(driver, &Budget::process())
    }

    /// Uses an opened driver. Page-locked memory counts against `budget`.
    #[must_use]
    pub fn with_budget(driver: Arc<dyn Driver>, budget: &Budget) -> Self {
        let core = Arc::new(DeviceCore::new(driver, budget.clone()));
        let deferred = CoreArc::new(DeferredFree::new());
        let config = ExpressConfig::for_device(core.driver.info());
        let shared = Arc::new_cyclic(|shared| {
            let pool = PinnedPool::uncached(&core, Weak::clone(shared));
            let express = Express::new(&core, &deferred, &pool, config);
            let express = express.expect("the defaults are valid");
            let store = |kept| PinnedPool::of_device(&core, Weak::clone(shared), kept);
            Shared {
                events: Arc::new(EventPool::new(Arc::clone(&core))),
                express: Mutex::new(Some(Arc::new(express))),
                deferred,
                notifier: CompletionNotifier::new(&core),
                default_submit_order: Arc::default(),
                pinned_store: store(DeviceStore::Slots),
                pinned_cache: store(DeviceStore::DroppedBuffers),
                returns: Mutex::new(None),
                core,
            }
        });
        Self { shared }
    }

    /// A device on the same GPU whose page-locked memory counts against `budget`. It has its own streams and
    /// buffers; those of this one cannot be used with it.
    ///
    /// ```
    /// # fn main() -> pinlane::Result<()> {
    /// use pinlane::{Budget, Device, ErrorKind};
    ///
    /// let device = Device::sim("h200")?.limited_to(&Budget::with_limit(8 << 20));
    /// let error = device.pinned::<u8>(9 << 20).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::OverBudget);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn limited_to(&self, budget: &Budget) -> Self {
        Self::with_budget(Arc::clone(self.driver()), budget)
    }

    /// Properties of the device: name, memory, copy engines and so on.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        self.shared.core.driver.info()
    }

    pub(crate) fn driver(&self) -> &Arc<dyn Driver> {
        &self.shared.core.driver
    }

    /// The budget for page-locked memory of this device.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.shared.core.budget
    }

    /// Free and total device memory.
    pub fn memory_info(&self) -> Result<MemoryInfo> {
        Ok(self.shared.core.driver.memory_info()?)
    }

    /// What the driver knows about the memory behind a slice.
    pub fn pointer_kind<T>(&self, slice: &[T]) -> Result<PointerKind> {
        let address = slice.as_ptr().expose_provenance() as u64;
        Ok(self.shared.core.driver.pointer_kind(address)?)
    }

    /// Creates a stream that does not synchronize with the default stream.
    pub fn stream(&self) -> Result<Stream> {
        self.stream_with(NON_BLOCKING)
    }

    /// Creates a stream with the given flags.
    pub fn stream_with(&self, flags: StreamFlags) -> Result<Stream> {
        Stream::create(&self.shared, flags)
    }

    /// The default stream, which every device has.
    #[must_use]
    pub fn default_stream(&self) -> Stream {
        Stream::default_of(&self.shared)
    }

    /// Creates an event without timing.
    pub fn event(&self) -> Result<Event> {
        Event::create(&self.shared, EventFlags::default())
    }

    /// Creates an event that records when it fires.
    pub fn event_with_timing(&self) -> Result<Event> {
        let flags = EventFlags {
            timing: true,
            ..EventFlags::default()
        };
        Event::create(&self.shared, flags)
    }

    /// Waits until all work on all streams is done. Also frees the buffers of dropped transfers, and what
    /// [`release_when_idle`](Self::release_when_idle) was given.
    pub fn synchronize(&self) -> Result<()> {
        let result = self.shared.core.driver.synchronize();
        self.shared.deferred.reclaim();
        if result.is_ok() {
            self.shared.core.release_pending();
        }
        Ok(result?)
    }

    /// Frees buffers of dropped transfers that have completed since, and returns how many. Every submission
    /// does this too.
    pub fn reclaim(&self) -> usize {
        self.shared.deferred.reclaim()
    }

    /// The current configuration of the express lane for pageable memory.
    #[must_use]
    pub fn express_config(&self) -> ExpressConfig {
        self.shared.express().config.clone()
    }

    /// Replaces the express lane with one of this configuration. Copies in progress finish on the old one.
    ///
    /// ```
    /// # fn main() -> pinlane::Result<()> {
    /// # let device = pinlane::Device::sim("pcie3-x16")?;
    /// let config = device.express_config().lanes(4).ring_chunks(6);
    /// device.set_express_config(config)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_express_config(&self, config: ExpressConfig) -> Result<()> {
        let shared = &self.shared;
        let pool = PinnedPool::uncached(&shared.core, Arc::downgrade(shared));
        let express = Express::new(&shared.core, &shared.deferred, &pool, config)?;
        let old = lock(&shared.express).replace(Arc::new(express));
        drop(old); // not under the lock: this calls the driver
        Ok(())
    }

    /// Frees cached memory that is not in use, and returns how many bytes: pinned memory of dropped buffers,
    /// of the express lane, of loads and of pipelines, and device memory (see [`keep_device_memory`]).
    ///
    /// [`keep_device_memory`]: Self::keep_device_memory
    pub fn trim(&self) -> usize {
        self.shared.deferred.reclaim();
        let core = &self.shared.core;
        let kept = core.free_cached();
        let pinned = self.shared.express().trim() + self.shared.free_idle_pinned() as usize;
        core.free_cached(); // the line above may have cached scratch memory
        pinned + kept
    }

    /// Keeps up to `at_most_bytes` of memory of dropped [`PinnedBuf`](crate::PinnedBuf)s for new ones. Returns the
    /// previous limit; the default is 64 MiB. With 0 all of it is unpinned at once.
    ///
    /// ```
    /// # fn main() -> pinlane::Result<()> {
    /// # let device = pinlane::Device::sim("pcie3-x16")?;
    /// device.keep_pinned_memory(1 << 20);
    /// drop(device.pinned::<u8>(4096)?);
    /// assert_eq!(device.stats().idle_pinned_bytes, 4096);
    ///
    /// assert_eq!(device.keep_pinned_memory(0), 1 << 20);
    /// assert_eq!(device.stats().idle_pinned_bytes, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn keep_pinned_memory(&self, at_most_bytes: u64) -> u64 {
        self.shared.pinned_cache.keep(at_most_bytes)
    }

    /// Caches up to `at_most_bytes` of device memory from dropped buffers, for later buffers of about the
    /// same size. Returns the previous limit. The default, 0, returns all memory to the driver at once.
    /// Memory from [`Stream::alloc`] is cached by the driver and does not count here.
    ///
    /// Meant for programs that load weights repeatedly. On an H200, copies to the device run at half the
    /// link's bandwidth for a while after device memory is freed: a load that starts right after 14 GB were
    /// freed takes 25 ms longer. Loading into cached memory avoids this.
    ///
    /// Cached memory is unavailable to everything else until [`trim`](Self::trim): other libraries and
    /// processes, another device opened on the same GPU, and module loading. An allocation on this device
    /// that would fail takes it back automatically. If another library uses a buffer by its address, it
    /// must finish before the buffer is dropped: only the driver's own free waits for it
    /// ([`release_when_idle`](Self::release_when_idle) drops it in time). A lost device may
    /// still hand out cached memory, which is then unusable.
    ///
    /// ```
    /// # fn main() -> pinlane::Result<()> {
    /// # let device = pinlane::Device::sim("pcie3-x16")?;
    /// device.keep_device_memory(16 << 30);
    /// drop(device.alloc::<u8>(1 << 20)?);
    /// assert_eq!(device.stats().kept_bytes, 1 << 20);
    ///
    /// let next = device.alloc::<u8>(1 << 20)?; // the same memory
    /// assert_eq!(device.stats().kept_bytes, 0);
    /// # drop(next);
    /// # Ok(())
    /// # }
    /// ```
    pub fn keep_device_memory(&self, at_most_bytes: u64) -> u64 {
        self.shared.deferred.reclaim();
        self.shared.core.set_cache_limit(at_most_bytes)
    }

    /// What the device currently holds.
    #[must_use]
    pub fn stats(&self) -> DeviceStats {
        let counters = &self.shared.core.counters;
        let kept_bytes = self.shared.core.device_cache.bytes();
        let device_bytes = counters.device_bytes.value();
        let pinned_bytes = counters.pinned_bytes.value();
        DeviceStats {
            pinned_bytes,
            // As with `kept_bytes`.
            idle_pinned_bytes: self.shared.idle_pinned_bytes().min(pinned_bytes),
            express_bytes: self.shared.express().pinned_bytes() as u64,
            registered_bytes: counters.registered_bytes.value(),
            device_bytes,
            // Another thread may have freed some between the two reads.
            kept_bytes: kept_bytes.min(device_bytes),
            parked: self.shared.deferred.len() + self.shared.core.releases.len(),
        }
    }

    /// Driver errors that no call could return, for example because they occurred during a drop. Each is
    /// returned once. At most 100 are kept until they are taken, the first ones;
    /// [`stray_error_count`](Self::stray_error_count) counts the others too.
    #[must_use]
    pub fn take_stray_errors(&self) -> Vec<Error> {
        let stray = self.shared.core.take_stray();
        stray.into_iter().map(Error::from).collect()
    }

    /// How many driver errors no call could return since the device was opened, whether they were kept for
    /// [`take_stray_errors`](Self::take_stray_errors) or not.
    #[must_use]
    pub fn stray_error_count(&self) -> u64 {
        self.shared.core.stray_count()
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&self.info().name).finish()
    }
}

impl Shared {
    pub(crate) const DEFAULT_STREAM_ID: u64 = 0;

    /// A stream ID that is unique in this process.
    pub(crate) fn next_stream_id() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(Shared::DEFAULT_STREAM_ID + 1);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn express(&self) -> Arc<Express> {
        let express = lock(&self.express);
        Arc::clone(express.as_ref().expect("there until the shutdown"))
    }

    fn pinned_pools(&self) -> [&PinnedPool; 2] {
        [&self.pinned_store, &self.pinned_cache]
    }

    fn idle_pinned_bytes(&self) -> u64 {
        let pools = self.pinned_pools();
        pools.map(|pool| pool.stats().cached_bytes).iter().sum()
    }

    /// Frees the idle memory of the device's pools and returns how many bytes.
    fn free_idle_pinned(&self) -> u64 {
        self.pinned_pools().map(PinnedPool::free_idle).iter().sum()
    }

    /// Frees device memory once `uses` have fired, without blocking.
    pub(crate) fn return_memory(&self, memory: DeviceMemory, uses: Vec<DeviceFence>) {
        let memory = ManuallyDrop::new(memory); // leaked if the driver panics
        let pending: Vec<_> = uses
            .into_iter()
            .filter(|fence| !fence.has_let_go())
            .collect();
        let stream = memory.is_ordered().then(|| self.stream_behind(&pending));
        let memory = ManuallyDrop::into_inner(memory);
        let memory = match stream.flatten() {
            Some(stream) => match memory.free_on(stream.live()) {
                Ok(()) => return,
                Err(memory) => memory,
            },
            None => memory,
        };
        if pending.is_empty() {
            drop(memory);
        } else {
            self.deferred.defer(pending, Box::new(memory));
        }
    }

    /// A separate stream for stream-ordered frees, behind the `pending` uses, so that no thread has to
    /// wait. `None` if the driver refuses.
    fn stream_behind(&self, pending: &[DeviceFence]) -> Option<Arc<OwnStream>> {
        let ready = self.returns().and_then(|stream| {
            for fence in pending {
                stream.live().wait_for(fence.event())?;
            }
            Ok(stream)
        });
        ready.map_err(|error| self.core.keep_stray(error)).ok()
    }

    fn returns(&self) -> pinlane_driver::Result<Arc<OwnStream>> {
        let mut returns = lock(&self.returns);
        let stream = match returns.take() {
            Some(stream) => stream,
            None => Arc::new(OwnStream::create(&self.core, NON_BLOCKING)?),
        };
        Ok(Arc::clone(returns.insert(stream)))
    }
}

impl Drop for Shared {
    /// Runs once no stream, device buffer or transfer is left. Waits for parked buffers, but not forever,
    /// and never frees one that the device may still write to.
    fn drop(&mut self) {
        // Nothing is queued there: whatever is queued keeps the device open.
        self.core.end_release_thread();
        // From here on, freed memory goes straight to the driver. If freeing the cache panics, the rest is
        // still released.
        let freed = catch_unwind(AssertUnwindSafe(|| self.core.set_cache_limit(0)));
        // Its slots in flight are parked like any other buffer.
        drop(lock(&self.express).take());
        let closed = self.deferred.close(SHUTDOWN_PATIENCE);
        if closed.abandoned > 0 {
            log_error(format_args!(
                "the device still uses {} buffers at shutdown; their memory is leaked",
                closed.abandoned
            ));
        }
        // Also needed if a buffer outlives the device, or was abandoned in flight: it keeps its store alive.
        let trimmed = catch_unwind(AssertUnwindSafe(|| self.free_idle_pinned()));
        if let Err(panic) = freed.and(trimmed) {
            resume_unwind(panic);
        }
    }
}
