//! The rig of a case: an open device, and a list of everything that the case created on it.
//!
//! **Soundness.** Buffers borrow the rig and know their length, so every range that reaches the
//! driver is live and in bounds. A broken driver may still write at the wrong time. So host memory is
//! accessed only by raw copies, never through references, and such a driver shows as wrong bytes.
//! Before a case reads or refills a buffer, it waits for the work on it with the call under test. The list
//! also shows that the handles which a case passes are live.

mod copies;
mod gate;
mod handle_calls;
mod kernels;
mod memory;

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinlane_driver::{
    DevicePtr, Driver, EventFlags, EventHandle, FunctionHandle, HostPtr, ModuleHandle, Result,
    StreamFlags, StreamHandle,
};

use crate::Outcome;
use crate::outcome::needs;

pub(crate) use kernels::blocks;
use memory::Pages;
pub(crate) use memory::{Memory, MemoryKind, PAGE_BYTES, Span};

/// A resource to free.
#[derive(PartialEq)]
enum Resource {
    Device(DevicePtr),
    DeviceAsync(DevicePtr, StreamHandle),
    Pinned(HostPtr),
    Pageable(Pages),
    Registered(HostPtr),
    Stream(StreamHandle),
    Event(EventHandle),
    Module(ModuleHandle),
}

// SAFETY: the addresses are only handed back to the driver, which any thread may call.
unsafe impl Send for Resource {}

/// An open device and everything that was created on it. Calls that need no bookkeeping go to its
/// driver.
pub(crate) struct Rig {
    driver: Arc<dyn Driver>,
    resources: Mutex<Vec<Resource>>,
}

impl Deref for Rig {
    type Target = dyn Driver;

    fn deref(&self) -> &Self::Target {
        &*self.driver
    }
}

impl Rig {
    pub(crate) fn new(driver: Arc<dyn Driver>) -> Self {
        Self {
            driver,
            resources: Mutex::default(),
        }
    }

    /// Skips the case if the device cannot page-lock existing memory.
    pub(crate) fn needs_registration(&self) -> Outcome {
        needs(self.info().can_register, "no registration")
    }

    /// Skips the case if kernels cannot access host memory.
    pub(crate) fn needs_mapping(&self) -> Outcome {
        needs(self.info().can_map_host, "no mapped host memory")
    }

    /// Skips the case if memory cannot be allocated in stream order.
    pub(crate) fn needs_stream_memory(&self) -> Outcome {
        let can = self.info().stream_ordered_alloc;
        needs(can, "no stream-ordered allocation")
    }

    /// A non-blocking stream.
    pub(crate) fn stream(&self) -> Result<StreamHandle> {
        self.stream_with(StreamFlags {
            non_blocking: true,
            ..StreamFlags::default()
        })
    }

    /// Non-blocking streams.
    pub(crate) fn streams(&self, count: usize) -> Result<Vec<StreamHandle>> {
        (0..count).map(|_| self.stream()).collect()
    }

    pub(crate) fn stream_with(&self, flags: StreamFlags) -> Result<StreamHandle> {
        let stream = self.stream_create(flags)?;
        self.list().push(Resource::Stream(stream));
        Ok(stream)
    }

    /// Destroys a stream, which the case does not use again.
    pub(crate) fn destroy_stream(&self, stream: StreamHandle) -> Result<()> {
        self.release(Resource::Stream(stream))
    }

    /// An event without timing.
    pub(crate) fn event(&self) -> Result<EventHandle> {
        self.event_with(EventFlags::default())
    }

    /// Events without timing.
    pub(crate) fn events(&self, count: usize) -> Result<Vec<EventHandle>> {
        (0..count).map(|_| self.event()).collect()
    }

    /// An event with timing.
    pub(crate) fn timed_event(&self) -> Result<EventHandle> {
        self.event_with(EventFlags {
            timing: true,
            ..EventFlags::default()
        })
    }

    pub(crate) fn event_with(&self, flags: EventFlags) -> Result<EventHandle> {
        let event = self.event_create(flags)?;
        self.list().push(Resource::Event(event));
        Ok(event)
    }

    /// Destroys an event, which the case does not use again.
    pub(crate) fn destroy_event(&self, event: EventHandle) -> Result<()> {
        self.release(Resource::Event(event))
    }

    /// Records an event and waits for it.
    pub(crate) fn record_and_wait(&self, event: EventHandle, stream: StreamHandle) -> Result<()> {
        self.event_record(event, stream)?;
        self.event_synchronize(event)
    }

    pub(crate) fn module(&self, ptx: &str) -> Result<ModuleHandle> {
        let module = self.module_load(ptx)?;
        self.list().push(Resource::Module(module));
        Ok(module)
    }

    /// Unloads a module. None of its kernels runs, and the case does not use it again.
    pub(crate) fn unload(&self, module: ModuleHandle) -> Result<()> {
        self.release(Resource::Module(module))
    }

    /// Loads the built-in module and returns one of its kernels.
    pub(crate) fn function(&self, name: &str) -> Result<FunctionHandle> {
        let module = self.module(pinlane_kernels::PTX)?;
        self.module_function(module, name)
    }

    /// Frees everything. An error is a failure of the case.
    pub(crate) fn close(self) -> Outcome {
        Ok(self.free_all()?)
    }

    /// Waits for all work first. Continues after an error, so that the rest is freed, too.
    fn free_all(&self) -> Result<()> {
        let mut first = self.synchronize();
        loop {
            let last = self.list().pop();
            let Some(resource) = last else { break };
            first = first.and(self.free(resource));
        }
        first.and(self.synchronize())
    }

    /// Frees what the case created.
    fn release(&self, resource: Resource) -> Result<()> {
        self.untrack(|other| *other == resource);
        self.free(resource)
    }

    fn free(&self, resource: Resource) -> Result<()> {
        // SAFETY: each came from the matching call and was removed from the list, so it is freed
        // once. Work on memory is done: `free_all` has synchronised, and a case that frees earlier
        // has waited for its own work. The case does not use a freed module or event again.
        unsafe {
            match resource {
                Resource::Device(ptr) => self.device_free(ptr),
                Resource::DeviceAsync(ptr, stream) => self.device_free_async(ptr, stream),
                Resource::Pinned(ptr) => self.host_free(ptr),
                Resource::Pageable(_) => Ok(()),
                Resource::Registered(ptr) => self.host_unregister(ptr),
                Resource::Stream(stream) => self.stream_destroy(stream),
                Resource::Event(event) => self.event_destroy(event),
                Resource::Module(module) => self.module_unload(module),
            }
        }
    }

    /// Removes a resource from the list. A case frees only what it created.
    fn untrack(&self, is_it: impl Fn(&Resource) -> bool) -> Resource {
        let mut list = self.list();
        let at = list.iter().rposition(is_it);
        list.remove(at.expect("the case created what it frees"))
    }

    fn list(&self) -> MutexGuard<'_, Vec<Resource>> {
        // A panic on another thread leaves the list intact.
        let list = self.resources.lock();
        list.unwrap_or_else(PoisonError::into_inner)
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
