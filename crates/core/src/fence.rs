//! Fences of a real device: pooled events, recorded once.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pinlane_driver::{Error, EventFlags, Result, ThreadClocks};

use crate::device_core::DeviceCore;
use crate::driver_handles::{OwnEvent, StreamRef};
use crate::transfer_protocol::{Fence, FreeList};

/// Events that no fence currently uses.
pub(crate) struct EventPool {
    core: Arc<DeviceCore>,
    idle: FreeList<Arc<OwnEvent>>,
}

impl EventPool {
    pub(crate) fn new(core: Arc<DeviceCore>) -> Self {
        Self {
            core,
            idle: FreeList::new(),
        }
    }

    /// Claims an event that is not recorded yet. Called before work is submitted, so that running out of
    /// events fails while nothing is in flight.
    pub(crate) fn claim(self: &Arc<Self>) -> Result<UnrecordedFence> {
        let create = || OwnEvent::create(&self.core, EventFlags::default()).map(Arc::new);
        let event = self.idle.claim(create)?;
        Ok(UnrecordedFence(DeviceFence::new(
            event,
            Some(Arc::clone(self)),
        )))
    }
}

/// A fence that is not recorded yet.
pub(crate) struct UnrecordedFence(DeviceFence);

impl UnrecordedFence {
    /// Records the fence behind all work submitted to the stream so far.
    pub(crate) fn record(self, stream: StreamRef<'_>) -> Result<DeviceFence> {
        stream.record(self.0.event())?;
        Ok(self.0)
    }
}

/// A point in a stream. The event returns to its pool with the last clone.
#[derive(Clone)]
pub(crate) struct DeviceFence(Arc<Inner>);

struct Inner {
    /// Taken once, by `drop`.
    event: ManuallyDrop<Arc<OwnEvent>>,
    /// `None` for a user's event.
    pool: Option<Arc<EventPool>>,
    /// Set once the event is known to have fired, to save later driver calls.
    done: AtomicBool,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: taken only here, and never used again.
        let event = unsafe { ManuallyDrop::take(&mut self.event) };
        if let Some(pool) = &self.pool {
            // Waits already issued on the event keep the recording that they saw.
            pool.idle.release(event);
        }
    }
}

impl DeviceFence {
    fn new(event: Arc<OwnEvent>, pool: Option<Arc<EventPool>>) -> Self {
        Self(Arc::new(Inner {
            event: ManuallyDrop::new(event),
            pool,
            done: AtomicBool::new(false),
        }))
    }

    /// The point at which a user's event was last recorded.
    pub(crate) fn of_event(event: &Arc<OwnEvent>) -> Self {
        Self::new(Arc::clone(event), None)
    }

    pub(crate) fn event(&self) -> &OwnEvent {
        &self.0.event
    }

    /// Whether it is known to have fired, without asking the driver.
    pub(crate) fn known_done(&self) -> bool {
        self.0.done.load(Ordering::Acquire)
    }

    /// Whether this thread may act on [`known_done`](Self::known_done). Where each thread has its own virtual
    /// time, the one that found out may be ahead.
    pub(crate) fn may_skip(&self) -> bool {
        let clocks = || self.core().driver.thread_clocks();
        self.known_done() && !clocks().is_some_and(ThreadClocks::takes_part)
    }

    /// To be called before [`is_done`](Fence::is_done) where the answer decides what the thread does next.
    pub(crate) fn reach(&self) {
        if let Some(clocks) = self.core().driver.thread_clocks() {
            clocks.reach();
        }
    }

    /// Asks the driver, unless it is known to have fired.
    fn ask(&self, ask: impl FnOnce(&OwnEvent) -> Result<bool>) -> Result<bool> {
        if self.known_done() {
            return Ok(true);
        }
        let done = ask(self.event())?;
        if done {
            self.0.done.store(true, Ordering::Release);
        }
        Ok(done)
    }

    fn core(&self) -> &DeviceCore {
        self.event().core()
    }
}

impl Fence for DeviceFence {
    fn is_done(&self) -> Result<bool> {
        self.ask(OwnEvent::is_done)
    }

    fn wait(&self) -> Result<()> {
        self.ask(|event| event.synchronize().map(|()| true))?;
        Ok(())
    }

    fn wait_timeout(&self, timeout: Duration) -> Result<bool> {
        self.ask(|event| event.wait_timeout(timeout))
    }

    fn wait_hard(&self) -> Result<()> {
        self.ask(|event| event.core().driver.synchronize().map(|()| true))?;
        Ok(())
    }

    fn note(&self, error: Error) {
        self.core().keep_stray(error);
    }
}
