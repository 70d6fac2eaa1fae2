//! The traits that a backend implements.

use std::sync::Arc;
use std::time::Duration;

use crate::{
    Copy2d, CopyOp, DeviceInfo, DevicePtr, EventFlags, EventHandle, FunctionHandle, HostFlags,
    HostPtr, KernelArg, LaunchShape, MemoryInfo, ModuleHandle, PointerKind, RegisterFlags, Result,
    StreamFlags, StreamHandle, StreamKind, ThreadClocks,
};

/// A host function that runs in stream order. The driver calls it exactly once, on one of its own
/// threads: with `Ok` when all earlier work in the stream is done, with the error if the device
/// fails. It must not call the driver.
pub type HostCallback = Box<dyn FnOnce(Result<()>) + Send + 'static>;

/// The devices of one kind. Listing them creates no context.
pub trait Platform: Send + Sync {
    /// Lists all devices by ordinal.
    fn devices(&self) -> Result<Vec<DeviceInfo>>;

    /// Opens a device. Creates no context on any other.
    fn open(&self, ordinal: u32) -> Result<Arc<dyn Driver>>;
}

/// An open device. Any thread may call it.
///
/// Dropping the last reference closes the device. The caller must destroy what it created before.
///
/// # Handles
/// A driver trusts the handles of streams, events, modules and kernels: on libcuda a wrong one is a wild
/// pointer. So every method that takes a handle is unsafe. Its caller promises that the handle is *live*:
/// one of this device that was not destroyed or unloaded. A kernel is live as long as its module.
///
/// # Safety
/// Memory safety depends on the methods' documented behaviour: allocations have the requested size
/// and belong to the caller, an event that is reported as fired has fired, and an error is fatal
/// ([`Error::is_fatal`](crate::Error::is_fatal)) only when the device no longer accesses memory of
/// this process.
#[allow(clippy::missing_safety_doc)] // each unsafe method states its contract under "Safety:"
pub unsafe trait Driver: Send + Sync {
    /// The device's constant properties.
    fn info(&self) -> &DeviceInfo;

    /// Devices with the same domain share page-locked memory: what is pinned for one is pinned for
    /// all.
    fn pin_domain(&self) -> u64;

    /// The clocks of host threads, if time is simulated.
    #[doc(hidden)]
    fn thread_clocks(&self) -> Option<&dyn ThreadClocks> {
        None
    }

    /// Free and total device memory.
    fn memory_info(&self) -> Result<MemoryInfo>;

    /// Waits for all work in all streams.
    fn synchronize(&self) -> Result<()>;

    /// What kind of memory a host or device address belongs to.
    fn pointer_kind(&self, address: u64) -> Result<PointerKind>;

    /// Allocates `bytes` (more than 0), aligned to 256.
    fn device_alloc(&self, bytes: usize) -> Result<DevicePtr>;

    /// Frees memory from [`device_alloc`](Self::device_alloc).
    ///
    /// Safety: `ptr` came from `device_alloc`, was not freed, and no work in flight uses it.
    unsafe fn device_free(&self, ptr: DevicePtr) -> Result<()>;

    /// Allocates in stream order, for later work in `stream` and in streams that wait for it.
    ///
    /// Safety: `stream` is live.
    unsafe fn device_alloc_async(&self, bytes: usize, stream: StreamHandle) -> Result<DevicePtr>;

    /// Frees memory from [`device_alloc_async`](Self::device_alloc_async) in stream order.
    ///
    /// Safety: `stream` is live. `ptr` came from `device_alloc_async`, was not freed, and all work that
    /// uses it precedes this call in stream order.
    unsafe fn device_free_async(&self, ptr: DevicePtr, stream: StreamHandle) -> Result<()>;

    /// Allocates `bytes` (more than 0) of page-aligned pinned memory with unspecified contents.
    fn host_alloc(&self, bytes: usize, flags: HostFlags) -> Result<HostPtr>;

    /// Frees memory from [`host_alloc`](Self::host_alloc).
    ///
    /// Safety: `ptr` came from `host_alloc`, was not freed, and nothing uses it.
    unsafe fn host_free(&self, ptr: HostPtr) -> Result<()>;

    /// Page-locks existing memory. A failure changes nothing and leaves no sticky error.
    ///
    /// Safety: the range is mapped into this process and stays mapped until
    /// [`host_unregister`](Self::host_unregister).
    unsafe fn host_register(&self, ptr: HostPtr, bytes: usize, flags: RegisterFlags) -> Result<()>;

    /// Undoes [`host_register`](Self::host_register) of the range with this base address.
    ///
    /// Safety: no work in flight uses the range.
    unsafe fn host_unregister(&self, ptr: HostPtr) -> Result<()>;

    /// The device address of mapped host memory.
    fn host_device_ptr(&self, ptr: HostPtr) -> Result<DevicePtr>;

    /// The default stream, which always exists.
    fn default_stream(&self) -> StreamHandle;

