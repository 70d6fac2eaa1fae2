//! Contexts, and the calls that make, end and ask them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};

use pinlane_driver::{Driver, StreamFlags, StreamHandle};

use crate::current::{context_or_current, current, pop, push};
use crate::error::{
    DEVICE_UNAVAILABLE, INVALID_CONTEXT, INVALID_VALUE, NOT_SUPPORTED, Outcome, UNSUPPORTED_LIMIT,
};
use crate::ffi::{In, Out};
use crate::report;
use crate::settings::Fail;
use crate::shim::exports;
use crate::state::{Device, Machine, machine};

/// A context on one device. All contexts of a device share the simulated device's memory.
pub struct Context {
    /// The program's name for it.
    pub handle: usize,
    /// Number of its device.
    pub ordinal: i32,
    /// Its device.
    pub driver: Arc<dyn Driver>,
    primary: bool,
    id: u64,
    flags: AtomicU32,
    cache_preference: AtomicU32,
    limits: [AtomicUsize; LIMIT_DEFAULTS.len()],
    per_thread: Mutex<HashMap<ThreadId, StreamHandle>>,
}

/// Schedule and mapping flags that a context may have.
const FLAGS_KNOWN: u32 = 0xff;

/// What each limit is at first: stack, printf buffer, malloc heap, the two of nested launches, and
/// the two of the L2 cache.
const LIMIT_DEFAULTS: [usize; 7] = [1 << 10, 1 << 20, 8 << 20, 2, 2048, 128, 0];

/// The version that `cuCtxGetApiVersion` says: contexts have behaved the same since 3.2.
const API_VERSION: u32 = 3020;

impl Context {
    /// A new context on `device`, entered into the machine's table.
    pub fn create(
        machine: &Machine,
        device: &Device,
        flags: u32,
        primary: bool,
    ) -> Outcome<Arc<Self>> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        if machine.settings.fail == Fail::Busy {
            return Err(DEVICE_UNAVAILABLE);
        }
        let driver = machine.driver(device)?;
        let (_, context) = machine.contexts.insert(|handle| {
            Arc::new(Self {
                handle,
                ordinal: device.ordinal(),
                driver,
                primary,
                id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
                flags: AtomicU32::new(flags),
                cache_preference: AtomicU32::new(0),
                limits: LIMIT_DEFAULTS.map(AtomicUsize::new),
                per_thread: Mutex::new(HashMap::new()),
            })
        });
        report::note_context(device.info.ordinal, primary);
        Ok(context)
    }

    /// Ends the context: its handle and those made in it are unknown from now on. What was not
    /// freed stays with the simulated device, whose report calls it a leak.
    pub fn destroy(&self, machine: &Machine) {
        // Gone already means that another thread was faster.
        let _ = machine.contexts.remove(self.handle);
        machine
            .streams
            .retain(|stream| stream.context.handle != self.handle);
        machine
            .events
            .retain(|event| event.context.handle != self.handle);
        machine
            .modules
            .retain(|module| module.context.handle != self.handle);
        machine
            .functions
            .retain(|function| function.context.handle != self.handle);
        self.end_thread_streams();
    }

    /// This thread's own default stream.
    pub fn thread_stream(&self) -> Outcome<StreamHandle> {
        let mut streams = self
            .per_thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(stream) = streams.get(&thread::current().id()) {
            return Ok(*stream);
        }
        let stream = self.driver.stream_create(StreamFlags::default())?;
        streams.insert(thread::current().id(), stream);
        Ok(stream)
    }

    /// Destroys the default streams of threads, which no program can.
    pub fn end_thread_streams(&self) {
        let mut streams = self
            .per_thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for (_, stream) in streams.drain() {
            // SAFETY: it was made by `thread_stream` and leaves the only table that names it.
            // On a failed device there is nothing left to destroy.
            let _ = unsafe { self.driver.stream_destroy(stream) };
        }
    }

    fn limit(&self, limit: u32) -> Outcome<&AtomicUsize> {
        self.limits.get(limit as usize).ok_or(UNSUPPORTED_LIMIT)
    }
}

/// Creates a context and makes it current.
fn create(context: Out<usize>, flags: u32, device: i32) -> Outcome<()> {
    let machine = machine()?;
    let slot = context.required()?;
    if flags & !FLAGS_KNOWN != 0 {
        return Err(INVALID_VALUE);
    }
    let made = Context::create(machine, machine.device(device)?, flags, false)?;
    push(made.handle)?;
    slot.put(made.handle);
    Ok(())
}

