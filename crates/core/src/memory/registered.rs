//! Ordinary memory, page-locked in place.

use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::NonNull;
use std::sync::Arc;

use pinlane_driver::{Driver, HostPtr, RegisterFlags};

use super::budget::{Reservation, explain};
use super::buffer_macros::slice_like;
use super::{PinnedSlice, ReadOnly, StableMemory, StableMemoryMut, page_bytes};
use crate::device_core::DeviceCore;
use crate::{Device, RegisterError};

/// Memory that was page-locked in place. [`into_inner`](Self::into_inner) returns it.
///
/// ```
/// # fn main() -> pinlane::Result<()> {
/// # let device = pinlane::Device::sim("pcie3-x16")?;
/// let registered = device.register(vec![1u32, 2, 3])?;
/// assert_eq!(registered[1], 2);
/// let vec: Vec<u32> = registered.into_inner()?;
/// # assert_eq!(vec, [1, 2, 3]);
/// # Ok(())
/// # }
/// ```
pub struct Registered<M: StableMemory> {
    /// Always initialised; dropped by hand after it is unregistered. `MaybeUninit`, because moving a `Box`
    /// asserts unique access to its memory, which would invalidate `start`.
    memory: MaybeUninit<M>,
    /// Derived once, at registration.
    start: NonNull<M::Element>,
    len: usize,
    core: Arc<DeviceCore>,
    portable: bool,
    /// Released once the memory is no longer registered.
    reservation: Option<Reservation>,
    element: PhantomData<M::Element>,
}

// SAFETY: it owns `memory`, which is `Send`, and a pointer into it.
unsafe impl<M: StableMemory> Send for Registered<M> {}
// SAFETY: shared access only reads elements, which are plain data.
unsafe impl<M: StableMemory + Sync> Sync for Registered<M> where M::Element: Sync {}

impl Device {
    /// Page-locks `memory` in place. On failure the error returns the memory.
    pub fn register<M: StableMemoryMut>(
        &self,
        memory: M,
    ) -> Result<Registered<M>, RegisterError<M>> {
        let mut memory = MaybeUninit::new(memory);
        // SAFETY: just initialised.
        let (start, len) = unsafe { memory.assume_init_mut() }.parts_mut();
        self.register_parts(memory, start, len, RegisterFlags::default())
    }

    /// Page-locks `memory` in place: [`register`](Self::register) by the name other libraries use. To copy
    /// into fresh pinned memory instead, see [`ToPinned`](crate::ToPinned).
    ///
    /// ```
    /// # fn main() -> pinlane::Result<()> {
    /// # let device = pinlane::Device::sim("pcie3-x16")?;
    /// let pinned = device.pin(vec![1u32, 2, 3])?;
    /// let vec: Vec<u32> = pinned.into_inner()?;
    /// # assert_eq!(vec, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn pin<M: StableMemoryMut>(&self, memory: M) -> Result<Registered<M>, RegisterError<M>> {
        self.register(memory)
    }

    /// Page-locks `memory` in place for reading only. It can be the source of transfers, not the target.
    pub fn register_read_only<M: StableMemory>(
        &self,
        memory: M,
    ) -> Result<Registered<ReadOnly<M>>, RegisterError<ReadOnly<M>>> {
        // Devices without read-only registration register the memory as writable.
        let read_only = memory.is_read_only() || self.info().can_register_read_only;
        let flags = RegisterFlags {
            read_only,
            ..RegisterFlags::default()
        };
        let memory = MaybeUninit::new(ReadOnly(memory));
        // SAFETY: just initialised.
        let (start, len) = unsafe { memory.assume_init_ref() }.parts();
        self.register_parts(memory, start.cast_mut(), len, flags)
    }

    /// Registers initialised `memory`, which must not move after `start` was derived from it.
    fn register_parts<M: StableMemory>(
        &self,
        memory: MaybeUninit<M>,
        start: *mut M::Element,
        len: usize,
        flags: RegisterFlags,
    ) -> Result<Registered<M>, RegisterError<M>> {
        let start = NonNull::new(start).unwrap_or(NonNull::dangling());
        let bytes = len * size_of::<M::Element>();
        let reservation = match self.lock_pages(start.cast(), bytes, flags) {
            Ok(reservation) => reservation,
            Err(error) => {
                return Err(RegisterError {
                    error,
                    // SAFETY: the caller guarantees that it is initialised.
                    memory: unsafe { memory.assume_init() },
                });
            }
        };
        self.shared.core.counters.registered_bytes.add(bytes);
        Ok(Registered {
            memory,
            start,
            len,
            core: Arc::clone(&self.shared.core),
            portable: flags.portable,
            reservation,
            element: PhantomData,
        })
    }

    /// Page-locks memory. It must stay mapped at `start` until it is unregistered: a [`Registered`] owns
    /// it, or a scope borrows it. Zero bytes register and reserve nothing.
    pub(crate) fn lock_pages(
        &self,
        start: HostPtr,
        bytes: usize,
        flags: RegisterFlags,
    ) -> crate::Result<Option<Reservation>> {
        if bytes == 0 {
            return Ok(None);
        }
        let locked_bytes = spanned_pages(start.addr().get(), bytes);
        let reservation = self.budget().reserve(locked_bytes)?;
        // SAFETY: the memory is mapped and stays so, by the contract above.
        let result = unsafe { self.driver().host_register(start, bytes, flags) };
        result.map_err(|error| explain(error, locked_bytes, self.budget()))?;
        Ok(Some(reservation))
    }
}

