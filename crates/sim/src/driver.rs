//! The driver trait, call by call: each enters the machine, does its work under the lock, and waits
//! if the call is a blocking one.

use std::sync::Arc;
use std::time::Duration;

use pinlane_driver::{
    Call, Copy2d, CopyOp, DeviceInfo, DevicePtr, Driver, EventFlags, EventHandle, FunctionHandle,
    HostCallback, HostFlags, HostPtr, KernelArg, LaunchShape, MemoryInfo, ModuleHandle,
    PointerKind, RegisterFlags, Result, StreamFlags, StreamHandle,
};

use crate::calls::{DeviceCall, PRIORITIES};
use crate::copy_plan::rows;
use crate::machine::Machine;
use crate::operation::StreamPoint;

/// One opened device of a simulated machine.
pub(crate) struct SimDriver {
    machine: Arc<Machine>,
    device: usize,
    default_stream: StreamHandle,
}

impl SimDriver {
    pub(crate) fn new(machine: Arc<Machine>, ordinal: u32) -> Self {
        let device = ordinal as usize;
        let default_stream = machine.lock().devices[device].default_stream;
        Self {
            machine,
            device,
            // SAFETY: the default stream lives as long as the machine.
            default_stream: unsafe { StreamHandle::from_raw(default_stream.handle()) },
        }
    }

