//! An opened device.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use pinlane_driver::{
    DeviceInfo, Driver, EventFlags, MemoryInfo, Platform, PointerKind, StreamFlags, StreamHandle,
};

use crate::completion_notifier::CompletionNotifier;
use crate::device_core::DeviceCore;
use crate::express::Express;
use crate::fence::{DeviceFence, EventPool};
use crate::memory::{DeviceMemory, PinnedPool};
use crate::protocol::{Completion, DeferredFree, Fence};
use crate::sync::Arc as CoreArc;
use crate::sync::lock;
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
/// let buffer = transfer.wait()?; // and gives it back
/// # drop(buffer);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Device {
    pub(crate) shared: Arc<Shared>,
}

/// What streams, device buffers and transfers share. Its drop is the shutdown of the device.
pub(crate) struct Shared {
    pub(crate) core: Arc<DeviceCore>,
    pub(crate) events: Arc<EventPool>,
    pub(crate) deferred: CoreArc<DeferredFree<DeviceFence>>,
    pub(crate) notifier: CompletionNotifier,
    /// Orders submissions to the default stream, which has many handles.
    pub(crate) default_submit_order: Arc<Mutex<()>>,
    /// Taken out by the shutdown, before deferred buffers are freed.
    express: Mutex<Option<Arc<Express>>>,
    /// Pinned buffers for reuse by loads and pipelines.
    pub(crate) pinned_store: PinnedPool,
    /// Stream on which memory goes back in order, made when first needed.
    returns: Mutex<Option<StreamHandle>>,
}

/// How long shutdown waits for each buffer that is still in flight.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);

/// What a device holds right now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct DeviceStats {
    /// Pinned host memory, in bytes, that of the express lane included.
    pub pinned_bytes: u64,
    /// Pinned host memory of the express lane, in bytes.
    pub express_bytes: u64,
    /// Registered host memory, in bytes.
    pub registered_bytes: u64,
    /// Device memory, in bytes, what is kept included.
    pub device_bytes: u64,
    /// Device memory of dropped buffers that is kept for the next ones, in bytes.
    pub kept_bytes: u64,
    /// Buffers whose owner is gone while they are in flight.
    pub parked: usize,
}

impl Device {
    /// Open device number `ordinal` of a platform.
    pub fn open(platform: &dyn Platform, ordinal: u32) -> Result<Self> {
        Ok(Self::from_driver(platform.open(ordinal)?))
    }

    /// Use an opened driver. What it page-locks counts in [`Budget::process`].
    #[must_use]
    pub fn from_driver(driver: Arc<dyn Driver>) -> Self {
        Self::with_budget(driver, &Budget::process())
    }

    /// Use an opened driver. What it page-locks counts in `budget`.
    #[must_use]
    pub fn with_budget(driver: Arc<dyn Driver>, budget: &Budget) -> Self {
        let core = Arc::new(DeviceCore::new(driver, budget.clone()));
        let deferred = CoreArc::new(DeferredFree::new());
        let config = ExpressConfig::for_device(core.driver.info());
        let express = Express::new(&core, &deferred, config).expect("the defaults are valid");
        Self {
            shared: Arc::new_cyclic(|shared| Shared {
                events: Arc::new(EventPool::new(Arc::clone(&core))),
                express: Mutex::new(Some(Arc::new(express))),
                deferred,
                notifier: CompletionNotifier::new(),
                default_submit_order: Arc::default(),
                pinned_store: PinnedPool::of_device(&core, Weak::clone(shared)),
                returns: Mutex::new(None),
                core,
            }),
        }
    }