    /// What kind of stream a number from another library stands for. Says nothing about whether it is live.
    fn stream_kind(&self, raw: u64) -> StreamKind;

    /// Least and greatest priority, such as `(0, -5)`: lower numbers go first.
    fn stream_priorities(&self) -> Result<(i32, i32)>;

    /// Creates a stream.
    fn stream_create(&self, flags: StreamFlags) -> Result<StreamHandle>;

    /// Destroys a stream. Work in it still completes.
    ///
    /// Safety: `stream` is live, came from [`stream_create`](Self::stream_create) and is not used again.
    unsafe fn stream_destroy(&self, stream: StreamHandle) -> Result<()>;

    /// Whether all work in the stream is done.
    ///
    /// Safety: `stream` is live.
    unsafe fn stream_query(&self, stream: StreamHandle) -> Result<bool>;

    /// Whether the stream is being captured into a graph.
    ///
    /// Safety: `stream` is live.
    unsafe fn stream_is_capturing(&self, stream: StreamHandle) -> Result<bool>;

    /// Waits for all work in the stream.
    ///
    /// Safety: `stream` is live.
    unsafe fn stream_synchronize(&self, stream: StreamHandle) -> Result<()>;

    /// Makes later work in `stream` wait for the last recording of `event`.
    ///
    /// Safety: `stream` and `event` are live.
    unsafe fn stream_wait_event(&self, stream: StreamHandle, event: EventHandle) -> Result<()>;

    /// Calls `callback` when all earlier work in the stream is done. On an error, drops it without
    /// calling it.
    ///
    /// Safety: `stream` is live. The callback does not call the driver, which may hang.
    unsafe fn host_callback(&self, stream: StreamHandle, callback: HostCallback) -> Result<()>;

    /// Creates an event. It counts as fired until it is recorded.
    fn event_create(&self, flags: EventFlags) -> Result<EventHandle>;

    /// Destroys an event. A recording in flight may still fire; waits for it stay valid.
    ///
    /// Safety: `event` is live and is not used again.
    unsafe fn event_destroy(&self, event: EventHandle) -> Result<()>;

    /// Records the event: it fires when all work now in the stream is done.
    ///
    /// Safety: `event` and `stream` are live.
    unsafe fn event_record(&self, event: EventHandle, stream: StreamHandle) -> Result<()>;

    /// Whether the event has fired.
    ///
    /// Safety: `event` is live.
    unsafe fn event_query(&self, event: EventHandle) -> Result<bool>;

    /// Waits for the event.
    ///
    /// Safety: `event` is live.
    unsafe fn event_synchronize(&self, event: EventHandle) -> Result<()>;

    /// Waits for the event for at most `timeout`, in the device's time, which is virtual on a
    /// simulated device. Returns whether the event has fired.
    ///
    /// Safety: `event` is live.
    unsafe fn event_wait_timeout(&self, event: EventHandle, timeout: Duration) -> Result<bool>;

    /// Nanoseconds from `start` to `end`, which may be negative. Both events were created with timing
    /// and have fired.
    ///
    /// Safety: `start` and `end` are live.
    unsafe fn event_elapsed_ns(&self, start: EventHandle, end: EventHandle) -> Result<i64>;

    /// Copies synchronously. Not ordered with non-blocking streams.
    ///
    /// Safety: both places hold `bytes` valid bytes and do not overlap, and nothing else writes to
    /// the target.
    unsafe fn copy(&self, copy: CopyOp) -> Result<()>;

    /// Copies in stream order.
    ///
    /// Safety: `stream` is live. As for [`copy`](Self::copy), until the copy is done. Until then host
    /// memory is not freed, a source is not written, and a target is neither read nor written.
    unsafe fn copy_async(&self, copy: CopyOp, stream: StreamHandle) -> Result<()>;

    /// Copies rows synchronously.
    ///
    /// Safety: as for [`copy`](Self::copy), for every row.
    unsafe fn copy_2d(&self, copy: Copy2d) -> Result<()>;

    /// Copies rows in stream order.
    ///
    /// Safety: as for [`copy_async`](Self::copy_async), for every row.
    unsafe fn copy_2d_async(&self, copy: Copy2d, stream: StreamHandle) -> Result<()>;

    /// Submits many copies at once, in no order among each other.
    /// [`NotSupported`](crate::ErrorKind::NotSupported) where `info().batch_copy` is false.
    ///
    /// Safety: as for [`copy_async`](Self::copy_async), for every copy. No target overlaps another
    /// place in the batch.
    unsafe fn copy_batch(&self, copies: &[CopyOp], stream: StreamHandle) -> Result<()>;

