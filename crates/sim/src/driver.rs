//! The driver trait, call by call: each enters the machine, does its work under the lock, and waits
//! if the call is a blocking one.

use std::sync::Arc;
use std::time::Duration;

use pinlane_driver::{
    Call, Copy2d, CopyOp, DeviceInfo, DevicePtr, Driver, EventFlags, EventHandle, FunctionHandle,
    HostCallback, HostFlags, HostPtr, KernelArg, LaunchShape, MemoryInfo, ModuleHandle,
    PointerKind, RegisterFlags, Result, StreamFlags, StreamHandle, StreamKind, ThreadClocks,
};

use crate::calls::{DeviceCall, PRIORITIES, releases};
use crate::copy_plan::rows;
use crate::machine_lock::Machine;
use crate::state::State;
use crate::stream::StreamPoint;

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

    /// A call that does not block.
    fn call<T>(
        &self,
        call: Call,
        work: impl FnOnce(&mut DeviceCall<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut state = self.machine.lock();
        let result = self.enter(&mut state, call, work);
        self.machine.leave(state, &result);
        result
    }

    /// A call that blocks until the points returned by `work` are passed, or a time has passed
    /// (`u64::MAX`: no limit). Returns whether they are passed.
    fn call_and_wait(
        &self,
        call: Call,
        timeout_ns: u64,
        work: impl FnOnce(&mut DeviceCall<'_>) -> Result<Vec<StreamPoint>>,
    ) -> Result<bool> {
        let mut state = self.machine.lock();
        let mut result = Ok(true);
        match self.enter(&mut state, call, work) {
            // Without points the call ends here: what it submitted does not complete within it.
            Ok(points) if points.is_empty() => {}
            Ok(points) => {
                let (device, machine) = (self.device, &self.machine);
                (state, result) = machine.wait(state, device, call, &points, timeout_ns);
            }
            Err(error) => result = Err(error),
        }
        self.machine.leave(state, &result);
        result
    }

    /// A call that blocks until the points returned by `work` are passed.
    fn wait_for(
        &self,
        call: Call,
        work: impl FnOnce(&mut DeviceCall<'_>) -> Result<Vec<StreamPoint>>,
    ) -> Result<()> {
        self.call_and_wait(call, u64::MAX, work).map(|_| ())
    }

    /// The beginning of every call, then its work. A call that releases something also works on an
    /// unusable device, so that owners can clean up. Every other call reports why it is unusable.
    fn enter<T>(
        &self,
        state: &mut State,
        call: Call,
        work: impl FnOnce(&mut DeviceCall<'_>) -> Result<T>,
    ) -> Result<T> {
        let device = self.device;
        let entered = state.enter(device, call);
        if !releases(call) {
            entered?;
        }
        work(&mut DeviceCall {
            state,
            device,
            call,
        })
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
        self.wait_for(call, |state| unsafe { state.copy(copies, stream, wait) })
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

/// Calls that the trait marks unsafe for what they take or release. The simulator looks these up and checks
/// them.
macro_rules! checked_calls {
    ($($call:ident: fn $name:ident($($arg:ident: $type:ty),*) -> $value:ty;)*) => { $(
        unsafe fn $name(&self, $($arg: $type),*) -> Result<$value> {
            self.call(Call::$call, |state| state.$name($($arg),*))
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
        HostAlloc: fn host_alloc(bytes: usize, flags: HostFlags) -> HostPtr;
        HostDevicePtr: fn host_device_ptr(ptr: HostPtr) -> DevicePtr;
        StreamCreate: fn stream_create(flags: StreamFlags) -> StreamHandle;
        EventCreate: fn event_create(flags: EventFlags) -> EventHandle;
        ModuleLoad: fn module_load(ptx: &str) -> ModuleHandle;
    }

    unsafe_calls! {
        HostRegister: fn host_register(ptr: HostPtr, bytes: usize, flags: RegisterFlags);
        Memset: fn memset_async(ptr: DevicePtr, value: u8, bytes: usize, stream: StreamHandle);
        Launch: fn launch(
            function: FunctionHandle, shape: LaunchShape, args: &[KernelArg], stream: StreamHandle
        );
    }

    checked_calls! {
        DeviceFree: fn device_free(ptr: DevicePtr) -> ();
        DeviceAllocAsync: fn device_alloc_async(bytes: usize, stream: StreamHandle) -> DevicePtr;
        DeviceFreeAsync: fn device_free_async(ptr: DevicePtr, stream: StreamHandle) -> ();
        HostFree: fn host_free(ptr: HostPtr) -> ();
        HostUnregister: fn host_unregister(ptr: HostPtr) -> ();
        StreamDestroy: fn stream_destroy(stream: StreamHandle) -> ();
        StreamQuery: fn stream_query(stream: StreamHandle) -> bool;
        StreamIsCapturing: fn stream_is_capturing(stream: StreamHandle) -> bool;
        StreamWaitEvent: fn stream_wait_event(stream: StreamHandle, event: EventHandle) -> ();
        EventDestroy: fn event_destroy(event: EventHandle) -> ();
        EventRecord: fn event_record(event: EventHandle, stream: StreamHandle) -> ();
        EventQuery: fn event_query(event: EventHandle) -> bool;
        EventElapsed: fn event_elapsed_ns(start: EventHandle, end: EventHandle) -> i64;
        ModuleUnload: fn module_unload(module: ModuleHandle) -> ();
        ModuleFunction: fn module_function(module: ModuleHandle, name: &str) -> FunctionHandle;
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

    fn stream_kind(&self, raw: u64) -> StreamKind {
        // 0 is no handle here, but CUDA's default stream everywhere else.
        match raw == 0 || raw == self.default_stream.raw() {
            true => StreamKind::Default,
            false => StreamKind::Created,
        }
    }

    fn thread_clocks(&self) -> Option<&dyn ThreadClocks> {
        // An adversary chooses any order of the threads.
        let plain = self.machine.lock().adversary.is_none();
        plain.then_some(&*self.machine)
    }

    fn stream_priorities(&self) -> Result<(i32, i32)> {
        self.call(Call::StreamPriorities, |_| Ok(PRIORITIES))
    }

    fn synchronize(&self) -> Result<()> {
        let end = |state: &mut DeviceCall<'_>| Ok(state.end_of_device(self.device));
        self.wait_for(Call::Synchronize, end)
    }

    unsafe fn stream_synchronize(&self, stream: StreamHandle) -> Result<()> {
        let end = |state: &mut DeviceCall<'_>| Ok(state.end_of(state.stream(stream)?));
        self.wait_for(Call::StreamSynchronize, end)
    }

    unsafe fn host_callback(&self, stream: StreamHandle, callback: HostCallback) -> Result<()> {
        // On an error it is dropped here, outside the lock: what it owns may call the driver.
        let mut callback = Some(callback);
        self.call(Call::HostCallback, |state| {
            state.callbacks.start_worker(&self.machine);
            state.host_callback(stream, &mut callback)
        })
    }

    unsafe fn event_synchronize(&self, event: EventHandle) -> Result<()> {
        self.wait_for(Call::EventSynchronize, |state| state.event_end(event))
    }

    unsafe fn event_wait_timeout(&self, event: EventHandle, timeout: Duration) -> Result<bool> {
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX - 1);
        let end = |state: &mut DeviceCall<'_>| state.event_end(event);
        self.call_and_wait(Call::EventWaitTimeout, timeout_ns, end)
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
