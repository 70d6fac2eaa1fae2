//! The two traits.

use std::sync::Arc;
use std::time::Duration;

use crate::{
    Copy2d, CopyOp, DeviceInfo, DevicePtr, EventFlags, EventHandle, FunctionHandle, HostFlags,
    HostPtr, KernelArg, LaunchShape, MemoryInfo, ModuleHandle, PointerKind, RegisterFlags, Result,
    StreamFlags, StreamHandle,
};

/// Work for the host in stream order. It is called exactly once, on a thread of the driver's: with
/// `Ok` when all earlier work of the stream is done, with the error when the device has failed. It
/// must not call the driver.
pub type HostCallback = Box<dyn FnOnce(Result<()>) + Send + 'static>;

/// Devices of one kind. Listing them creates nothing on any of them.
pub trait Platform: Send + Sync {
    /// All devices, in the order of their numbers.
    fn devices(&self) -> Result<Vec<DeviceInfo>>;

    /// Open one device. Nothing is created on any other.
    fn open(&self, ordinal: u32) -> Result<Arc<dyn Driver>>;
}

/// One opened device. Any thread may call; handles belong to the device that made them.
///
/// Dropping the last reference closes the device. Whoever made something destroys it before.
///
/// # Safety
/// Callers rely on what the methods say for the safety of memory: allocations are as large as was
/// asked for and belong to the caller, an event that is reported as fired has fired, and an error
/// is fatal ([`Error::is_fatal`](crate::Error::is_fatal)) only when the device touches no memory of
/// this process any more.
#[allow(clippy::missing_safety_doc)] // each unsafe method says what must hold under "Safety:"
pub unsafe trait Driver: Send + Sync {
    // ---- the device ------------------------------------------------------------------------

    /// Properties that do not change.
    fn info(&self) -> &DeviceInfo;

    /// Devices with the same number share page-locked memory: what one has pinned, the others see
    /// as pinned, too.
    fn pin_domain(&self) -> u64;

    /// Device memory, free and in all.
    fn memory_info(&self) -> Result<MemoryInfo>;

    /// Wait until all work of all streams is done.
    fn synchronize(&self) -> Result<()>;

    /// What the driver knows of a host or device address.
    fn pointer_kind(&self, address: u64) -> Result<PointerKind>;

    // ---- device memory ---------------------------------------------------------------------

    /// Allocate `bytes` (more than 0), aligned to 256.
    fn device_alloc(&self, bytes: usize) -> Result<DevicePtr>;

    /// Free what [`device_alloc`](Self::device_alloc) gave.
    ///
    /// Safety: `ptr` came from `device_alloc`, was not freed, and no work in flight uses it.
    unsafe fn device_free(&self, ptr: DevicePtr) -> Result<()>;

    /// Allocate in stream order: usable by later work of `stream`, and of others that wait for it.
    fn device_alloc_async(&self, bytes: usize, stream: StreamHandle) -> Result<DevicePtr>;

    /// Free what [`device_alloc_async`](Self::device_alloc_async) gave, in stream order.
    ///
    /// Safety: `ptr` came from `device_alloc_async`, was not freed, and all work that uses it comes
    /// before this call in stream order.
    unsafe fn device_free_async(&self, ptr: DevicePtr, stream: StreamHandle) -> Result<()>;

    // ---- host memory -----------------------------------------------------------------------

    /// Allocate `bytes` (more than 0) of pinned memory, aligned to a page, contents unspecified.
    fn host_alloc(&self, bytes: usize, flags: HostFlags) -> Result<HostPtr>;

    /// Free what [`host_alloc`](Self::host_alloc) gave.
    ///
    /// Safety: `ptr` came from `host_alloc`, was not freed, and nothing uses it any more.
    unsafe fn host_free(&self, ptr: HostPtr) -> Result<()>;

    /// Page-lock existing memory. On failure nothing has changed and no error lingers.
    ///
    /// Safety: the range is mapped memory of this process and stays so until
    /// [`host_unregister`](Self::host_unregister).
    unsafe fn host_register(&self, ptr: HostPtr, bytes: usize, flags: RegisterFlags) -> Result<()>;

    /// Undo [`host_register`](Self::host_register), named by the base address given there.
    ///
    /// Safety: no work in flight uses the range.
    unsafe fn host_unregister(&self, ptr: HostPtr) -> Result<()>;

    /// The address under which kernels see mapped host memory.
    fn host_device_ptr(&self, ptr: HostPtr) -> Result<DevicePtr>;

    // ---- streams ---------------------------------------------------------------------------

    /// The stream that is always there.
    fn default_stream(&self) -> StreamHandle;

    /// Least and greatest priority, such as `(0, -5)`: lower goes first.
    fn stream_priorities(&self) -> Result<(i32, i32)>;

    /// Create a stream.
    fn stream_create(&self, flags: StreamFlags) -> Result<StreamHandle>;

