//! Running kernels in stream order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pinlane_driver::LaunchShape;

use super::{Kernel, Params};
use crate::fence::DeviceFence;
use crate::memory::Touch;
use crate::stream::SubmitError;
use crate::{Error, Result, Stream};

impl Stream {
    /// Runs a kernel in stream order, behind every earlier use of the memory it is given.
    ///
    /// # Safety
    /// The kernel's parameters are `A`. It reads and writes nothing but the slices that it is
    /// given, as [`In`](super::In) and [`Out`](super::Out) say, and memory behind raw addresses,
    /// which stays valid and is used by nobody else until it is done.
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

    /// The same for a kernel that reaches device memory beside its slices, by addresses that it
    /// reads: `beside`.
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
        // Should the driver panic, nobody can tell any more whether the kernel runs.
        let unmarked = StrandModuleOnUnwind(&loaded.stranded);
        let submitted = self.submit_and_enter(
            &touches.0,
            // SAFETY: the caller vouches for parameters and accesses; the memory is kept by its
            // books, the code by `launches`.
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

/// Gives code up when it is dropped, which only a panic does.
struct StrandModuleOnUnwind<'a>(&'a AtomicBool);

impl Drop for StrandModuleOnUnwind<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
