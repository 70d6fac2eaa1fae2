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

    /// Runs before work goes onto a stream. `driver` is the one below, so its calls are not intercepted.
    fn before_work(&self, _driver: &dyn Driver, _stream: StreamHandle) {}

    /// Runs when work has gone onto a stream.
    fn after_work(&self, _driver: &dyn Driver, _stream: StreamHandle, _work: StreamWork<'_>) {}

    /// Runs when the driver has returned the handle of a kernel.
    fn found_kernel(&self, _function: FunctionHandle, _name: &str) {}
}

// SAFETY: the hook behind the `Arc` keeps the contract.
unsafe impl<H: Hook + ?Sized> Hook for Arc<H> {
    fn before(&self, call: Call) -> Result<()> {
        (**self).before(call)
    }

    fn after(&self, call: Call) {
        (**self).after(call);
    }

    fn before_work(&self, driver: &dyn Driver, stream: StreamHandle) {
        (**self).before_work(driver, stream);
    }

    fn after_work(&self, driver: &dyn Driver, stream: StreamHandle, work: StreamWork<'_>) {
        (**self).after_work(driver, stream, work);
    }

    fn found_kernel(&self, function: FunctionHandle, name: &str) {
        (**self).found_kernel(function, name);
    }
}

/// Work that a call puts onto a stream.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum StreamWork<'a> {
    /// Copies of contiguous bytes.
    Copies(&'a [CopyOp]),
    /// A copy of rows.
    Rows(&'a Copy2d),
    /// Setting device memory to a value.
    Memset {
        /// Number of bytes.
        bytes: usize,
    },
    /// A kernel.
    Kernel(FunctionHandle),
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

    /// A call that puts work onto a stream.
    fn work(
        &self,
        call: Call,
        stream: StreamHandle,
        work: StreamWork<'_>,
        submit: impl FnOnce(&dyn Driver) -> Result<()>,
    ) -> Result<()> {
        self.hook.before(call)?;
        self.hook.before_work(&*self.driver, stream);
        let result = submit(&*self.driver);
        if result.is_ok() {
            self.hook.after_work(&*self.driver, stream, work);
        }
        self.hook.after(call);
        result
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

        impl Call {
            /// The name of the method.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$call => stringify!($name),)* }
            }
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

            fn module_function(&self, module: ModuleHandle, name: &str) -> Result<FunctionHandle> {
                self.hook.before(Call::ModuleFunction)?;
                let function = self.driver.module_function(module, name);
                if let Ok(function) = function {
                    self.hook.found_kernel(function, name);
                }
                self.hook.after(Call::ModuleFunction);
                function
            }

            unsafe fn copy_async(&self, copy: CopyOp, stream: StreamHandle) -> Result<()> {
                self.work(Call::CopyAsync, stream, StreamWork::Copies(&[copy]), |driver| {
                    // SAFETY: the caller keeps the same contract, and the arguments are unchanged.
                    unsafe { driver.copy_async(copy, stream) }
                })
            }

            unsafe fn copy_2d_async(&self, copy: Copy2d, stream: StreamHandle) -> Result<()> {
                self.work(Call::Copy2dAsync, stream, StreamWork::Rows(&copy), |driver| {
                    // SAFETY: as above.
                    unsafe { driver.copy_2d_async(copy, stream) }
                })
            }

            unsafe fn copy_batch(&self, copies: &[CopyOp], stream: StreamHandle) -> Result<()> {
                self.work(Call::CopyBatch, stream, StreamWork::Copies(copies), |driver| {
                    // SAFETY: as above.
                    unsafe { driver.copy_batch(copies, stream) }
                })
            }

            unsafe fn memset_async(
                &self,
                ptr: DevicePtr,
                value: u8,
                bytes: usize,
                stream: StreamHandle,
            ) -> Result<()> {
                self.work(Call::Memset, stream, StreamWork::Memset { bytes }, |driver| {
                    // SAFETY: as above.
                    unsafe { driver.memset_async(ptr, value, bytes, stream) }
                })
            }

            unsafe fn launch(
                &self,
                function: FunctionHandle,
                shape: LaunchShape,
                args: &[KernelArg],
                stream: StreamHandle,
            ) -> Result<()> {
                self.work(Call::Launch, stream, StreamWork::Kernel(function), |driver| {
                    // SAFETY: as above.
                    unsafe { driver.launch(function, shape, args, stream) }
                })
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
    // Written out above.
    (@method $call:ident, written, $name:ident, ($($arg:ident: $type:ty),*), $result:ty) => {};
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
    CopyAsync => #[written] fn copy_async(copy: CopyOp, stream: StreamHandle) -> ();
    Copy2d => #[unsafety] fn copy_2d(copy: Copy2d) -> ();
    Copy2dAsync => #[written] fn copy_2d_async(copy: Copy2d, stream: StreamHandle) -> ();
    CopyBatch => #[written] fn copy_batch(copies: &[CopyOp], stream: StreamHandle) -> ();
    Memset => #[written] fn memset_async(ptr: DevicePtr, value: u8, bytes: usize, stream: StreamHandle) -> ();
    ModuleLoad => fn module_load(ptx: &str) -> ModuleHandle;
    ModuleUnload => #[unsafety] fn module_unload(module: ModuleHandle) -> ();
    ModuleFunction => #[written] fn module_function(module: ModuleHandle, name: &str) -> FunctionHandle;
    Launch => #[written] fn launch(function: FunctionHandle, shape: LaunchShape, args: &[KernelArg], stream: StreamHandle) -> ();
}