/// Total size of the pages the range touches, since whole pages are locked.
fn spanned_pages(address: usize, bytes: usize) -> u64 {
    let page_bytes = page_bytes() as u64;
    let (start, end) = (address as u64, address as u64 + bytes as u64);
    end.next_multiple_of(page_bytes) - start / page_bytes * page_bytes
}

impl<M: StableMemory> Registered<M> {
    /// Unregisters the memory and returns it. On failure it stays registered.
    pub fn into_inner(self) -> Result<M, RegisterError<Self>> {
        if self.bytes() > 0 {
            // SAFETY: a transfer in flight would own the registration, so nothing uses it.
            if let Err(error) = unsafe { self.core.driver.host_unregister(self.base()) } {
                let error = error.into();
                return Err(RegisterError {
                    error,
                    memory: self,
                });
            }
        }
        let mut this = ManuallyDrop::new(self);
        this.core.counters.registered_bytes.subtract(this.bytes());
        drop(this.reservation.take());
        // SAFETY: `this` is never used again; `core` and `memory` are moved out once.
        unsafe {
            std::ptr::drop_in_place(&mut this.core);
            Ok(this.memory.assume_init_read())
        }
    }

    fn raw(&self) -> PinnedSlice<'_, M::Element> {
        PinnedSlice::new(self.start, self.len, &self.core, self.portable)
    }

    fn base(&self) -> HostPtr {
        self.start.cast()
    }

    fn bytes(&self) -> usize {
        self.len * size_of::<M::Element>()
    }
}

slice_like!(
    Registered<M>, M::Element,
    [M: StableMemory], [M: StableMemoryMut], [M: StableMemory], [M: StableMemoryMut]
);

impl<M: StableMemory> Drop for Registered<M> {
    fn drop(&mut self) {
        let (bytes, base) = (self.bytes(), self.base());
        let unregister = |driver: &dyn Driver| {
            // SAFETY: a transfer in flight would own the registration or have parked it.
            unsafe { driver.host_unregister(base) }
        };
        if bytes == 0 || self.core.give_back(unregister) {
            self.core.counters.registered_bytes.subtract(bytes);
            // SAFETY: initialised, and dropped only here.
            unsafe { self.memory.assume_init_drop() };
        } else if let Some(reservation) = self.reservation.take() {
            // The pages are still locked at this address, so the memory stays, and counts.
            reservation.keep();
        }
    }
}
