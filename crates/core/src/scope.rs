//! Transfers of borrowed memory, inside a closure that does not end before they do.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;

use bytemuck::Pod;
use pinlane_driver::{CopyOp, Place};

use crate::fence::DeviceFence;
use crate::memory::{DeviceSlice, DeviceSliceMut, PinnedSlice, PinnedSliceMut};
use crate::protocol::Fence;
use crate::submit::{AbortOnUnwind, settle_borrowed};
use crate::sync::lock;
use crate::transfer::{copy_unless_empty, same_len};
use crate::{Device, Result, Stream};

/// Where transfers of borrowed memory live. See [`Device::scope`].
pub struct Scope<'scope, 'env: 'scope> {
    fences: Mutex<Fences>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// A copy of borrowed memory in flight. The scope waits for it, whether or not anybody else does.
pub struct ScopedTransfer<'scope, S> {
    memory: S,
    /// All fences of the scope, which owns them: leaking the transfer leaks nothing.
    fences: &'scope Mutex<Fences>,
    /// Which one is this transfer's, counted from the first of the scope.
    at: usize,
}

/// Fences of a scope, in the order of submission. Those that have fired are let go now and then, so
/// that a long scope holds no more events than it has transfers in flight.
#[derive(Default)]
struct Fences {
    flying: VecDeque<DeviceFence>,
    /// Transfers before the first of `flying`.
    landed: usize,
    /// How many are too many to keep without a look.
    tidy_at: usize,
}

/// A few more than ever matter.
const TIDY_AT_LEAST: usize = 64;

impl Fences {
    /// Number of the transfer that is added.
    fn add(&mut self, fence: DeviceFence) -> usize {
        let number = self.landed + self.flying.len();
        // First of all: should the driver panic below, it is waited for all the same.
        self.flying.push_back(fence);
        if self.flying.len() > self.tidy_at.max(TIDY_AT_LEAST) {
            // One that cannot be asked now is asked in the end.
            while matches!(self.flying.front().map(Fence::is_done), Some(Ok(true))) {
                self.flying.pop_front();
                self.landed += 1;
            }
            self.tidy_at = 2 * self.flying.len();
        }
        number
    }

    /// `None` for one that has landed.
    fn of(&self, number: usize) -> Option<&DeviceFence> {
        self.flying.get(number.checked_sub(self.landed)?)
    }
}

impl Device {
    /// Run `work`, in which pinned memory may be lent to transfers, and return when all of them
    /// are done: also when `work` panics, or leaks what it holds.
    ///
    /// The first error of a transfer that nobody waited for is returned; otherwise what `work`
    /// returns.
    ///
    /// ```
    /// # fn main() -> pinlane::Result<()> {
    /// # let device = pinlane::Device::sim("pcie3-x16")?;
    /// let stream = device.stream()?;
    /// let pinned = device.pinned_from(&[1u8, 2, 3, 4])?;
    /// let mut target = device.alloc::<u8>(2)?;
    /// device.scope(|scope| {
    ///     scope.upload(&stream, pinned.range(1..3), &mut target)?;
    ///     Ok(())
    /// })?; // done here
    /// assert_eq!(pinned[0], 1); // and `pinned` is free again
    /// # Ok(())
    /// # }
    /// ```
    pub fn scope<'env, R>(
        &self,
        work: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        let scope = Scope {
            fences: Mutex::default(),
            scope: PhantomData,
            env: PhantomData,
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&scope)));
        match (outcome, scope.settle()) {
            (Ok(Ok(value)), Ok(())) => Ok(value),
            (Ok(Ok(_)), Err(error)) => Err(error.into()),
            (failed, settled) => {
                if let Err(error) = settled {
                    self.shared.core.keep_stray(error);
                }
                failed.unwrap_or_else(|panic| resume_unwind(panic))
            }
        }
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Copy lent memory to the device, asynchronously.
    pub fn upload<'a, T: Pod>(
        &'scope self,
        stream: &Stream,
        source: impl Into<PinnedSlice<'scope, T>>,
        target: impl Into<DeviceSliceMut<'a, T>>,
    ) -> Result<ScopedTransfer<'scope, PinnedSlice<'scope, T>>> {
        let (source, target) = (source.into(), target.into());
        same_len(source.len(), target.len())?;
        source.pinned_for().check_usable_by(&stream.shared().core)?;
        let copy = CopyOp {
            source: Place::Host(source.start().cast()),
            target: Place::Device(target.device_ptr()),
            bytes: source.len() * size_of::<T>(),
        };
        let submitted = stream.submit_borrowed(&[target.touch()], |driver, stream| {
            // SAFETY: both ends hold that many bytes; the source is borrowed for the scope, which
            // does not end before the fence has fired; the target is kept by its books.
            unsafe { copy_unless_empty(driver, copy, stream) }
        });
        self.in_flight(submitted, source)
    }

    /// Copy device memory into lent memory, asynchronously.
    pub fn download<'a, T: Pod>(
        &'scope self,
        stream: &Stream,
        source: impl Into<DeviceSlice<'a, T>>,
        target: impl Into<PinnedSliceMut<'scope, T>>,
    ) -> Result<ScopedTransfer<'scope, PinnedSliceMut<'scope, T>>> {
        let (source, mut target) = (source.into(), target.into());
        same_len(source.len(), target.len())?;
        target.pinned_for().check_usable_by(&stream.shared().core)?;
        let copy = CopyOp {
            source: Place::Device(source.device_ptr()),
            target: Place::Host(target.start().cast()),
            bytes: source.len() * size_of::<T>(),
        };
        let submitted = stream.submit_borrowed(&[source.touch()], |driver, stream| {
            // SAFETY: as in `upload`; the target is borrowed exclusively for the scope.
            unsafe { copy_unless_empty(driver, copy, stream) }
        });
        self.in_flight(submitted, target)
    }

    fn in_flight<S>(
        &'scope self,
        submitted: Result<DeviceFence>,
        memory: S,
    ) -> Result<ScopedTransfer<'scope, S>> {
        let fence = submitted?;
        let mut fences = lock(&self.fences);
        Ok(ScopedTransfer {
            memory,
            fences: &self.fences,
            at: fences.add(fence),
        })
    }

    /// Wait for all of them. The first error, after all are done.
    fn settle(&self) -> pinlane_driver::Result<()> {
        let fences = lock(&self.fences);
        let mut first = Ok(());
        let guard = AbortOnUnwind; // a panic of the driver's would give memory back that is in use
        for fence in &fences.flying {
            match (settle_borrowed(fence), &first) {
                (Ok(()), _) => {}
                (Err(error), Ok(())) => first = Err(error),
                (Err(error), Err(_)) => fence.note(error),
            }
        }
        std::mem::forget(guard);
        first
    }
}

impl<S> ScopedTransfer<'_, S> {
    /// Wait until the copy is done, and give the borrowed memory back.
    pub fn wait(self) -> Result<S> {
        if let Some(fence) = self.fence() {
            settle_borrowed(&fence)?;
        }
        Ok(self.memory)
    }

    /// Whether the copy is done.
    pub fn is_done(&self) -> Result<bool> {
        Ok(self.fence().map_or(Ok(true), |fence| fence.is_done())?)
    }

    fn fence(&self) -> Option<DeviceFence> {
        let fences = lock(self.fences);
        fences.of(self.at).cloned()
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for ScopedTransfer<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedTransfer").finish_non_exhaustive()
    }
}
