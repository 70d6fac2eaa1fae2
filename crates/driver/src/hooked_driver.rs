//! A driver that asks a hook before each call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::*;

/// Decides about calls before they reach the driver.
///
/// # Safety
/// It may return a fatal error only if the device is dead, as [`Driver`] requires.
#[allow(clippy::missing_safety_doc)] // as for `Driver`
pub unsafe trait Hook: Send + Sync {
    /// `Ok` lets the call through. An error goes to the caller, and the driver never sees the call.
    fn before(&self, call: Call) -> Result<()>;

    /// Runs when the driver has returned from a call that was let through.
    fn after(&self, _call: Call) {}

    /// Runs before work goes onto a stream. `driver` is the one below, so its calls are not intercepted.
    ///
    /// Safety: `stream` is a live stream of `driver`.
    unsafe fn before_work(&self, _driver: &dyn Driver, _stream: StreamHandle) {}

    /// Runs when work has gone onto a stream.
    ///
    /// Safety: `stream` is a live stream of `driver`.
    unsafe fn after_work(
        &self,
        _driver: &dyn Driver,
        _stream: StreamHandle,
        _work: StreamWork<'_>,
    ) {
    }

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

    unsafe fn before_work(&self, driver: &dyn Driver, stream: StreamHandle) {
        // SAFETY: the caller's.
        unsafe { (**self).before_work(driver, stream) };
    }

    unsafe fn after_work(&self, driver: &dyn Driver, stream: StreamHandle, work: StreamWork<'_>) {
        // SAFETY: the caller's.
        unsafe { (**self).after_work(driver, stream, work) };
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

    fn call<T>(&self, call: Call, make: impl FnOnce(&dyn Driver) -> Result<T>) -> Result<T> {
        self.hook.before(call)?;
        let result = make(&*self.driver);
        self.hook.after(call);
        result
    }

    /// A call that puts work onto a stream.
    ///
    /// # Safety
    /// `stream` is a live stream of the driver.
    unsafe fn work(
        &self,
        call: Call,
        stream: StreamHandle,
        work: StreamWork<'_>,
        submit: impl FnOnce(&dyn Driver) -> Result<()>,
    ) -> Result<()> {
        self.call(call, |driver| {
            // SAFETY: the caller's.
            unsafe { self.hook.before_work(driver, stream) };
            submit(driver)?;
            // SAFETY: the caller's.
            unsafe { self.hook.after_work(driver, stream, work) };
            Ok(())
        })
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
    ($($call:ident: $safety:ident $name:ident $args:tt -> $result:ty $([$($more:tt)*])?;)*) => {
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

            fn stream_kind(&self, raw: u64) -> StreamKind {
                self.driver.stream_kind(raw)
            }

            fn thread_clocks(&self) -> Option<&dyn ThreadClocks> {
                self.driver.thread_clocks()
            }

            $(intercept!(@$safety $call $name $args -> $result; $($($more)*)?);)*
        }
    };
    (@safe $call:ident $name:ident($($arg:ident: $type:ty),*) -> $result:ty;) => {
        fn $name(&self, $($arg: $type),*) -> Result<$result> {
            self.call(Call::$call, |driver| driver.$name($($arg),*))
        }
    };
    (@unsafe $call:ident $name:ident($($arg:ident: $type:ty),*) -> $result:ty; kernel $kernel:ident) => {
        unsafe fn $name(&self, $($arg: $type),*) -> Result<$result> {
            self.call(Call::$call, |driver| {
                // SAFETY: the caller keeps the same contract, and the arguments are unchanged.
                let function = unsafe { driver.$name($($arg),*) }?;
                self.hook.found_kernel(function, $kernel);
                Ok(function)
            })
        }
    };
    (@unsafe $call:ident $name:ident($($arg:ident: $type:ty),*) -> $result:ty;) => {
        unsafe fn $name(&self, $($arg: $type),*) -> Result<$result> {
            // SAFETY: the caller keeps the same contract, and the arguments are unchanged.
            self.call(Call::$call, |driver| unsafe { driver.$name($($arg),*) })
        }
    };
    (@unsafe $call:ident $name:ident($($arg:ident: $type:ty),*) -> $result:ty; $stream:ident $work:expr) => {
        unsafe fn $name(&self, $($arg: $type),*) -> Result<$result> {
            // SAFETY: the caller keeps the same contract, and the arguments are unchanged.
            unsafe { self.work(Call::$call, $stream, $work, |driver| driver.$name($($arg),*)) }
        }
    };
}

driver_calls!(intercept);
