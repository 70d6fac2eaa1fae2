//! The primary context of a device: made at first use, current on whichever thread calls.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{CUcontext, CUctx_st, CUdevice};
use pinlane_driver::Result;

use crate::fork;
use crate::library::Library;

/// A device's primary context, shared with everybody in the process who uses the device.
pub(crate) struct Primary {
    library: Arc<Library>,
    device: CUdevice,
    /// Null until it is retained.
    context: AtomicPtr<CUctx_st>,
    /// Held while retaining, so that it happens once.
    retaining: Mutex<()>,
}

impl Primary {
    /// The context of `device`. Creates nothing yet.
    pub(crate) fn new(library: Arc<Library>, device: CUdevice) -> Self {
        Self {
            library,
            device,
            context: AtomicPtr::new(ptr::null_mut()),
            retaining: Mutex::new(()),
        }
    }

    /// Makes the context current on this thread until the guard is dropped.
    pub(crate) fn enter(&self) -> Result<Current<'_>> {
        fork::check("cuCtxSetCurrent")?;
        let context = self.retained()?;
        let calls = &self.library.calls;
        let mut found = ptr::null_mut();
        // Asked each time: others in the process may have changed it. It costs nanoseconds.
        // SAFETY: `found` outlives the call.
        let code = unsafe { (calls.cuCtxGetCurrent)(&mut found) };
        self.library.check("cuCtxGetCurrent", code)?;
        if found == context {
            return Ok(Current { restore: None });
        }
        // SAFETY: the context is retained until `self` is dropped.
        let code = unsafe { (calls.cuCtxSetCurrent)(context) };
        self.library.check("cuCtxSetCurrent", code)?;
        // A thread that had none keeps ours, which makes its next call cheaper.
        let restore = (!found.is_null()).then_some((&*self.library, found));
        Ok(Current { restore })
    }

    /// The context, retained by the first call.
    fn retained(&self) -> Result<CUcontext> {
        let context = self.context.load(Ordering::Acquire);
        if !context.is_null() {
            return Ok(context);
        }
        let _retaining = self
            .retaining
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut context = self.context.load(Ordering::Acquire);
        if context.is_null() {
            // SAFETY: the device came from cuDeviceGet, and `context` outlives the call.
            let code =
                unsafe { (self.library.calls.cuDevicePrimaryCtxRetain)(&mut context, self.device) };
            self.library.check("cuDevicePrimaryCtxRetain", code)?;
            self.context.store(context, Ordering::Release);
        }
        Ok(context)
    }
}

impl Drop for Primary {
    fn drop(&mut self) {
        // A forked child has no context of its own to release.
        if self.context.get_mut().is_null() || fork::is_child() {
            return;
        }
        // An error here has nobody to go to: the driver may have shut down before us.
        // SAFETY: undoes the one retain; nobody can enter any more.
        unsafe { (self.library.calls.cuDevicePrimaryCtxRelease_v2)(self.device) };
    }
}

/// While it lives, the device's context is current on this thread.
pub(crate) struct Current<'a> {
    /// Another user's context, which was current before.
    restore: Option<(&'a Library, CUcontext)>,
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        if let Some((library, context)) = self.restore {
            // A context that its owner has destroyed meanwhile is refused; nothing to undo then.
            // SAFETY: takes a handle, which the driver checks.
            unsafe { (library.calls.cuCtxSetCurrent)(context) };
        }
    }
}