    /// Name, memory, engines and so on.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        self.shared.core.driver.info()
    }

    pub(crate) fn driver(&self) -> &Arc<dyn Driver> {
        &self.shared.core.driver
    }

    /// What may be page-locked for this device, and what is.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.shared.core.budget
    }

    /// Device memory, free and in all.
    pub fn memory_info(&self) -> Result<MemoryInfo> {
        Ok(self.shared.core.driver.memory_info()?)
    }

    /// What the driver knows of the memory that a slice lies in.
    pub fn pointer_kind<T>(&self, slice: &[T]) -> Result<PointerKind> {
        let address = slice.as_ptr().expose_provenance() as u64;
        Ok(self.shared.core.driver.pointer_kind(address)?)
    }

    /// A new stream, independent of the default stream.
    pub fn stream(&self) -> Result<Stream> {
        self.stream_with(StreamFlags {
            non_blocking: true,
            priority: 0,
        })
    }

    /// A new stream with chosen flags.
    pub fn stream_with(&self, flags: StreamFlags) -> Result<Stream> {
        Stream::create(&self.shared, flags)
    }

    /// The stream that is always there.
    #[must_use]
    pub fn default_stream(&self) -> Stream {
        Stream::default_of(&self.shared)
    }

    /// A new event that keeps no time.
    pub fn event(&self) -> Result<Event> {
        Event::create(&self.shared, EventFlags::default())
    }

    /// A new event that keeps the time at which it fires.
    pub fn event_with_timing(&self) -> Result<Event> {
        Event::create(
            &self.shared,
            EventFlags {
                timing: true,
                ..EventFlags::default()
            },
        )
    }

    /// Wait until all work of all streams is done. Buffers of dropped transfers are freed here too.
    pub fn synchronize(&self) -> Result<()> {
        let result = self.shared.core.driver.synchronize();
        self.shared.deferred.reclaim();
        Ok(result?)
    }

    /// Free buffers of dropped transfers that have landed meanwhile. How many. Every submission
    /// does this by itself.
    pub fn reclaim(&self) -> usize {
        self.shared.deferred.reclaim()
    }

    /// How the express lane for ordinary memory is set up.
    #[must_use]
    pub fn express_config(&self) -> ExpressConfig {
        self.shared.express().config().clone()
    }

    /// Set the express lane up anew. Copies that are under way end with the old one.
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
        let express = Express::new(&self.shared.core, &self.shared.deferred, config)?;
        let mut current = self.shared.express_slot();
        let old = current.replace(Arc::new(express));
        drop(current);
        drop(old);
        Ok(())
    }

    /// Give memory back that is kept for the next time and not used now: pinned memory of the express
    /// lane, of loads and of pipelines, and device memory (see [`keep_device_memory`]). How many bytes.
    ///
    /// [`keep_device_memory`]: Self::keep_device_memory
    pub fn trim(&self) -> usize {
        self.shared.deferred.reclaim();
        let core = &self.shared.core;
        let kept = core.free_cached();
        let pinned = self.shared.express().trim() + self.shared.pinned_store.free_idle() as usize;
        core.free_cached(); // scratch memory that came of it
        pinned + kept
    }

    /// From now on keep up to so many bytes of device memory whose buffers were dropped, for the next
    /// ones of about their size; with 0, as at first, all of it goes back to the driver at once. How many
    /// bytes it was before. Memory of [`Stream::alloc`] is the driver's to keep, and is not kept here.
    ///
    /// For programs that load weights again and again: on an H200 copies to the device have half of the link
    /// for a while after device memory was freed. A load that begins when 14 GB have just been freed takes
    /// 25 ms longer; into kept memory it does not.
    ///
    /// What is kept is missing to all others until [`trim`](Self::trim): other libraries and processes,
    /// another device opened on the same GPU, modules that are loaded. Allocations of this device that would
    /// fail get it by themselves. Where other libraries use a buffer by its address, that must be over before
    /// it is dropped: only the driver's own free waits for them. A device that was lost may still give out
    /// what it kept; nothing can be done with it.
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

    /// What the device holds right now.
    #[must_use]
    pub fn stats(&self) -> DeviceStats {
        let counters = &self.shared.core.counters;
        let kept_bytes = self.shared.core.device_cache.bytes();
        let device_bytes = counters.device_bytes.value();
        DeviceStats {
            pinned_bytes: counters.pinned_bytes.value(),
            express_bytes: self.shared.express().pinned_bytes() as u64,
            registered_bytes: counters.registered_bytes.value(),
            device_bytes,
            // Others may have freed some between the two.
            kept_bytes: kept_bytes.min(device_bytes),
            parked: self.shared.deferred.len(),
        }
    }

    /// Errors of the driver that no call could return, since they came up while something was
    /// dropped. Each is given out once.
    #[must_use]
    pub fn take_stray_errors(&self) -> Vec<Error> {
        let stray = self.shared.core.take_stray();
        stray.into_iter().map(Error::from).collect()
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&self.info().name).finish()
    }
}

