//! Fences of a real device: pooled events, recorded once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pinlane_driver::{Error, EventFlags, EventHandle, Result, StreamHandle};

use crate::device_core::DeviceCore;
use crate::protocol::{Fence, FreeList};

/// Events that no fence uses at the moment.
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

    /// An event that is not recorded yet. Made before work is submitted, so that a device that is
    /// out of events refuses while nothing is in flight.
    pub(crate) fn claim(self: &Arc<Self>) -> Result<UnrecordedFence> {
        let event = self
            .idle
            .claim(|| self.core.driver.event_create(EventFlags::default()))?;
        Ok(UnrecordedFence(DeviceFence(Arc::new(Inner {
            event,
            pool: Arc::clone(self),
            done: AtomicBool::new(false),
        }))))
    }
}

impl Drop for EventPool {
    fn drop(&mut self) {
        for event in self.idle.drain() {
            // SAFETY: idle events were created by this driver, and nobody holds them any more.
            self.core
                .give_back(|driver| unsafe { driver.event_destroy(event) });
        }
    }
}

/// A fence to be.
pub(crate) struct UnrecordedFence(DeviceFence);

impl UnrecordedFence {
    /// Put the fence behind all work that the stream holds now.
    pub(crate) fn record(self, stream: StreamHandle) -> Result<DeviceFence> {
        let inner = &self.0.0;
        inner.pool.core.driver.event_record(inner.event, stream)?;
        Ok(self.0)
    }
}

/// A point in a stream. The event goes back to the pool with the last clone.
#[derive(Clone)]
pub(crate) struct DeviceFence(Arc<Inner>);

struct Inner {
    event: EventHandle,
    pool: Arc<EventPool>,
    /// Set once the event is known to have fired, to spare later calls.
    done: AtomicBool,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Waits that were issued on it keep the recording that they saw.
        self.pool.idle.release(self.event);
    }
}

impl DeviceFence {
    pub(crate) fn event(&self) -> EventHandle {
        self.0.event
    }

    /// Whether it is known to have fired, without asking the driver.
    pub(crate) fn known_done(&self) -> bool {
        self.0.done.load(Ordering::Acquire)
    }

    /// It has been seen to have fired by other means.
    fn learned(&self, done: bool) -> bool {
        if done {
            self.0.done.store(true, Ordering::Release);
        }
        done
    }

    fn core(&self) -> &DeviceCore {
        &self.0.pool.core
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
