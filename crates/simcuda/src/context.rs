//! Contexts: creation, destruction, queries, and the stack of each thread.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use pinlane_driver::{Driver, StreamFlags, StreamHandle};

use crate::allocations::{Block, Kind};
use crate::c_pointers::{In, Out};
use crate::error::{
    CONTEXT_IS_DESTROYED, DEVICE_UNAVAILABLE, INVALID_CONTEXT, INVALID_VALUE, NOT_SUPPORTED,
    OUT_OF_MEMORY, Outcome, UNSUPPORTED_LIMIT, ensure,
};
use crate::export_macros::exports;
use crate::machine::{Device, Machine, lock, machine};
use crate::report;
use crate::settings::Fail;

/// A context on one device. All contexts of a device share the simulated device's memory.
pub struct Context {
    /// The program's handle.
    pub handle: usize,
    /// Number of its device.
    pub ordinal: i32,
    /// The driver of its device.
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

/// Initial limits: stack, printf buffer, malloc heap, nested launches (two), L2 cache (two).
const LIMIT_DEFAULTS: [usize; 7] = [1 << 10, 1 << 20, 8 << 20, 2, 2048, 128, 0];

/// Result of `cuCtxGetApiVersion`: contexts have not changed since 3.2.
const API_VERSION: u32 = 3020;

impl Context {
    /// Creates a context on `device`, in the machine's table.
    pub fn create(
        machine: &Machine,
        device: &Device,
        flags: u32,
        primary: bool,
    ) -> Outcome<Arc<Self>> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        ensure(machine.settings.fail != Fail::Busy, DEVICE_UNAVAILABLE)?;
        let driver = machine.driver(device)?;
        let handle = machine.contexts.insert_with(|handle| {
            Arc::new(Self {
                handle,
                ordinal: device.ordinal(),
                driver,
                primary,
                id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
                flags: AtomicU32::new(flags),
                cache_preference: AtomicU32::new(0),
                limits: LIMIT_DEFAULTS.map(AtomicUsize::new),
                per_thread: Mutex::default(),
            })
        });
        report::note_context(device.info.ordinal, primary);
        machine.contexts.find(handle)
    }

    /// Destroys the context: its handle and those of its objects become invalid. Memory that was not
    /// freed stays allocated on the simulated device, and is reported as a leak.
    pub fn destroy(&self, machine: &Machine) {
        // Another thread may have removed it already.
        let _ = machine.contexts.remove(self.handle);
        let is_other = |context: &Self| context.handle != self.handle;
        machine.streams.retain(|it| is_other(&it.context));
        machine.events.retain(|it| is_other(&it.context));
        machine.modules.retain(|it| is_other(&it.context));
        machine.functions.retain(|it| is_other(&it.context));
        self.end_thread_streams();
    }

    /// The calling thread's default stream.
    pub fn thread_stream(&self) -> Outcome<StreamHandle> {
        let mut streams = lock(&self.per_thread);
        if let Some(stream) = streams.get(&thread::current().id()) {
            return Ok(*stream);
        }
        let stream = self.driver.stream_create(StreamFlags::default())?;
        streams.insert(thread::current().id(), stream);
        Ok(stream)
    }

    /// Destroys the default streams of threads, which programs cannot.
    pub fn end_thread_streams(&self) {
        let mut streams = lock(&self.per_thread);
        for (_, stream) in streams.drain() {
            // SAFETY: `thread_stream` created it, and it has just been removed from the table.
            // Failure is fine: on a failed device nothing is left to destroy.
            let _ = unsafe { self.driver.stream_destroy(stream) };
        }
    }

    /// Adds a block to the program's memory.
    pub fn insert_block(&self, base: u64, bytes: usize, kind: Kind) -> Outcome<()> {
        machine()?.allocations.insert(Block {
            base,
            bytes,
            kind,
            ordinal: self.ordinal,
            context: self.handle,
        });
        Ok(())
    }

    fn limit(&self, limit: u32) -> Outcome<&AtomicUsize> {
        self.limits.get(limit as usize).ok_or(UNSUPPORTED_LIMIT)
    }
}

/// Fails for flags that no context has.
pub fn check_flags(flags: u32) -> Outcome<()> {
    ensure(flags & !FLAGS_KNOWN == 0, INVALID_VALUE)
}

/// Largest depth of a stack.
const DEPTH: usize = 64;

/// Handles of contexts, the current one on top. It has no destructor, so that it can be used while a
/// thread ends and drops other thread-local values.
struct Stack {
    handles: [usize; DEPTH],
    depth: usize,
}

thread_local! {
    static STACK: RefCell<Stack> = const {
        RefCell::new(Stack { handles: [0; DEPTH], depth: 0 })
    };
}

/// The current context of this thread.
pub fn current() -> Outcome<Arc<Context>> {
    let machine = machine()?;
    let handle = top().ok_or(INVALID_CONTEXT)?;
    let found = machine.contexts.find(handle);
    found.map_err(|_| CONTEXT_IS_DESTROYED)
}

/// The context of `handle`.
fn find(handle: usize) -> Outcome<Arc<Context>> {
    let found = machine()?.contexts.find(handle);
    found.map_err(|_| INVALID_CONTEXT)
}

/// The context of `handle`, or the current one for 0.
fn context_or_current(handle: usize) -> Outcome<Arc<Context>> {
    match handle {
        0 => current(),
        handle => find(handle),
    }
}