    fn call<T>(
        &self,
        call: Call,
        work: impl FnOnce(&mut DeviceCall<'_>) -> Result<T>,
    ) -> Result<T> {
        self.machine.call(self.device, call, work)
    }

    fn call_and_wait(
        &self,
        call: Call,
        work: impl FnOnce(&mut DeviceCall<'_>) -> Result<Vec<StreamPoint>>,
    ) -> Result<()> {
        let timeout_ns = u64::MAX;
        self.machine
            .call_and_wait(self.device, call, timeout_ns, work)?;
        Ok(())
    }

    /// Submits copies as one operation.
    ///
    /// # Safety
    /// As for the trait's copy calls, for each of the copies.
    unsafe fn submit_copies(
        &self,
        call: Call,
        copies: &[CopyOp],
        stream: StreamHandle,
        wait: bool,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        self.call_and_wait(call, |state| unsafe { state.copy(copies, stream, wait) })
    }
}

/// Calls that do not block: each enters the machine and runs the method of the same name.
macro_rules! calls {
    ($($call:ident: fn $name:ident($($arg:ident: $type:ty),*) -> $value:ty;)*) => { $(
        fn $name(&self, $($arg: $type),*) -> Result<$value> {
            self.call(Call::$call, |state| state.$name($($arg),*))
        }
    )* };
}

/// The same, for calls with a contract.
macro_rules! unsafe_calls {
    ($($call:ident: fn $name:ident($($arg:ident: $type:ty),*);)*) => { $(
        unsafe fn $name(&self, $($arg: $type),*) -> Result<()> {
            // SAFETY: passed on to the caller.
            self.call(Call::$call, |state| unsafe { state.$name($($arg),*) })
        }
    )* };
}

/// Calls that release something.
macro_rules! give_back_calls {
    ($($call:ident: fn $name:ident($($arg:ident: $type:ty),*);)*) => { $(
        unsafe fn $name(&self, $($arg: $type),*) -> Result<()> {
            let work = |state: &mut DeviceCall<'_>| state.$name($($arg),*);
            self.machine.give_back(self.device, Call::$call, work)
        }
    )* };
}

// SAFETY: allocations are real memory of the requested size, events fire after their work, and
// after a fatal error no operation touches memory.
unsafe impl Driver for SimDriver {
    calls! {
        MemoryInfo: fn memory_info() -> MemoryInfo;
        PointerKind: fn pointer_kind(address: u64) -> PointerKind;
        DeviceAlloc: fn device_alloc(bytes: usize) -> DevicePtr;
        DeviceAllocAsync: fn device_alloc_async(bytes: usize, stream: StreamHandle) -> DevicePtr;
        HostAlloc: fn host_alloc(bytes: usize, flags: HostFlags) -> HostPtr;
        HostDevicePtr: fn host_device_ptr(ptr: HostPtr) -> DevicePtr;
        StreamCreate: fn stream_create(flags: StreamFlags) -> StreamHandle;
        StreamQuery: fn stream_query(stream: StreamHandle) -> bool;
        StreamIsCapturing: fn stream_is_capturing(stream: StreamHandle) -> bool;
        StreamWaitEvent: fn stream_wait_event(stream: StreamHandle, event: EventHandle) -> ();
        EventCreate: fn event_create(flags: EventFlags) -> EventHandle;
        EventRecord: fn event_record(event: EventHandle, stream: StreamHandle) -> ();
        EventQuery: fn event_query(event: EventHandle) -> bool;
        EventElapsed: fn event_elapsed_ns(start: EventHandle, end: EventHandle) -> i64;
        ModuleLoad: fn module_load(ptx: &str) -> ModuleHandle;
        ModuleFunction: fn module_function(module: ModuleHandle, name: &str) -> FunctionHandle;
    }

    unsafe_calls! {
        HostRegister: fn host_register(ptr: HostPtr, bytes: usize, flags: RegisterFlags);
        Memset: fn memset_async(ptr: DevicePtr, value: u8, bytes: usize, stream: StreamHandle);
        Launch: fn launch(
            function: FunctionHandle, shape: LaunchShape, args: &[KernelArg], stream: StreamHandle
        );
    }

    give_back_calls! {
        DeviceFree: fn device_free(ptr: DevicePtr);
        DeviceFreeAsync: fn device_free_async(ptr: DevicePtr, stream: StreamHandle);
        HostFree: fn host_free(ptr: HostPtr);
        HostUnregister: fn host_unregister(ptr: HostPtr);
        StreamDestroy: fn stream_destroy(stream: StreamHandle);
        EventDestroy: fn event_destroy(event: EventHandle);
        ModuleUnload: fn module_unload(module: ModuleHandle);
    }

    fn info(&self) -> &DeviceInfo {
        &self.machine.infos[self.device]
    }

    fn pin_domain(&self) -> u64 {
        self.machine.pin_domain
    }

    fn default_stream(&self) -> StreamHandle {
        self.default_stream
    }

    fn stream_priorities(&self) -> Result<(i32, i32)> {
        self.call(Call::StreamPriorities, |_| Ok(PRIORITIES))
    }

    fn synchronize(&self) -> Result<()> {
        self.call_and_wait(Call::Synchronize, |state| {
            Ok(state.end_of_device(self.device))
        })
    }

    fn stream_synchronize(&self, stream: StreamHandle) -> Result<()> {
        self.call_and_wait(Call::StreamSynchronize, |state| {
            Ok(state.end_of(state.stream(stream)?))
        })
    }

    fn host_callback(&self, stream: StreamHandle, callback: HostCallback) -> Result<()> {
        // On an error it is dropped here, outside the lock: what it owns may call the driver.
        let mut callback = Some(callback);
        self.call(Call::HostCallback, |state| {
            state.callbacks.start_worker(&self.machine);
            state.host_callback(stream, &mut callback)
        })
    }

    fn event_synchronize(&self, event: EventHandle) -> Result<()> {
        self.call_and_wait(Call::EventSynchronize, |state| {
            Ok(Vec::from_iter(state.event_point(event)?))
        })
    }

    fn event_wait_timeout(&self, event: EventHandle, timeout: Duration) -> Result<bool> {
        // u64::MAX would mean no deadline.
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX - 1);
        let work = |state: &mut DeviceCall<'_>| Ok(Vec::from_iter(state.event_point(event)?));
        self.machine
            .call_and_wait(self.device, Call::EventWaitTimeout, timeout_ns, work)
    }

    unsafe fn copy(&self, copy: CopyOp) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { self.submit_copies(Call::Copy, &[copy], self.default_stream, true) }
    }

    unsafe fn copy_async(&self, copy: CopyOp, stream: StreamHandle) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { self.submit_copies(Call::CopyAsync, &[copy], stream, false) }
    }

    unsafe fn copy_2d(&self, copy: Copy2d) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { self.submit_copies(Call::Copy2d, &rows(&copy), self.default_stream, true) }
    }

    unsafe fn copy_2d_async(&self, copy: Copy2d, stream: StreamHandle) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { self.submit_copies(Call::Copy2dAsync, &rows(&copy), stream, false) }
    }

    unsafe fn copy_batch(&self, copies: &[CopyOp], stream: StreamHandle) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { self.submit_copies(Call::CopyBatch, copies, stream, false) }
    }
}