    /// Destroy a stream. Work in it still runs to its end.
    ///
    /// Safety: `stream` came from [`stream_create`](Self::stream_create) and is not used again.
    unsafe fn stream_destroy(&self, stream: StreamHandle) -> Result<()>;

    /// Whether all work of the stream is done.
    fn stream_query(&self, stream: StreamHandle) -> Result<bool>;

    /// Whether work given to the stream is recorded into a graph instead of being run.
    fn stream_is_capturing(&self, stream: StreamHandle) -> Result<bool>;

    /// Wait until all work of the stream is done.
    fn stream_synchronize(&self, stream: StreamHandle) -> Result<()>;

    /// Later work of `stream` starts only after `event`, as it was last recorded, has fired.
    fn stream_wait_event(&self, stream: StreamHandle, event: EventHandle) -> Result<()>;

    /// Call `callback` when all earlier work of the stream is done. On an error it is dropped
    /// without having been called.
    fn host_callback(&self, stream: StreamHandle, callback: HostCallback) -> Result<()>;

    // ---- events ----------------------------------------------------------------------------

    /// Create an event. Until it is recorded it counts as fired.
    fn event_create(&self, flags: EventFlags) -> Result<EventHandle>;

    /// Destroy an event. A recording in flight may still fire; waits on it stay valid.
    ///
    /// Safety: `event` came from [`event_create`](Self::event_create) and is not used again.
    unsafe fn event_destroy(&self, event: EventHandle) -> Result<()>;

    /// The event fires when all work that the stream holds now is done.
    fn event_record(&self, event: EventHandle, stream: StreamHandle) -> Result<()>;

    /// Whether the event has fired.
    fn event_query(&self, event: EventHandle) -> Result<bool>;

    /// Wait until the event has fired.
    fn event_synchronize(&self, event: EventHandle) -> Result<()>;

    /// Wait until the event has fired, at most `timeout`. Whether it has. Time is the device's:
    /// virtual on a simulated one.
    fn event_wait_timeout(&self, event: EventHandle, timeout: Duration) -> Result<bool>;

    /// Nanoseconds from `start` to `end`, both made with timing and both fired. May be negative.
    fn event_elapsed_ns(&self, start: EventHandle, end: EventHandle) -> Result<i64>;

    // ---- copies ----------------------------------------------------------------------------

    /// Copy, and return when the bytes are there. Not ordered with non-blocking streams.
    ///
    /// Safety: both places hold `bytes` valid bytes, the target is written by nobody else, and
    /// neither overlaps the other.
    unsafe fn copy(&self, copy: CopyOp) -> Result<()>;

    /// Copy in stream order.
    ///
    /// Safety: as for [`copy`](Self::copy), until the copy is done; the host end is not freed, and
    /// if it is the source not written, if it is the target not touched, before then.
    unsafe fn copy_async(&self, copy: CopyOp, stream: StreamHandle) -> Result<()>;

    /// Copy rows, and return when the bytes are there.
    ///
    /// Safety: as for [`copy`](Self::copy), for every row.
    unsafe fn copy_2d(&self, copy: Copy2d) -> Result<()>;

    /// Copy rows in stream order.
    ///
    /// Safety: as for [`copy_async`](Self::copy_async), for every row.
    unsafe fn copy_2d_async(&self, copy: Copy2d, stream: StreamHandle) -> Result<()>;

    /// Many copies as one submission, in no order among each other.
    /// [`NotSupported`](crate::ErrorKind::NotSupported) where `info().batch_copy` is false.
    ///
    /// Safety: as for [`copy_async`](Self::copy_async), for every copy; no target overlaps another
    /// place of the batch.
    unsafe fn copy_batch(&self, copies: &[CopyOp], stream: StreamHandle) -> Result<()>;

    /// Set device bytes to `value` in stream order.
    ///
    /// Safety: `bytes` valid device bytes at `ptr`, used by nobody else until it is done.
    unsafe fn memset_async(
        &self,
        ptr: DevicePtr,
        value: u8,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<()>;

    // ---- kernels ---------------------------------------------------------------------------

    /// Load a PTX module.
    fn module_load(&self, ptx: &str) -> Result<ModuleHandle>;

    /// Unload a module.
    ///
    /// Safety: nothing of the module runs or is used again.
    unsafe fn module_unload(&self, module: ModuleHandle) -> Result<()>;

    /// A kernel of the module, by name.
    fn module_function(&self, module: ModuleHandle, name: &str) -> Result<FunctionHandle>;

    /// Run a kernel in stream order.
    ///
    /// Safety: the arguments fit the kernel's parameters, and all memory that the kernel touches
    /// is valid, and used by nobody else in a conflicting way, until it is done.
    unsafe fn launch(
        &self,
        function: FunctionHandle,
        shape: LaunchShape,
        args: &[KernelArg],
        stream: StreamHandle,
    ) -> Result<()>;
}