/// Pushes a context.
fn push(handle: usize) -> Outcome<()> {
    STACK.with_borrow_mut(|stack| {
        let depth = stack.depth;
        *stack.handles.get_mut(depth).ok_or(OUT_OF_MEMORY)? = handle;
        stack.depth += 1;
        Ok(())
    })
}

/// Pops the current context.
fn pop() -> Option<usize> {
    STACK.with_borrow_mut(|stack| {
        stack.depth = stack.depth.checked_sub(1)?;
        Some(stack.handles[stack.depth])
    })
}

/// The handle of the current context.
fn top() -> Option<usize> {
    STACK.with_borrow(|stack| Some(stack.handles[stack.depth.checked_sub(1)?]))
}

/// Creates a context and makes it current.
fn create(context: Out<usize>, flags: u32, device: i32) -> Outcome<()> {
    let machine = machine()?;
    context.set_with(|| {
        check_flags(flags)?;
        let context = Context::create(machine, machine.device(device)?, flags, false)?;
        push(context.handle)?;
        Ok(context.handle)
    })
}

exports! { through guard;
    /// Creates a context and makes it current.
    fn cuCtxCreate_v2(context: Out<usize>, flags: u32, device: i32) {
        create(context, flags, device)
    }

    /// The same with an execution affinity, which the simulated GPU does not support.
    fn cuCtxCreate_v3(context: Out<usize>, _affinity: In<u8>, count: i32, flags: u32, device: i32) {
        if count == 0 { create(context, flags, device) } else { Err(NOT_SUPPORTED) }
    }

    /// The same with parameters, which the simulated GPU does not support.
    fn cuCtxCreate_v4(context: Out<usize>, params: In<u8>, flags: u32, device: i32) {
        if params.is_null() { create(context, flags, device) } else { Err(NOT_SUPPORTED) }
    }

    /// Destroys a created context. If it is current, the next one on the stack becomes current.
    fn cuCtxDestroy_v2(context: usize) {
        let found = find(context)?;
        ensure(!found.primary, INVALID_CONTEXT)?;
        if current().is_ok_and(|current| current.handle == context) {
            pop();
        }
        found.destroy(machine()?);
        Ok(())
    }

    /// Replaces the top of the stack; 0 pops it.
    fn cuCtxSetCurrent(context: usize) {
        if context == 0 {
            machine()?;
            pop();
            return Ok(());
        }
        find(context)?;
        pop();
        push(context)
    }

    /// The current context, or 0.
    fn cuCtxGetCurrent(context: Out<usize>) {
        machine()?;
        context.set(top().unwrap_or(0))
    }

    /// Pushes a context.
    fn cuCtxPushCurrent_v2(context: usize) {
        find(context)?;
        push(context)
    }

    /// Pops the current context.
    fn cuCtxPopCurrent_v2(context: Out<usize>) {
        machine()?;
        context.set_optional(pop().ok_or(INVALID_CONTEXT)?);
        Ok(())
    }

    /// Waits for all work of the device.
    fn cuCtxSynchronize() {
        Ok(current()?.driver.synchronize()?)
    }

    /// The same for a given context.
    fn cuCtxSynchronize_v2(context: usize) {
        Ok(context_or_current(context)?.driver.synchronize()?)
    }

    /// The device of the current context.
    fn cuCtxGetDevice(device: Out<i32>) {
        device.set(current()?.ordinal)
    }

    /// The device of a given context.
    fn cuCtxGetDevice_v2(device: Out<i32>, context: usize) {
        device.set(context_or_current(context)?.ordinal)
    }

    /// The API version of a context.
    fn cuCtxGetApiVersion(context: usize, version: Out<u32>) {
        context_or_current(context)?;
        version.set(API_VERSION)
    }

    /// The unique number of a context.
    fn cuCtxGetId(context: usize, id: Out<u64>) {
        id.set(context_or_current(context)?.id)
    }

    /// The current context's flags.
    fn cuCtxGetFlags(flags: Out<u32>) {
        flags.set(current()?.flags.load(Ordering::Relaxed))
    }

    /// Sets the current context's flags.
    fn cuCtxSetFlags(flags: u32) {
        let context = current()?;
        check_flags(flags)?;
        context.flags.store(flags, Ordering::Relaxed);
        Ok(())
    }

    /// Least and greatest stream priority.
    fn cuCtxGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) {
        let range = current()?.driver.stream_priorities()?;
        least.set_optional(range.0);
        greatest.set_optional(range.1);
        Ok(())
    }

    /// One of the current context's limits.
    fn cuCtxGetLimit(value: Out<usize>, limit: u32) {
        let context = current()?;
        value.set_with(|| Ok(context.limit(limit)?.load(Ordering::Relaxed)))
    }

    /// Sets a limit. CPU twins ignore it.
    fn cuCtxSetLimit(limit: u32, value: usize) {
        current()?.limit(limit)?.store(value, Ordering::Relaxed);
        Ok(())
    }

    /// Whether kernels prefer cache or shared memory.
    fn cuCtxGetCacheConfig(preference: Out<u32>) {
        preference.set(current()?.cache_preference.load(Ordering::Relaxed))
    }

    /// Sets what kernels prefer. CPU twins ignore it.
    fn cuCtxSetCacheConfig(preference: u32) {
        let context = current()?;
        ensure(preference <= 3, INVALID_VALUE)?;
        context.cache_preference.store(preference, Ordering::Relaxed);
        Ok(())
    }
}
