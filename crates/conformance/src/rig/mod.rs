//! The rig of a case: an open device, and a list of everything that the case created on it.
//!
//! **Soundness.** Buffers borrow the rig and know their length, so every range that reaches the
//! driver is live and in bounds. A broken driver may still write at the wrong time. So host memory is
//! accessed only by raw copies, never through references, and such a driver shows as wrong bytes.
//! Before a case reads or refills a buffer, it waits for the work on it with the call under test.

mod copies;
mod gate;
mod kernels;
mod memory;

use std::sync::{Arc, Mutex, PoisonError};

use pinlane_driver::{
    DevicePtr, Driver, EventFlags, EventHandle, FunctionHandle, HostPtr, ModuleHandle, Result,
    StreamFlags, StreamHandle,
};

use crate::Outcome;

pub(crate) use copies::Rows;
pub(crate) use kernels::Planes;
pub(crate) use memory::{DeviceMem, HostKind, HostMem, PAGE_BYTES, Pages, Span};

/// A resource to free.
enum Resource {
    Device(DevicePtr),
    DeviceAsync(DevicePtr, StreamHandle),
    Pinned(HostPtr),
    Pageable(#[expect(dead_code, reason = "held for its Drop")] Pages),
    Registered(HostPtr),
    Stream(StreamHandle),
    Event(EventHandle),
    Module(ModuleHandle),
}

// SAFETY: the addresses are only handed back to the driver, which any thread may call.
unsafe impl Send for Resource {}

/// An open device and everything that was created on it.
pub(crate) struct Rig {
    driver: Arc<dyn Driver>,
    resource: Mutex<Vec<Resource>>,
}

impl Rig {
    pub(crate) fn new(driver: Arc<dyn Driver>) -> Self {
        Self {
            driver,
            resource: Mutex::new(Vec::new()),
        }
    }

    /// The driver, for the calls that need no bookkeeping.
    pub(crate) fn driver(&self) -> &dyn Driver {
        &*self.driver
    }

    /// A non-blocking stream.
    pub(crate) fn stream(&self) -> Result<StreamHandle> {
        self.stream_with(StreamFlags {
            non_blocking: true,
            ..StreamFlags::default()
        })
    }

    pub(crate) fn stream_with(&self, flags: StreamFlags) -> Result<StreamHandle> {
        let stream = self.driver.stream_create(flags)?;
        self.track(Resource::Stream(stream));
        Ok(stream)
    }

    /// Destroys a stream, which the case does not use again.
    pub(crate) fn destroy_stream(&self, stream: StreamHandle) -> Result<()> {
        let resource =
            self.untrack(|resource| matches!(resource, Resource::Stream(s) if *s == stream));
        self.free(resource)
    }

    /// An event without timing.
    pub(crate) fn event(&self) -> Result<EventHandle> {
        self.event_with(EventFlags::default())
    }

    /// An event with timing.
    pub(crate) fn timed_event(&self) -> Result<EventHandle> {
        self.event_with(EventFlags {
            timing: true,
            ..EventFlags::default()
        })
    }

    pub(crate) fn event_with(&self, flags: EventFlags) -> Result<EventHandle> {
        let event = self.driver.event_create(flags)?;
        self.track(Resource::Event(event));
        Ok(event)
    }

    /// Destroys an event, which the case does not use again.
    pub(crate) fn destroy_event(&self, event: EventHandle) -> Result<()> {
        let resource =
            self.untrack(|resource| matches!(resource, Resource::Event(e) if *e == event));
        self.free(resource)
    }

    pub(crate) fn module(&self, ptx: &str) -> Result<ModuleHandle> {
        let module = self.driver.module_load(ptx)?;
        self.track(Resource::Module(module));
        Ok(module)
    }

    /// Unloads a module. None of its kernels runs, and the case does not use it again.
    pub(crate) fn unload(&self, module: ModuleHandle) -> Result<()> {
        let resource =
            self.untrack(|resource| matches!(resource, Resource::Module(m) if *m == module));
        self.free(resource)
    }

    /// Loads the built-in module and returns one of its kernels.
    pub(crate) fn function(&self, name: &str) -> Result<FunctionHandle> {
        let module = self.module(pinlane_kernels::PTX)?;
        self.driver.module_function(module, name)
    }

    /// Frees everything. An error is a failure of the case.
    pub(crate) fn close(self) -> Outcome {
        Ok(self.free_all()?)
    }

    /// Waits for all work first. Continues after an error, so that the rest is freed, too.
    fn free_all(&self) -> Result<()> {
        let mut first = self.driver.synchronize();
        loop {
            let last = self.list().pop();
            let Some(resource) = last else { break };
            first = first.and(self.free(resource));
        }
        first.and(self.driver.synchronize())
    }

    fn free(&self, resource: Resource) -> Result<()> {
        // SAFETY: each came from the matching call and was removed from the list, so it is freed
        // once. Work on memory is done: `free_all` has synchronised, and a case that frees earlier
        // has waited for its own work. The case does not use a freed module or event again.
        unsafe {
            match resource {
                Resource::Device(ptr) => self.driver.device_free(ptr),
                Resource::DeviceAsync(ptr, stream) => self.driver.device_free_async(ptr, stream),
                Resource::Pinned(ptr) => self.driver.host_free(ptr),
                Resource::Pageable(_) => Ok(()),
                Resource::Registered(ptr) => self.driver.host_unregister(ptr),
                Resource::Stream(stream) => self.driver.stream_destroy(stream),
                Resource::Event(event) => self.driver.event_destroy(event),
                Resource::Module(module) => self.driver.module_unload(module),
            }
        }
    }

    fn track(&self, resource: Resource) {
        self.list().push(resource);
    }

    /// Removes a resource from the list. A case frees only what it created.
    fn untrack(&self, is_it: impl Fn(&Resource) -> bool) -> Resource {
        let mut list = self.list();
        let at = list
            .iter()
            .rposition(is_it)
            .expect("the case created what it frees");
        list.remove(at)
    }

    fn list(&self) -> std::sync::MutexGuard<'_, Vec<Resource>> {
        // A panic on another thread leaves the list intact.
        self.resource.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // After `close` the list is empty. After a failure, further errors say nothing new.
        if !self.list().is_empty() {
            let _ = self.free_all();
        }
    }
}
