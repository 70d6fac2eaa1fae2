//! The trait, implemented with the methods in the files by topic.

use std::time::Duration;

use pinlane_driver::*;

use crate::device::CudaDevice;
use crate::handles::DEFAULT_STREAM;

/// Forwards each listed method to the inherent one of the same name.
macro_rules! forward {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($arg: $type),*) -> Result<$result> {
            CudaDevice::$name(self, $($arg),*)
        })*
    };
    ($(unsafe fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        $(unsafe fn $name(&self, $($arg: $type),*) -> Result<$result> {
            // SAFETY: the caller keeps the same contract.
            unsafe { CudaDevice::$name(self, $($arg),*) }
        })*
    };
}

/// The one libcuda of the process pins for all its devices. Simulated machines count from 1.
const PIN_DOMAIN: u64 = 0;

// SAFETY: libcuda makes the same promises about memory and events, and `error.rs` treats as fatal
// only the errors that end the context.
unsafe impl Driver for CudaDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn pin_domain(&self) -> u64 {
        PIN_DOMAIN
    }

    fn default_stream(&self) -> StreamHandle {
        DEFAULT_STREAM
    }

    forward! {
        fn memory_info() -> MemoryInfo;
        fn synchronize() -> ();
        fn pointer_kind(address: u64) -> PointerKind;
        fn device_alloc(bytes: usize) -> DevicePtr;
        fn device_alloc_async(bytes: usize, stream: StreamHandle) -> DevicePtr;
        fn host_alloc(bytes: usize, flags: HostFlags) -> HostPtr;
        fn host_device_ptr(ptr: HostPtr) -> DevicePtr;
        fn stream_priorities() -> (i32, i32);
        fn stream_create(flags: StreamFlags) -> StreamHandle;
        fn stream_query(stream: StreamHandle) -> bool;
        fn stream_is_capturing(stream: StreamHandle) -> bool;
        fn stream_synchronize(stream: StreamHandle) -> ();
        fn stream_wait_event(stream: StreamHandle, event: EventHandle) -> ();
        fn host_callback(stream: StreamHandle, callback: HostCallback) -> ();
        fn event_create(flags: EventFlags) -> EventHandle;
        fn event_record(event: EventHandle, stream: StreamHandle) -> ();
        fn event_query(event: EventHandle) -> bool;
        fn event_synchronize(event: EventHandle) -> ();
        fn event_wait_timeout(event: EventHandle, timeout: Duration) -> bool;
        fn event_elapsed_ns(start: EventHandle, end: EventHandle) -> i64;
        fn module_load(ptx: &str) -> ModuleHandle;
        fn module_function(module: ModuleHandle, name: &str) -> FunctionHandle;
    }

    forward! {
        unsafe fn device_free(ptr: DevicePtr) -> ();
        unsafe fn device_free_async(ptr: DevicePtr, stream: StreamHandle) -> ();
        unsafe fn host_free(ptr: HostPtr) -> ();
        unsafe fn host_register(ptr: HostPtr, bytes: usize, flags: RegisterFlags) -> ();
        unsafe fn host_unregister(ptr: HostPtr) -> ();
        unsafe fn stream_destroy(stream: StreamHandle) -> ();
        unsafe fn event_destroy(event: EventHandle) -> ();
        unsafe fn copy(copy: CopyOp) -> ();
        unsafe fn copy_async(copy: CopyOp, stream: StreamHandle) -> ();
        unsafe fn copy_2d(copy: Copy2d) -> ();
        unsafe fn copy_2d_async(copy: Copy2d, stream: StreamHandle) -> ();
        unsafe fn copy_batch(copies: &[CopyOp], stream: StreamHandle) -> ();
        unsafe fn memset_async(ptr: DevicePtr, value: u8, bytes: usize, stream: StreamHandle) -> ();
        unsafe fn module_unload(module: ModuleHandle) -> ();
        unsafe fn launch(function: FunctionHandle, shape: LaunchShape, args: &[KernelArg], stream: StreamHandle) -> ();
    }
}
