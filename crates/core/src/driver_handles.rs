//! Streams and events of the driver. Calls that take their handles are unsafe; they are made here, where a
//! value shows that the handle is live.

use std::sync::Arc;
use std::time::Duration;

use pinlane_driver::{
    DevicePtr, Driver, EventFlags, EventHandle, HostCallback, Result, StreamFlags, StreamHandle,
};

use crate::device_core::DeviceCore;

/// Flags of a stream that does not synchronize with the default stream.
pub(crate) const NON_BLOCKING: StreamFlags = StreamFlags {
    non_blocking: true,
    priority: 0,
};

/// A stream, destroyed on drop. Its work still runs to completion.
pub(crate) struct OwnStream {
    core: Arc<DeviceCore>,
    handle: StreamHandle,
}

impl OwnStream {
    pub(crate) fn create(core: &Arc<DeviceCore>, flags: StreamFlags) -> Result<Self> {
        Ok(Self {
            handle: core.driver.stream_create(flags)?,
            core: Arc::clone(core),
        })
    }

    pub(crate) fn live(&self) -> StreamRef<'_> {
        // SAFETY: created by this driver, and destroyed only when this is dropped.
        unsafe { StreamRef::new(&self.core, self.handle) }
    }
}

impl Drop for OwnStream {
    fn drop(&mut self) {
        // SAFETY: created by `create`, and nothing submits to it any more. Work in it still completes.
        self.core
            .give_back(|driver| unsafe { driver.stream_destroy(self.handle) });
    }
}

/// A live stream of a device.
#[derive(Clone, Copy)]
pub(crate) struct StreamRef<'s> {
    core: &'s Arc<DeviceCore>,
    handle: StreamHandle,
}

impl<'s> StreamRef<'s> {
    /// # Safety
    /// For `'s`, the handle is live for the driver of `core`.
    pub(crate) unsafe fn new(core: &'s Arc<DeviceCore>, handle: StreamHandle) -> Self {
        Self { core, handle }
    }

    pub(crate) fn default_of(core: &'s Arc<DeviceCore>) -> Self {
        // SAFETY: the default stream always exists.
        unsafe { Self::new(core, core.driver.default_stream()) }
    }

    pub(crate) fn core(self) -> &'s Arc<DeviceCore> {
        self.core
    }

    pub(crate) fn handle(self) -> StreamHandle {
        self.handle
    }

    fn driver(self) -> &'s dyn Driver {
        &*self.core.driver
    }

    /// Whether all work is done.
    pub(crate) fn is_idle(self) -> Result<bool> {
        // SAFETY: the handle is live.
        unsafe { self.driver().stream_query(self.handle) }
    }

    pub(crate) fn is_capturing(self) -> Result<bool> {
        // SAFETY: the handle is live.
        unsafe { self.driver().stream_is_capturing(self.handle) }
    }

    pub(crate) fn synchronize(self) -> Result<()> {
        // SAFETY: the handle is live.
        unsafe { self.driver().stream_synchronize(self.handle) }
    }

    /// Waits for all work without an event. Returns whether the device is certainly finished with it: done,
    /// or dead.
    pub(crate) fn drains(self) -> bool {
        let let_go = |result: Result<()>| match result {
            Ok(()) => true,
            Err(error) => {
                let dead = error.is_fatal();
                self.core.keep_stray(error);
                dead
            }
        };
        let_go(self.synchronize())
            || let_go(self.driver().synchronize())
            || let_go(self.driver().synchronize())
    }

    /// Makes later work wait for the last recording of `event`.
    pub(crate) fn wait_for(self, event: &OwnEvent) -> Result<()> {
        event.assert_of(self.core);
        // SAFETY: both handles are live.
        unsafe { self.driver().stream_wait_event(self.handle, event.handle) }
    }

    /// Records `event`: it fires when all work submitted so far is done.
    pub(crate) fn record(self, event: &OwnEvent) -> Result<()> {
        event.assert_of(self.core);
        // SAFETY: both handles are live.
        unsafe { self.driver().event_record(event.handle, self.handle) }
    }

    /// Calls `callback` when all work submitted so far is done.
    ///
    /// # Safety
    /// The callback does not call the driver, not even by dropping what it owns.
    pub(crate) unsafe fn call_back(self, callback: HostCallback) -> Result<()> {
        // SAFETY: the handle is live; the rest is the caller's.
        unsafe { self.driver().host_callback(self.handle, callback) }
    }

    /// Allocates device memory in stream order.
    pub(crate) fn alloc(self, bytes: usize) -> Result<DevicePtr> {
        // SAFETY: the handle is live.
        unsafe { self.driver().device_alloc_async(bytes, self.handle) }
    }
}

/// An event, destroyed on drop.
pub(crate) struct OwnEvent {
    core: Arc<DeviceCore>,
    handle: EventHandle,
}

impl OwnEvent {
    pub(crate) fn create(core: &Arc<DeviceCore>, flags: EventFlags) -> Result<Self> {
        Ok(Self {
            handle: core.driver.event_create(flags)?,
            core: Arc::clone(core),
        })
    }

    pub(crate) fn core(&self) -> &Arc<DeviceCore> {
        &self.core
    }

    pub(crate) fn handle(&self) -> EventHandle {
        self.handle
    }

    /// Callers check what users pass them and return an error. This keeps a bug of theirs from becoming a
    /// wild pointer.
    fn assert_of(&self, core: &Arc<DeviceCore>) {
        assert!(Arc::ptr_eq(&self.core, core), "an event of another device");
    }

    /// Whether it has fired.
    pub(crate) fn is_done(&self) -> Result<bool> {
        // SAFETY: created by this driver, and destroyed only when this is dropped.
        unsafe { self.core.driver.event_query(self.handle) }
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        // SAFETY: as in `is_done`.
        unsafe { self.core.driver.event_synchronize(self.handle) }
    }

    /// Waits for at most `timeout`. Returns whether it has fired.
    pub(crate) fn wait_timeout(&self, timeout: Duration) -> Result<bool> {
        // SAFETY: as in `is_done`.
        unsafe { self.core.driver.event_wait_timeout(self.handle, timeout) }
    }

    /// Device time from this event to `end` in nanoseconds.
    pub(crate) fn elapsed_ns(&self, end: &Self) -> Result<i64> {
        end.assert_of(&self.core);
        // SAFETY: as in `is_done`, for both.
        unsafe { self.core.driver.event_elapsed_ns(self.handle, end.handle) }
    }
}

impl Drop for OwnEvent {
    fn drop(&mut self) {
        // SAFETY: created by `create`, and its last user is gone.
        self.core
            .give_back(|driver| unsafe { driver.event_destroy(self.handle) });
    }
}
