//! The driver trait, call by call: each enters the machine, does its work under the lock, and waits
//! if the call is a blocking one.

use std::sync::Arc;
use std::time::Duration;

use pinlane_driver::{
    Call, Copy2d, CopyOp, DeviceInfo, DevicePtr, Driver, EventFlags, EventHandle, FunctionHandle,
    HostCallback, HostFlags, HostPtr, KernelArg, LaunchShape, MemoryInfo, ModuleHandle,
    PointerKind, RegisterFlags, Result, StreamFlags, StreamHandle,
};

use crate::calls::PRIORITIES;
use crate::copy_plan::rows;
use crate::machine::Machine;
use crate::operation::StreamPoint;
use crate::state::State;

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

    fn call<T>(&self, call: Call, work: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        self.machine.call(self.device, call, work)
    }

    fn give_back(&self, call: Call, work: impl FnOnce(&mut State) -> Result<()>) -> Result<()> {
        self.machine.give_back(self.device, call, work)
    }

    fn call_and_wait(
        &self,
        call: Call,
        work: impl FnOnce(&mut State) -> Result<Vec<StreamPoint>>,
    ) -> Result<()> {
        self.machine.call_and_wait(self.device, call, work)
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
        self.call_and_wait(call, |state| {
            // SAFETY: passed on to the caller.
            unsafe { state.copy(self.device, call, copies, stream, wait) }
        })
    }
}

// SAFETY: allocations are real memory of the requested size, events fire after their work, and
// after a fatal error no operation touches memory.
unsafe impl Driver for SimDriver {
    fn info(&self) -> &DeviceInfo {
        &self.machine.infos[self.device]
    }

    fn pin_domain(&self) -> u64 {
        self.machine.pin_domain
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        self.call(Call::MemoryInfo, |state| {
            let memory = &state.devices[self.device].memory;
            Ok(MemoryInfo {
                free_bytes: memory.free_bytes(),
                total_bytes: memory.capacity_bytes(),
            })
        })
    }

    fn synchronize(&self) -> Result<()> {
        self.call_and_wait(Call::Synchronize, |state| {
            Ok(state.end_of_device(self.device))
        })
    }

    fn pointer_kind(&self, address: u64) -> Result<PointerKind> {
        self.call(Call::PointerKind, |state| Ok(state.pointer_kind(address)))
    }

    fn device_alloc(&self, bytes: usize) -> Result<DevicePtr> {
        self.call(Call::DeviceAlloc, |state| {
            state.device_alloc(self.device, bytes)
        })
    }

    unsafe fn device_free(&self, ptr: DevicePtr) -> Result<()> {
        self.give_back(Call::DeviceFree, |state| {
            state.device_free(self.device, ptr)
        })
    }

    fn device_alloc_async(&self, bytes: usize, stream: StreamHandle) -> Result<DevicePtr> {
        self.call(Call::DeviceAllocAsync, |state| {
            state.device_alloc_async(self.device, bytes, stream)
        })
    }

    unsafe fn device_free_async(&self, ptr: DevicePtr, stream: StreamHandle) -> Result<()> {
        self.give_back(Call::DeviceFreeAsync, |state| {
            state.device_free_async(self.device, ptr, stream)
        })
    }

    fn host_alloc(&self, bytes: usize, flags: HostFlags) -> Result<HostPtr> {
        self.call(Call::HostAlloc, |state| state.host_alloc(bytes, flags))
    }

    unsafe fn host_free(&self, ptr: HostPtr) -> Result<()> {
        self.give_back(Call::HostFree, |state| state.host_free(ptr))
    }

    unsafe fn host_register(&self, ptr: HostPtr, bytes: usize, flags: RegisterFlags) -> Result<()> {
        self.call(Call::HostRegister, |state| {
            // SAFETY: passed on to the caller.
            unsafe { state.host_register(ptr, bytes, flags) }
        })
    }

    unsafe fn host_unregister(&self, ptr: HostPtr) -> Result<()> {
        self.give_back(Call::HostUnregister, |state| state.host_unregister(ptr))
    }

    fn host_device_ptr(&self, ptr: HostPtr) -> Result<DevicePtr> {
        self.call(Call::HostDevicePtr, |state| state.host_device_ptr(ptr))
    }

    fn default_stream(&self) -> StreamHandle {
        self.default_stream
    }

    fn stream_priorities(&self) -> Result<(i32, i32)> {
        self.call(Call::StreamPriorities, |_| Ok(PRIORITIES))
    }

