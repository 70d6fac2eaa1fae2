//! Fences of a real device: pooled events, recorded once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pinlane_driver::{Error, EventFlags, EventHandle, Result, StreamHandle};

use crate::device_core::DeviceCore;
use crate::event::EventInner;
use crate::protocol::{Fence, FreeList};

/// Events that no fence currently uses.
pub(crate) struct EventPool {
    core: Arc<DeviceCore>,
    idle: FreeList<EventHandle>,
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
        let event = self
            .idle
            .claim(|| self.core.driver.event_create(EventFlags::default()))?;
        Ok(UnrecordedFence(DeviceFence::new(
            event,
            EventOwner::Pool(Arc::clone(self)),
        )))
    }
}

impl Drop for EventPool {
    fn drop(&mut self) {
        for event in self.idle.drain() {
            // SAFETY: this driver created the idle events, and nothing holds them any more.
            self.core
                .give_back(|driver| unsafe { driver.event_destroy(event) });
        }
    }
}

/// A fence that is not recorded yet.
pub(crate) struct UnrecordedFence(DeviceFence);

impl UnrecordedFence {
    /// Records the fence behind all work submitted to the stream so far.
    pub(crate) fn record(self, stream: StreamHandle) -> Result<DeviceFence> {
        let fence = self.0;
        fence.core().driver.event_record(fence.event(), stream)?;
        Ok(fence)
    }
}

/// A point in a stream. The event returns to the pool with the last clone.
#[derive(Clone)]
pub(crate) struct DeviceFence(Arc<Inner>);

struct Inner {
    event: EventHandle,
    owner: EventOwner,
    /// Set once the event is known to have fired, to save later driver calls.
    done: AtomicBool,
}

/// Where the event of a fence comes from.
enum EventOwner {
    /// Returns to this pool.
    Pool(Arc<EventPool>),
    /// A user's event.
    User(Arc<EventInner>),
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let EventOwner::Pool(pool) = &self.owner {
            // Waits already issued on the event keep the recording that they saw.
            pool.idle.release(self.event);
        }
    }
}

impl DeviceFence {
    fn new(event: EventHandle, owner: EventOwner) -> Self {
        Self(Arc::new(Inner {
            event,
            owner,
            done: AtomicBool::new(false),
        }))
    }

    /// The point at which a user's event was last recorded.
    pub(crate) fn of_event(event: &Arc<EventInner>) -> Self {
        Self::new(event.handle, EventOwner::User(Arc::clone(event)))
    }

    pub(crate) fn event(&self) -> EventHandle {
        self.0.event
    }

    /// Whether it is known to have fired, without asking the driver.
    pub(crate) fn known_done(&self) -> bool {
        self.0.done.load(Ordering::Acquire)
    }

    /// Remembers that the fence has fired, if `done`.
    fn learned(&self, done: bool) -> bool {
        if done {
            self.0.done.store(true, Ordering::Release);
        }
        done
    }

    fn core(&self) -> &DeviceCore {
        match &self.0.owner {
            EventOwner::Pool(pool) => &pool.core,
            EventOwner::User(event) => &event.core,
        }
    }
}

impl Fence for DeviceFence {
    fn is_done(&self) -> Result<bool> {
        if self.known_done() {
            return Ok(true);
        }
        let done = self.core().driver.event_query(self.0.event)?;
        Ok(self.learned(done))
    }

    fn wait(&self) -> Result<()> {
        if self.known_done() {
            return Ok(());
        }
        self.core().driver.event_synchronize(self.0.event)?;
        self.learned(true);
        Ok(())
    }

    fn wait_timeout(&self, timeout: Duration) -> Result<bool> {
        if self.known_done() {
            return Ok(true);
        }
        let done = self
            .core()
            .driver
            .event_wait_timeout(self.0.event, timeout)?;
        Ok(self.learned(done))
    }

    fn wait_hard(&self) -> Result<()> {
        self.core().driver.synchronize()?;
        self.learned(true);
        Ok(())
    }

    fn note(&self, error: Error) {
        self.core().keep_stray(error);
    }
}
