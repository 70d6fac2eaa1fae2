//! Transfers of borrowed memory, inside a closure that does not end before they do.

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
use pinlane_driver::{CopyOp, HostPtr, Place, RegisterFlags};

use crate::completed::Completed;
use crate::device::Shared;
use crate::fence::DeviceFence;
use crate::memory::{DeviceSlice, DeviceSliceMut, PinnedSlice, PinnedSliceMut, Reservation};
use crate::protocol::Fence;
use crate::submit::{AbortOnUnwind, abort_over_borrowed, settle_borrowed};
use crate::sync::lock;
use crate::transfer::{copy_unless_empty, same_len};
use crate::{Device, RegisterError, Result, Stream};

/// Where transfers of borrowed memory live. See [`Device::scope`].
pub struct Scope<'scope, 'env: 'scope> {
    device: Device,
    fences: Mutex<Fences>,
    registrations: Mutex<Vec<Registration>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// A copy of borrowed memory in flight. The scope waits for it, whether or not anyone else does. It can
/// be awaited.
pub struct ScopedTransfer<'scope, S> {
    /// Taken out when the transfer is awaited.
    memory: Option<S>,
    /// All fences of the scope, which owns them: leaking the transfer leaks nothing.
    fences: &'scope Mutex<Fences>,
    /// Which one is this transfer's, counted from the first of the scope.
    at: usize,
    /// The stream's device, which wakes the task. Weak, as a leaked transfer must not leak a device.
    shared: Weak<Shared>,
    /// Made when it is first polled.
    completed: Option<Completed>,
}

/// Borrowed memory that is page-locked until the scope ends.
struct Registration {
    start: HostPtr,
    bytes: usize,
    reservation: Reservation,
}

// SAFETY: an address that is passed to the driver only, and numbers.
unsafe impl Send for Registration {}

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
            device: self.clone(),
            fences: Mutex::default(),
            registrations: Mutex::default(),
            scope: PhantomData,
            env: PhantomData,
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&scope)));
        let settled = scope.settle();
        scope.unregister_all();
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
        self.in_flight(submitted, source, stream)
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
        self.in_flight(submitted, target, stream)
    }

    /// Page-lock borrowed memory until the scope ends. It can be the source or the target of the scope's
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
    ) -> std::result::Result<PinnedSliceMut<'scope, T>, RegisterError<&'scope mut [T]>> {
        let start = NonNull::from(&mut *memory).cast();
        match self.lock_pages(start, size_of_val(memory), RegisterFlags::default()) {
            Ok(()) => Ok(PinnedSliceMut::registered(memory, &self.device.shared.core)),
            Err(error) => Err(RegisterError { error, memory }),
        }
    }

    /// As [`register`](Self::register), for memory that transfers only read.
    pub fn register_read_only<T: Pod + Sync>(
        &'scope self,
        memory: &'scope [T],
    ) -> Result<PinnedSlice<'scope, T>> {
        let flags = RegisterFlags {
            // Devices without read-only registration take writable memory as it is.
            read_only: self.device.info().can_register_read_only,
            ..RegisterFlags::default()
        };
        self.lock_pages(NonNull::from(memory).cast(), size_of_val(memory), flags)?;
        Ok(PinnedSlice::registered(memory, &self.device.shared.core))
    }

    fn lock_pages(&self, start: HostPtr, bytes: usize, flags: RegisterFlags) -> Result<()> {
        // Room first: once the pages are locked, nothing must go wrong.
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

    /// Unregister all memory. No transfer uses it any more.
    fn unregister_all(&self) {
        let core = &self.device.shared.core;
        let guard = AbortOnUnwind;
        for registration in lock(&self.registrations).drain(..) {
            // SAFETY: registered here, once, and all transfers of the scope are done.
            let unregister = || unsafe { core.driver.host_unregister(registration.start) };
            if let Err(error) = unregister() {
                let fatal = error.is_fatal(); // a dead context keeps nothing
                core.keep_stray(error);
                if !fatal
                    && let Err(error) = unregister()
                    && !error.is_fatal()
                {
                    // The driver would take other memory at this address for page-locked.
                    abort_over_borrowed(&error.into());
                }
            }
            core.counters.registered_bytes.subtract(registration.bytes);
            drop(registration.reservation);
        }
        std::mem::forget(guard);
    }

    fn in_flight<S>(
        &'scope self,
        submitted: Result<DeviceFence>,
        memory: S,
        stream: &Stream,
    ) -> Result<ScopedTransfer<'scope, S>> {
        let fence = submitted?;
        Ok(ScopedTransfer {
            memory: Some(memory),
            fences: &self.fences,
            at: lock(&self.fences).add(fence),
            shared: Arc::downgrade(stream.shared()),
            completed: None,
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
    ///
    /// # Panics
    /// When it was awaited before.
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
    /// When it is polled again after it was ready.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<S>> {
        let this = self.get_mut();
        let fence = match this.completed {
            None => this.fence(),
            Some(_) => None,
        };
        let completed = this.completed.get_or_insert_with(|| {
            match (fence, this.shared.upgrade()) {
                (Some(fence), Some(shared)) => Completed::new(fence, shared),
                // The device is closed, and with it what would wake the task.
                (Some(fence), None) => {
                    Completed::ready(settle_borrowed(&fence).map_err(Into::into))
                }
                (None, _) => Completed::ready(Ok(())),
            }
        });
        Pin::new(completed).poll(context).map_ok(|()| {
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
