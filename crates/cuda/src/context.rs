//! The context of a device: the primary one, created at first use, or one that another library made. It is made
//! current on the calling thread.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::{CUcontext, CUctx_st, CUdevice};
use pinlane_driver::Result;

use crate::fork;
use crate::library::{Library, call};
use crate::lock::lock;

/// The context that a device's calls run in.
pub(crate) enum DeviceContext {
    Primary(PrimaryContext),
    /// Of another library, which keeps it alive.
    Foreign {
        library: Arc<Library>,
        context: ForeignContext,
    },
}

/// The handle of another library's context.
pub(crate) struct ForeignContext(CUcontext);

// SAFETY: a context may be used by any thread, one at a time or several at once.
unsafe impl Send for ForeignContext {}
// SAFETY: as above.
unsafe impl Sync for ForeignContext {}

impl DeviceContext {
    /// The primary context of `device`, which is not created yet.
    pub(crate) fn primary(library: Arc<Library>, device: CUdevice) -> Self {
        Self::Primary(PrimaryContext::new(library, device))
    }

    /// A context of another library.
    pub(crate) fn foreign(library: Arc<Library>, context: CUcontext) -> Self {
        let context = ForeignContext(context);
        Self::Foreign { library, context }
    }

    /// Makes the context current on this thread until the guard is dropped.
    pub(crate) fn enter(&self) -> Result<CurrentContext<'_>> {
        fork::check("cuCtxSetCurrent")?;
        match self {
            Self::Primary(primary) => make_current(&primary.library, primary.retained()?),
            Self::Foreign { library, context } => make_current(library, context.0),
        }
    }
}

/// Makes a context current that lives at least as long as the result.
fn make_current(library: &Library, context: CUcontext) -> Result<CurrentContext<'_>> {
    let mut found = ptr::null_mut();
    // Checked each time, since other code may have changed it. This takes nanoseconds.
    // SAFETY: `found` outlives the call.
    unsafe { call!(library, cuCtxGetCurrent(&mut found)) }?;
    if found == context {
        return Ok(CurrentContext { restore: None });
    }
    // SAFETY: the context is alive.
    unsafe { call!(library, cuCtxSetCurrent(context)) }?;
    // A thread without a context keeps ours, which makes its next call cheaper.
    let restore = (!found.is_null()).then_some((library, found));
    Ok(CurrentContext { restore })
}

/// A device's primary context, shared with all other users of the device in the process.
pub(crate) struct PrimaryContext {
    library: Arc<Library>,
    device: CUdevice,
    /// Null until retained.
    context: AtomicPtr<CUctx_st>,
    /// Held while retaining, so that the context is retained once.
    retaining: Mutex<()>,
}

impl PrimaryContext {
    /// The context of `device`, which is not created yet.
    fn new(library: Arc<Library>, device: CUdevice) -> Self {
        Self {
            library,
            device,
            context: AtomicPtr::new(ptr::null_mut()),
            retaining: Mutex::new(()),
        }
    }

    /// The context. The first call retains it.
    fn retained(&self) -> Result<CUcontext> {
        let context = self.context.load(Ordering::Acquire);
        if !context.is_null() {
            return Ok(context);
        }
        let _retaining = lock(&self.retaining);
        let mut context = self.context.load(Ordering::Acquire);
        if context.is_null() {
            let device = self.device;
            // SAFETY: the device came from cuDeviceGet, and `context` outlives the call.
            unsafe { call!(self.library, cuDevicePrimaryCtxRetain(&mut context, device)) }?;
            self.context.store(context, Ordering::Release);
        }
        Ok(context)
    }
}

impl Drop for PrimaryContext {
    fn drop(&mut self) {
        // A forked child has no context of its own to release.
        if self.context.get_mut().is_null() || fork::is_child() {
            return;
        }
        // An error is ignored: the driver may have shut down first.
        // SAFETY: undoes the one retain, and no call can enter again.
        unsafe { (self.library.calls.cuDevicePrimaryCtxRelease_v2)(self.device) };
    }
}

/// Keeps the device's context current on this thread.
pub(crate) struct CurrentContext<'a> {
    /// The context of another user that was current before.
    restore: Option<(&'a Library, CUcontext)>,
}

impl Drop for CurrentContext<'_> {
    fn drop(&mut self) {
        if let Some((library, context)) = self.restore {
            // Fails only if its owner has destroyed the context; then nothing is left to restore.
            // SAFETY: the driver validates the handle.
            unsafe { (library.calls.cuCtxSetCurrent)(context) };
        }
    }
}