    fn stream_create(&self, flags: StreamFlags) -> Result<StreamHandle> {
        self.call(Call::StreamCreate, |state| {
            state.stream_create(self.device, flags)
        })
    }

    unsafe fn stream_destroy(&self, stream: StreamHandle) -> Result<()> {
        self.give_back(Call::StreamDestroy, |state| {
            state.stream_destroy(self.device, stream)
        })
    }

    fn stream_query(&self, stream: StreamHandle) -> Result<bool> {
        self.call(Call::StreamQuery, |state| {
            state.stream_query(self.device, stream)
        })
    }

    fn stream_is_capturing(&self, stream: StreamHandle) -> Result<bool> {
        self.call(Call::StreamIsCapturing, |state| {
            state.stream_is_capturing(self.device, stream)
        })
    }

    fn stream_synchronize(&self, stream: StreamHandle) -> Result<()> {
        let call = Call::StreamSynchronize;
        self.call_and_wait(call, |state| {
            let stream = state.stream(self.device, stream, call)?;
            Ok(state.end_of(stream))
        })
    }

    fn stream_wait_event(&self, stream: StreamHandle, event: EventHandle) -> Result<()> {
        self.call(Call::StreamWaitEvent, |state| {
            state.stream_wait_event(self.device, stream, event)
        })
    }

    fn host_callback(&self, stream: StreamHandle, callback: HostCallback) -> Result<()> {
        // On an error it is dropped here, outside the lock: what it owns may call the driver.
        let mut callback = Some(callback);
        self.call(Call::HostCallback, |state| {
            state.callbacks.start_worker(&self.machine);
            state.host_callback(self.device, stream, &mut callback)
        })
    }

    fn event_create(&self, flags: EventFlags) -> Result<EventHandle> {
        self.call(Call::EventCreate, |state| {
            state.event_create(self.device, flags)
        })
    }

    unsafe fn event_destroy(&self, event: EventHandle) -> Result<()> {
        self.give_back(Call::EventDestroy, |state| {
            state.event_destroy(self.device, event)
        })
    }

    fn event_record(&self, event: EventHandle, stream: StreamHandle) -> Result<()> {
        self.call(Call::EventRecord, |state| {
            state.event_record(self.device, event, stream)
        })
    }

    fn event_query(&self, event: EventHandle) -> Result<bool> {
        self.call(Call::EventQuery, |state| {
            state.event_query(self.device, event)
        })
    }

    fn event_synchronize(&self, event: EventHandle) -> Result<()> {
        let call = Call::EventSynchronize;
        self.call_and_wait(call, |state| state.event_points(self.device, event, call))
    }

    fn event_wait_timeout(&self, event: EventHandle, timeout: Duration) -> Result<bool> {
        let call = Call::EventWaitTimeout;
        // u64::MAX would mean no deadline.
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX - 1);
        self.machine
            .call_and_wait_until(self.device, call, timeout_ns, |state| {
                state.event_points(self.device, event, call)
            })
    }

    fn event_elapsed_ns(&self, start: EventHandle, end: EventHandle) -> Result<i64> {
        self.call(Call::EventElapsed, |state| {
            state.event_elapsed_ns(self.device, start, end)
        })
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

    unsafe fn memset_async(
        &self,
        ptr: DevicePtr,
        value: u8,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<()> {
        self.call(Call::Memset, |state| {
            // SAFETY: passed on to the caller.
            unsafe { state.memset(self.device, ptr, value, bytes, stream) }
        })
    }

    fn module_load(&self, ptx: &str) -> Result<ModuleHandle> {
        self.call(Call::ModuleLoad, |state| {
            state.module_load(self.device, ptx)
        })
    }

    unsafe fn module_unload(&self, module: ModuleHandle) -> Result<()> {
        self.give_back(Call::ModuleUnload, |state| {
            state.module_unload(self.device, module)
        })
    }

    fn module_function(&self, module: ModuleHandle, name: &str) -> Result<FunctionHandle> {
        self.call(Call::ModuleFunction, |state| {
            state.module_function(self.device, module, name)
        })
    }

    unsafe fn launch(
        &self,
        function: FunctionHandle,
        shape: LaunchShape,
        args: &[KernelArg],
        stream: StreamHandle,
    ) -> Result<()> {
        self.call(Call::Launch, |state| {
            state.launch(self.device, function, shape, args, stream)
        })
    }
}
