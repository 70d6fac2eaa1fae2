//! Launching kernels in stream order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pinlane_driver::LaunchShape;

use super::{Kernel, Params};
use crate::fence::DeviceFence;
use crate::memory::Touch;
use crate::stream::SubmitError;
use crate::{Error, Result, Stream};

impl Stream {
    /// Launches a kernel in stream order, behind every earlier use of the memory passed to it.
    ///
    /// # Safety
    /// The kernel's parameters are `A`. It accesses only the slices passed to it, as [`In`](super::In) and
    /// [`Out`](super::Out) declare, and memory behind raw addresses, which must stay valid and unused by
    /// anything else until the kernel is done.
    pub unsafe fn launch<A: Params>(
        &self,
        kernel: &Kernel<A>,
        shape: LaunchShape,
        values: A::Values<'_>,
    ) -> Result<()> {
        // SAFETY: the caller vouches for parameters and accesses.
        unsafe { self.launch_touching(kernel, shape, &values, &[])? };
        Ok(())
    }

    /// Like [`launch`](Self::launch), for a kernel that also accesses the device memory in `beside`,
    /// through addresses that it reads.
    ///
    /// # Safety
    /// As for [`launch`](Self::launch), with `beside` among the slices.
    pub(crate) unsafe fn launch_touching<'a, A: Params>(
        &self,
        kernel: &Kernel<A>,
        shape: LaunchShape,
        values: &A::Values<'a>,
        beside: &[Touch<'a>],
    ) -> std::result::Result<DeviceFence, SubmitError> {
        let loaded = &*kernel.module.inner;
        if !Arc::ptr_eq(&loaded.shared, self.shared()) {
            return Err(SubmitError::Refused(Error::WrongDevice));
        }
        let (args, mut touches) = A::collect(values);
        touches.0.extend_from_slice(beside);
        // If the driver panics, there is no way to tell whether the kernel runs.
        let unmarked = StrandModuleOnUnwind(&loaded.stranded);
        let submitted = self.submit_and_enter(
            &touches.0,
            // SAFETY: the caller vouches for parameters and accesses; the ledgers keep the memory, and
            // `launches` keeps the code.
            |driver, stream| unsafe { driver.launch(kernel.handle, shape, &args, stream) },
            |fence| loaded.launched(self.id(), fence.clone()),
        );
        std::mem::forget(unmarked);
        if let Err(SubmitError::Stranded(_)) = &submitted {
            loaded.stranded.store(true, Ordering::Relaxed);
        }
        submitted
    }
}

/// Marks a module as stranded when dropped, which only happens during a panic.
struct StrandModuleOnUnwind<'a>(&'a AtomicBool);

impl Drop for StrandModuleOnUnwind<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
