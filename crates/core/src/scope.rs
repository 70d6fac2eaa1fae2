//! Transfers of borrowed memory, inside a closure that outlives them.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll};

use bytemuck::Pod;
use pinlane_driver::{HostPtr, RegisterFlags};

use crate::completion_future::Completed;
use crate::device::Shared;
use crate::driver_copy::{Direction, enqueue, same_len};
use crate::fence::DeviceFence;
use crate::memory::{DeviceSlice, DeviceSliceMut, PinnedSlice, PinnedSliceMut, Reservation};
use crate::submit::{abort_on_unwind, abort_over_borrowed, settle_borrowed};
use crate::sync::lock;
use crate::transfer_protocol::Fence;
use crate::{Device, RegisterError, Result, Stream};

/// A scope for transfers of borrowed memory. See [`Device::scope`].
pub struct Scope<'scope, 'env: 'scope> {
    device: Device,
    fences: Mutex<Fences>,
    registrations: Mutex<Vec<Registration>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// A copy of borrowed memory in flight. The scope always waits for it; it can also be awaited.
pub struct ScopedTransfer<'scope, S> {
    /// Taken when the transfer is awaited.
    memory: Option<S>,
    /// All fences of the scope, which owns them: leaking the transfer leaks nothing.
    fences: &'scope Mutex<Fences>,
    /// Index of this transfer's fence, counted from the first in the scope.
    at: usize,
    /// The stream's device, which wakes the task. Weak, because a leaked transfer must not leak a device.
    shared: Weak<Shared>,
    /// Created on the first poll.
    completed: Option<Completed>,
}

/// Borrowed memory that is page-locked until the scope ends.
struct Registration {
    start: HostPtr,
    bytes: usize,
    reservation: Reservation,
}

// SAFETY: it holds numbers and an address that is only passed to the driver.
unsafe impl Send for Registration {}

/// Fences of a scope in submission order. Those that have fired are dropped now and then, so a long scope
/// holds no more events than it has transfers in flight.
#[derive(Default)]
struct Fences {
    flying: VecDeque<DeviceFence>,
    /// Number of transfers before the first in `flying`.
    landed: usize,
    /// Number of fences at which to look for fired ones.
    tidy_at: usize,
}

/// With fewer fences, removing fired ones does not pay off.
const TIDY_AT_LEAST: usize = 64;

impl Fences {
    /// Adds a fence and returns its number.
    fn add(&mut self, fence: DeviceFence) -> usize {
        let number = self.landed + self.flying.len();
        // Before any driver call: if the driver panics below, the scope still waits for this fence.
        self.flying.push_back(fence);
        if self.flying.len() > self.tidy_at.max(TIDY_AT_LEAST) {
            // A fence whose query fails is waited for at the end.
            let is_done = |fence: &DeviceFence| {
                fence.reach();
                fence.is_done()
            };
            while matches!(self.flying.front().map(is_done), Some(Ok(true))) {
                self.flying.pop_front();
                self.landed += 1;
            }
            self.tidy_at = 2 * self.flying.len();
        }
        number
    }

    /// Returns `None` if the transfer is known to be done.
    fn of(&self, number: usize) -> Option<&DeviceFence> {
        self.flying.get(number.checked_sub(self.landed)?)
    }
}