exports! { through guard;
    /// Creates a context and makes it current.
    fn cuCtxCreate_v2(context: Out<usize>, flags: u32, device: i32) {
        create(context, flags, device)
    }

    /// The same with a share of the multiprocessors, which the simulated GPU does not have.
    fn cuCtxCreate_v3(context: Out<usize>, _affinity: In<u8>, count: i32, flags: u32, device: i32) {
        if count == 0 { create(context, flags, device) } else { Err(NOT_SUPPORTED) }
    }

    /// The same with parameters, which the simulated GPU does not have.
    fn cuCtxCreate_v4(context: Out<usize>, params: In<u8>, flags: u32, device: i32) {
        if params.is_null() { create(context, flags, device) } else { Err(NOT_SUPPORTED) }
    }

    /// Destroys a context that was created; where it is current, the one below becomes so.
    fn cuCtxDestroy_v2(context: usize) {
        let machine = machine()?;
        let found = machine.contexts.find(context).map_err(|_| INVALID_CONTEXT)?;
        if found.primary {
            return Err(INVALID_CONTEXT);
        }
        if current().is_ok_and(|current| current.handle == context) {
            pop();
        }
        found.destroy(machine);
        Ok(())
    }

    /// Waits for all work of the device.
    fn cuCtxSynchronize() {
        Ok(current()?.driver.synchronize()?)
    }

    /// The same for a context that is named.
    fn cuCtxSynchronize_v2(context: usize) {
        Ok(context_or_current(context)?.driver.synchronize()?)
    }

    /// The device of the current context.
    fn cuCtxGetDevice(device: Out<i32>) {
        let context = current()?;
        device.required()?.put(context.ordinal);
        Ok(())
    }

    /// The device of a context that is named.
    fn cuCtxGetDevice_v2(device: Out<i32>, context: usize) {
        let context = context_or_current(context)?;
        device.required()?.put(context.ordinal);
        Ok(())
    }

    /// The version of the interface that a context was made with.
    fn cuCtxGetApiVersion(context: usize, version: Out<u32>) {
        context_or_current(context)?;
        version.required()?.put(API_VERSION);
        Ok(())
    }

    /// A number that no other context of the process ever has.
    fn cuCtxGetId(context: usize, id: Out<u64>) {
        let context = context_or_current(context)?;
        id.required()?.put(context.id);
        Ok(())
    }

    /// The current context's flags.
    fn cuCtxGetFlags(flags: Out<u32>) {
        let context = current()?;
        flags.required()?.put(context.flags.load(Ordering::Relaxed));
        Ok(())
    }

    /// Changes the current context's flags.
    fn cuCtxSetFlags(flags: u32) {
        let context = current()?;
        if flags & !FLAGS_KNOWN != 0 {
            return Err(INVALID_VALUE);
        }
        context.flags.store(flags, Ordering::Relaxed);
        Ok(())
    }

    /// Least and greatest priority of streams.
    fn cuCtxGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) {
        let range = current()?.driver.stream_priorities()?;
        if let Some(slot) = least.optional() {
            slot.put(range.0);
        }
        if let Some(slot) = greatest.optional() {
            slot.put(range.1);
        }
        Ok(())
    }

    /// One of the current context's limits.
    fn cuCtxGetLimit(value: Out<usize>, limit: u32) {
        let context = current()?;
        value.required()?.put(context.limit(limit)?.load(Ordering::Relaxed));
        Ok(())
    }

    /// Changes a limit. CPU twins need none of them, so that it is only kept.
    fn cuCtxSetLimit(limit: u32, value: usize) {
        current()?.limit(limit)?.store(value, Ordering::Relaxed);
        Ok(())
    }

    /// Whether kernels prefer cache or shared memory.
    fn cuCtxGetCacheConfig(preference: Out<u32>) {
        let context = current()?;
        preference.required()?.put(context.cache_preference.load(Ordering::Relaxed));
        Ok(())
    }

    /// Changes what kernels prefer. CPU twins have neither, so that it is only kept.
    fn cuCtxSetCacheConfig(preference: u32) {
        let context = current()?;
        if preference > 3 {
            return Err(INVALID_VALUE);
        }
        context.cache_preference.store(preference, Ordering::Relaxed);
        Ok(())
    }
}