impl Shared {
    /// The number of the stream that is always there.
    pub(crate) const DEFAULT_STREAM_ID: u64 = 0;

    /// A number that no other created stream of this process has.
    pub(crate) fn next_stream_id() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(Shared::DEFAULT_STREAM_ID + 1);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    /// The express lane.
    pub(crate) fn express(&self) -> Arc<Express> {
        let express = self.express_slot();
        Arc::clone(express.as_ref().expect("there until the shutdown"))
    }

    fn express_slot(&self) -> MutexGuard<'_, Option<Arc<Express>>> {
        lock(&self.express)
    }

    /// Complete `told`, and wake its task, when `fence` has fired.
    pub(crate) fn notify_when(
        &self,
        fence: &DeviceFence,
        told: CoreArc<Completion<pinlane_driver::Result<()>>>,
    ) -> pinlane_driver::Result<()> {
        self.notifier.tell(&*self.core.driver, fence, told)
    }

    /// Free device memory once `uses` have fired, without waiting for them.
    pub(crate) fn return_memory(&self, memory: DeviceMemory, uses: Vec<DeviceFence>) {
        let pending: Vec<_> = uses
            .into_iter()
            .filter(|fence| !fence.has_let_go())
            .collect();
        let memory = match self.free_in_order(memory, &pending) {
            Ok(()) => return,
            Err(memory) => memory,
        };
        if pending.is_empty() {
            drop(memory);
        } else {
            self.deferred.defer(pending, Box::new(memory));
        }
    }

    /// Stream-ordered memory goes back on a stream of its own behind the uses, so that nobody
    /// waits. Gives the memory back where that is not possible.
    fn free_in_order(
        &self,
        memory: DeviceMemory,
        pending: &[DeviceFence],
    ) -> std::result::Result<(), DeviceMemory> {
        if !memory.is_ordered() {
            return Err(memory);
        }
        let ready = self.returns().and_then(|stream| {
            for fence in pending {
                self.core.driver.stream_wait_event(stream, fence.event())?;
            }
            Ok(stream)
        });
        match ready {
            Ok(stream) => memory.free_on(stream),
            Err(error) => {
                self.core.keep_stray(error);
                Err(memory)
            }
        }
    }

    fn returns(&self) -> pinlane_driver::Result<StreamHandle> {
        let mut returns = lock(&self.returns);
        if let Some(stream) = *returns {
            return Ok(stream);
        }
        let stream = self.core.driver.stream_create(StreamFlags {
            non_blocking: true,
            priority: 0,
        })?;
        *returns = Some(stream);
        Ok(stream)
    }
}

impl Drop for Shared {
    /// No stream, device buffer or transfer is left. Parked buffers are waited for, but not
    /// forever, and never freed under a device that may still write to them.
    fn drop(&mut self) {
        // What comes back from here on goes to the driver. Should it panic over what was kept, all else
        // is still given back.
        let freed = catch_unwind(AssertUnwindSafe(|| self.core.set_cache_limit(0)));
        // Its slots in flight are parked like all others.
        drop(self.express_slot().take());
        let closed = self.deferred.close(SHUTDOWN_PATIENCE);
        if closed.abandoned > 0 {
            log::error!(
                "the device still uses {} buffers at shutdown; their memory is leaked",
                closed.abandoned
            );
        }
        // Also where a buffer in flight was abandoned, which keeps the store itself.
        let trimmed = catch_unwind(AssertUnwindSafe(|| self.pinned_store.free_idle()));
        self.notifier.dismiss(&self.core);
        let returns = self
            .returns
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(stream) = returns.take() {
            // SAFETY: created by `returns`, and taken out, so that nobody uses it again.
            self.core
                .give_back(|driver| unsafe { driver.stream_destroy(stream) });
        }
        if let Err(panic) = freed.and(trimmed) {
            resume_unwind(panic);
        }
    }
}
