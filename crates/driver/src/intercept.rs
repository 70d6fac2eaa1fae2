//! A driver that asks a hook before each call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::*;

/// Decides about calls before they reach the driver.
///
/// # Safety
/// It may return a fatal error only if the device is dead, as [`Driver`] requires.
pub unsafe trait Hook: Send + Sync {
    /// `Ok` lets the call through. An error goes to the caller, and the driver never sees the call.
    fn before(&self, call: Call) -> Result<()>;

    /// Runs when the driver has returned from a call that was let through.
    fn after(&self, _call: Call) {}
}

/// A driver with a [`Hook`] in front of it.
pub struct Intercepted<H> {
    driver: Arc<dyn Driver>,
    hook: H,
}

impl<H: Hook> Intercepted<H> {
    /// Puts `hook` in front of `driver`.
    pub fn new(driver: Arc<dyn Driver>, hook: H) -> Self {
        Self { driver, hook }
    }

    /// The hook.
    pub fn hook(&self) -> &H {
        &self.hook
    }
}

impl<H: fmt::Debug> fmt::Debug for Intercepted<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Intercepted");
        fields.field("hook", &self.hook).finish_non_exhaustive()
    }
}

/// Defines [`Call`] and implements [`Driver`]: asks the hook, calls the driver, tells the hook.
macro_rules! intercept {
    ($($call:ident => $(#[$safety:ident])? fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        /// A call of [`Driver`].
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[allow(missing_docs)] // each is the method of the same name
        pub enum Call {
            $($call,)*
        }

        // SAFETY: the wrapped driver keeps the contract, and errors of a hook are as `Hook` requires.
        unsafe impl<H: Hook> Driver for Intercepted<H> {
            fn info(&self) -> &DeviceInfo {
                self.driver.info()
            }

            fn pin_domain(&self) -> u64 {
                self.driver.pin_domain()
            }

            fn default_stream(&self) -> StreamHandle {
                self.driver.default_stream()
            }

            $(intercept!(@method $call, $($safety)?, $name, ($($arg: $type),*), $result);)*
        }
    };
    (@method $call:ident, , $name:ident, ($($arg:ident: $type:ty),*), $result:ty) => {
        fn $name(&self, $($arg: $type),*) -> Result<$result> {
            self.hook.before(Call::$call)?;
            let result = self.driver.$name($($arg),*);
            self.hook.after(Call::$call);
            result
        }
    };
    (@method $call:ident, unsafety, $name:ident, ($($arg:ident: $type:ty),*), $result:ty) => {
        unsafe fn $name(&self, $($arg: $type),*) -> Result<$result> {
            self.hook.before(Call::$call)?;
            // SAFETY: the caller keeps the same contract, and the arguments are unchanged.
            let result = unsafe { self.driver.$name($($arg),*) };
            self.hook.after(Call::$call);
            result
        }
    };
}

intercept! {
    MemoryInfo => fn memory_info() -> MemoryInfo;
    Synchronize => fn synchronize() -> ();
    PointerKind => fn pointer_kind(address: u64) -> PointerKind;
    DeviceAlloc => fn device_alloc(bytes: usize) -> DevicePtr;
    DeviceFree => #[unsafety] fn device_free(ptr: DevicePtr) -> ();
    DeviceAllocAsync => fn device_alloc_async(bytes: usize, stream: StreamHandle) -> DevicePtr;
    DeviceFreeAsync => #[unsafety] fn device_free_async(ptr: DevicePtr, stream: StreamHandle) -> ();
    HostAlloc => fn host_alloc(bytes: usize, flags: HostFlags) -> HostPtr;
    HostFree => #[unsafety] fn host_free(ptr: HostPtr) -> ();
    HostRegister => #[unsafety] fn host_register(ptr: HostPtr, bytes: usize, flags: RegisterFlags) -> ();
    HostUnregister => #[unsafety] fn host_unregister(ptr: HostPtr) -> ();
    HostDevicePtr => fn host_device_ptr(ptr: HostPtr) -> DevicePtr;
    StreamPriorities => fn stream_priorities() -> (i32, i32);
    StreamCreate => fn stream_create(flags: StreamFlags) -> StreamHandle;
    StreamDestroy => #[unsafety] fn stream_destroy(stream: StreamHandle) -> ();
    StreamQuery => fn stream_query(stream: StreamHandle) -> bool;
    StreamIsCapturing => fn stream_is_capturing(stream: StreamHandle) -> bool;
    StreamSynchronize => fn stream_synchronize(stream: StreamHandle) -> ();
    StreamWaitEvent => fn stream_wait_event(stream: StreamHandle, event: EventHandle) -> ();
    HostCallback => fn host_callback(stream: StreamHandle, callback: HostCallback) -> ();
    EventCreate => fn event_create(flags: EventFlags) -> EventHandle;
    EventDestroy => #[unsafety] fn event_destroy(event: EventHandle) -> ();
    EventRecord => fn event_record(event: EventHandle, stream: StreamHandle) -> ();
    EventQuery => fn event_query(event: EventHandle) -> bool;
    EventSynchronize => fn event_synchronize(event: EventHandle) -> ();
    EventWaitTimeout => fn event_wait_timeout(event: EventHandle, timeout: Duration) -> bool;
    EventElapsed => fn event_elapsed_ns(start: EventHandle, end: EventHandle) -> i64;
    Copy => #[unsafety] fn copy(copy: CopyOp) -> ();
    CopyAsync => #[unsafety] fn copy_async(copy: CopyOp, stream: StreamHandle) -> ();
    Copy2d => #[unsafety] fn copy_2d(copy: Copy2d) -> ();
    Copy2dAsync => #[unsafety] fn copy_2d_async(copy: Copy2d, stream: StreamHandle) -> ();
    CopyBatch => #[unsafety] fn copy_batch(copies: &[CopyOp], stream: StreamHandle) -> ();
    Memset => #[unsafety] fn memset_async(ptr: DevicePtr, value: u8, bytes: usize, stream: StreamHandle) -> ();
    ModuleLoad => fn module_load(ptx: &str) -> ModuleHandle;
    ModuleUnload => #[unsafety] fn module_unload(module: ModuleHandle) -> ();
    ModuleFunction => fn module_function(module: ModuleHandle, name: &str) -> FunctionHandle;
    Launch => #[unsafety] fn launch(function: FunctionHandle, shape: LaunchShape, args: &[KernelArg], stream: StreamHandle) -> ();
}