impl Device {
    /// Runs `work`, which may lend pinned memory to transfers, and returns once all of them are done, even
    /// if `work` panics or leaks them.
    ///
    /// Returns the first error of a transfer that was not waited for, otherwise the result of `work`.
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
            device: self.clone(),
            fences: Mutex::default(),
            registrations: Mutex::default(),
            scope: PhantomData,
            env: PhantomData,
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&scope)));
        // Unwinding would return memory that is in use.
        let settled = abort_on_unwind(|| {
            let settled = scope.settle();
            scope.unregister_all();
            settled
        });
        match (outcome, settled) {
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
    /// Copies borrowed memory to the device, asynchronously.
    pub fn upload<'a, T: Pod>(
        &'scope self,
        stream: &Stream,
        source: impl Into<PinnedSlice<'scope, T>>,
        target: impl Into<DeviceSliceMut<'a, T>>,
    ) -> Result<ScopedTransfer<'scope, PinnedSlice<'scope, T>>> {
        let (source, target) = (source.into(), target.into());
        same_len(source.len(), target.len())?;
        source.pinned_for().check_usable_by(&stream.shared().core)?;
        let bytes = source.len() * size_of::<T>();
        let copy = Direction::Upload.copy(source.start().as_ptr(), target.device_ptr(), bytes);
        // SAFETY: both sides hold that many bytes; the source is borrowed for the scope, which does not
        // end before the fence has fired; the target's ledger keeps the target.
        let fence = stream.submit_borrowed(&[target.touch()], unsafe { enqueue(copy) })?;
        Ok(self.in_flight(fence, source, stream))
    }

    /// Copies device memory into borrowed memory, asynchronously.
    pub fn download<'a, T: Pod>(
        &'scope self,
        stream: &Stream,
        source: impl Into<DeviceSlice<'a, T>>,
        target: impl Into<PinnedSliceMut<'scope, T>>,
    ) -> Result<ScopedTransfer<'scope, PinnedSliceMut<'scope, T>>> {
        let (source, mut target) = (source.into(), target.into());
        same_len(source.len(), target.len())?;
        target.pinned_for().check_usable_by(&stream.shared().core)?;
        let bytes = source.len() * size_of::<T>();
        let copy = Direction::Download.copy(target.start().as_ptr(), source.device_ptr(), bytes);
        // SAFETY: as in `upload`; the target is borrowed exclusively for the scope.
        let fence = stream.submit_borrowed(&[source.touch()], unsafe { enqueue(copy) })?;
        Ok(self.in_flight(fence, target, stream))
    }

    /// Page-locks borrowed memory until the scope ends, for use as source or target of the scope's
    /// transfers.
    ///
    /// ```
    /// # fn main() -> pinlane::Result<()> {
    /// # let device = pinlane::Device::sim("pcie3-x16")?;
    /// # let stream = device.stream()?;
    /// # let mut on_device = device.alloc::<u32>(1000)?;
    /// # stream.copy_to_device(&[7; 1000], &mut on_device)?;
    /// let mut numbers = vec![0u32; 1000];
    /// device.scope(|scope| {
    ///     let pinned = scope.register(&mut numbers)?;
    ///     scope.download(&stream, &on_device, pinned)?;
    ///     Ok(())
    /// })?; // copied and unregistered here
    /// assert_eq!(numbers[999], 7);
    /// # Ok(())
    /// # }
    /// ```
    pub fn register<T: Pod + Send>(
        &'scope self,
        memory: &'scope mut [T],
    ) -> Result<PinnedSliceMut<'scope, T>, RegisterError<&'scope mut [T]>> {
        let start = NonNull::from(&mut *memory).cast();
        match self.lock_pages(start, size_of_val(memory), RegisterFlags::default()) {
            Ok(()) => Ok(PinnedSliceMut::registered(memory, &self.device.shared.core)),
            Err(error) => Err(RegisterError { error, memory }),
        }
    }

    /// Like [`register`](Self::register), for memory that transfers only read.
    pub fn register_read_only<T: Pod + Sync>(
        &'scope self,
        memory: &'scope [T],
    ) -> Result<PinnedSlice<'scope, T>> {
        let flags = RegisterFlags {
            // Devices without read-only registration register the memory as writable.
            read_only: self.device.info().can_register_read_only,
            ..RegisterFlags::default()
        };
        self.lock_pages(NonNull::from(memory).cast(), size_of_val(memory), flags)?;
        Ok(PinnedSlice::registered(memory, &self.device.shared.core))
    }

    fn lock_pages(&self, start: HostPtr, bytes: usize, flags: RegisterFlags) -> Result<()> {
        // Reserve capacity first: nothing may fail once the pages are locked.
        let mut registrations = lock(&self.registrations);
        registrations.reserve(1);
        if let Some(reservation) = self.device.lock_pages(start, bytes, flags)? {
            let core = &self.device.shared.core;
            core.counters.registered_bytes.add(bytes);
            registrations.push(Registration {
                start,
                bytes,
                reservation,
            });
        }
        Ok(())
    }

    /// Unregisters all memory. All transfers that used it are done.
    fn unregister_all(&self) {
        let core = &self.device.shared.core;
        for registration in lock(&self.registrations).drain(..) {
            // SAFETY: registered here, once, and all transfers of the scope are done.
            let unregister = || unsafe { core.driver.host_unregister(registration.start) };
            if let Err(error) = unregister() {
                let fatal = error.is_fatal(); // a dead context keeps nothing locked
                core.keep_stray(error);
                if !fatal
                    && let Err(error) = unregister()
                    && !error.is_fatal()
                {
                    // The driver would treat whatever is later mapped at this address as page-locked.
                    abort_over_borrowed(&error.into());
                }
            }
            core.counters.registered_bytes.subtract(registration.bytes);
            drop(registration.reservation);
        }
    }

    fn in_flight<S>(
        &'scope self,
        fence: DeviceFence,
        memory: S,
        stream: &Stream,
    ) -> ScopedTransfer<'scope, S> {
        ScopedTransfer {
            memory: Some(memory),
            fences: &self.fences,
            at: lock(&self.fences).add(fence),
            shared: Arc::downgrade(stream.shared()),
            completed: None,
        }
    }

    /// Waits for all transfers, then returns the first error.
    fn settle(&self) -> pinlane_driver::Result<()> {
        let fences = lock(&self.fences);
        let mut first = Ok(());
        for fence in &fences.flying {
            match (settle_borrowed(fence), &first) {
                (Ok(()), _) => {}
                (Err(error), Ok(())) => first = Err(error),
                (Err(error), Err(_)) => fence.note(error),
            }
        }
        first
    }
}

impl<S> ScopedTransfer<'_, S> {
    /// Waits until the copy is done and returns the borrowed memory.
    ///
    /// # Panics
    /// If the transfer was polled before and returned the memory.
    pub fn wait(self) -> Result<S> {
        if let Some(fence) = self.fence() {
            settle_borrowed(&fence)?;
        }
        Ok(self.memory.expect("the transfer was awaited before"))
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

impl<S: Unpin> Future for ScopedTransfer<'_, S> {
    type Output = Result<S>;

    /// # Panics
    /// If polled again after it returned `Ready`.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<S>> {
        let this = self.get_mut();
        let completed = this.completed.take();
        let completed = completed.unwrap_or_else(|| match (this.fence(), this.shared.upgrade()) {
            (None, _) => Completed::ready(Ok(())),
            (Some(fence), Some(shared)) => Completed::new(fence, shared),
            // The device is closed, so nothing would wake the task.
            (Some(fence), None) => Completed::ready(settle_borrowed(&fence).map_err(Into::into)),
        });
        let completed = Pin::new(this.completed.insert(completed));
        completed.poll(context).map_ok(|()| {
            let memory = this.memory.take();
            memory.expect("polled again after it was ready")
        })
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