    /// Sets device bytes to `value` in stream order.
    ///
    /// Safety: `stream` is live. `ptr` has `bytes` valid device bytes, which nothing else uses until this
    /// is done.
    unsafe fn memset_async(
        &self,
        ptr: DevicePtr,
        value: u8,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<()>;

    /// Loads a PTX module.
    fn module_load(&self, ptx: &str) -> Result<ModuleHandle>;

    /// Unloads a module.
    ///
    /// Safety: `module` is live. None of its kernels is running, and none is used again.
    unsafe fn module_unload(&self, module: ModuleHandle) -> Result<()>;

    /// Finds a kernel in a module by name.
    ///
    /// Safety: `module` is live.
    unsafe fn module_function(&self, module: ModuleHandle, name: &str) -> Result<FunctionHandle>;

    /// Launches a kernel in stream order.
    ///
    /// Safety: `function` and `stream` are live. The arguments match the kernel's parameters. Until the
    /// kernel is done, all memory that it accesses is valid and free of data races.
    unsafe fn launch(
        &self,
        function: FunctionHandle,
        shape: LaunchShape,
        args: &[KernelArg],
        stream: StreamHandle,
    ) -> Result<()>;
}

/// Gives `$with!` all calls of [`Driver`](crate::Driver): name in [`Call`](crate::Call), safety, and
/// method. `[stream work]` is the work that a call puts onto a stream.
#[doc(hidden)]
#[macro_export]
macro_rules! driver_calls {
    ($with:ident) => {
        $with! {
            MemoryInfo: safe memory_info() -> MemoryInfo;
            Synchronize: safe synchronize() -> ();
            PointerKind: safe pointer_kind(address: u64) -> PointerKind;
            DeviceAlloc: safe device_alloc(bytes: usize) -> DevicePtr;
            DeviceFree: unsafe device_free(ptr: DevicePtr) -> ();
            DeviceAllocAsync: unsafe device_alloc_async(bytes: usize, stream: StreamHandle) -> DevicePtr;
            DeviceFreeAsync: unsafe device_free_async(ptr: DevicePtr, stream: StreamHandle) -> ();
            HostAlloc: safe host_alloc(bytes: usize, flags: HostFlags) -> HostPtr;
            HostFree: unsafe host_free(ptr: HostPtr) -> ();
            HostRegister: unsafe host_register(ptr: HostPtr, bytes: usize, flags: RegisterFlags) -> ();
            HostUnregister: unsafe host_unregister(ptr: HostPtr) -> ();
            HostDevicePtr: safe host_device_ptr(ptr: HostPtr) -> DevicePtr;
            StreamPriorities: safe stream_priorities() -> (i32, i32);
            StreamCreate: safe stream_create(flags: StreamFlags) -> StreamHandle;
            StreamDestroy: unsafe stream_destroy(stream: StreamHandle) -> ();
            StreamQuery: unsafe stream_query(stream: StreamHandle) -> bool;
            StreamIsCapturing: unsafe stream_is_capturing(stream: StreamHandle) -> bool;
            StreamSynchronize: unsafe stream_synchronize(stream: StreamHandle) -> ();
            StreamWaitEvent: unsafe stream_wait_event(stream: StreamHandle, event: EventHandle) -> ();
            HostCallback: unsafe host_callback(stream: StreamHandle, callback: HostCallback) -> ();
            EventCreate: safe event_create(flags: EventFlags) -> EventHandle;
            EventDestroy: unsafe event_destroy(event: EventHandle) -> ();
            EventRecord: unsafe event_record(event: EventHandle, stream: StreamHandle) -> ();
            EventQuery: unsafe event_query(event: EventHandle) -> bool;
            EventSynchronize: unsafe event_synchronize(event: EventHandle) -> ();
            EventWaitTimeout: unsafe event_wait_timeout(event: EventHandle, timeout: Duration) -> bool;
            EventElapsed: unsafe event_elapsed_ns(start: EventHandle, end: EventHandle) -> i64;
            Copy: unsafe copy(copy: CopyOp) -> ();
            CopyAsync: unsafe copy_async(copy: CopyOp, stream: StreamHandle) -> ()
                [stream StreamWork::Copies(&[copy])];
            Copy2d: unsafe copy_2d(copy: Copy2d) -> ();
            Copy2dAsync: unsafe copy_2d_async(copy: Copy2d, stream: StreamHandle) -> ()
                [stream StreamWork::Rows(&copy)];
            CopyBatch: unsafe copy_batch(copies: &[CopyOp], stream: StreamHandle) -> ()
                [stream StreamWork::Copies(copies)];
            Memset: unsafe memset_async(ptr: DevicePtr, value: u8, bytes: usize, stream: StreamHandle) -> ()
                [stream StreamWork::Memset { bytes }];
            ModuleLoad: safe module_load(ptx: &str) -> ModuleHandle;
            ModuleUnload: unsafe module_unload(module: ModuleHandle) -> ();
            ModuleFunction: unsafe module_function(module: ModuleHandle, name: &str) -> FunctionHandle
                [kernel name];
            Launch: unsafe launch(function: FunctionHandle, shape: LaunchShape, args: &[KernelArg], stream: StreamHandle) -> ()
                [stream StreamWork::Kernel(function)];
        }
    };
}
