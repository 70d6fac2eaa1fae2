//! Page-locked memory, made the fastest way that works here and given back the same way.
//!
//! The driver's own allocation of 1 GiB takes 600 ms: it faults in 4 KiB pages on one thread.
//! Mapping the memory ourselves, faulting in huge pages on all threads and registering the result
//! takes 44 ms for the same.
//!
//! ```text
//!   Block     one piece of page-locked memory and how it goes back    (this file)
//!   make      which way it is made: mapped and registered, or the driver's
//!   fault_in  faulting pages in, on several threads, huge ones unless they crawl
//!   pages     the system calls behind a trait, so that tests can make each of them fail
//! ```

mod fault_in;
mod make;
mod pages;
#[cfg(test)]
mod tests;

use std::mem::ManuallyDrop;
use std::sync::Arc;

use pinlane_driver::{HostFlags, HostPtr};

use self::pages::Mapping;
pub(super) use self::pages::{HUGE_PAGE_BYTES, Pages, System};
use super::budget::Reservation;
use super::page_bytes;
use crate::device_core::DeviceCore;
use crate::{Error, Result};

/// One piece of page-locked memory. Its owner sees to it that nothing uses it when it is dropped.
pub(crate) struct Block {
    core: Arc<DeviceCore>,
    start: HostPtr,
    /// What was asked for, and what the books say.
    bytes: usize,
    /// Taken out once, by `drop`.
    origin: Option<Origin>,
}

/// How it was made, which decides how it goes back.
enum Origin {
    /// From `host_alloc`, for `host_free`.
    Allocated(Reservation),
    /// Mapped by ourselves and registered: unregistered first, then unmapped.
    Registered(Reservation, Mapping),
}

impl Block {
    /// Page-lock `bytes`, more than 0.
    pub(crate) fn pin(core: &Arc<DeviceCore>, bytes: usize, flags: HostFlags) -> Result<Self> {
        Self::pin_with(core, bytes, flags, &System)
    }

    fn pin_with(
        core: &Arc<DeviceCore>,
        bytes: usize,
        flags: HostFlags,
        pages: &'static dyn Pages,
    ) -> Result<Self> {
        let locked_bytes = whole_pages(bytes)?;
        let reservation = core.budget.reserve(locked_bytes as u64)?;
        let made = make::make(core, bytes, locked_bytes, flags, pages)?;
        let (start, origin) = match made {
            make::Made::Allocated(start) => (start, Origin::Allocated(reservation)),
            make::Made::Registered(mapping) => {
                (mapping.start(), Origin::Registered(reservation, mapping))
            }
        };
        core.counters.pinned_bytes.add(bytes);
        Ok(Self {
            core: Arc::clone(core),
            start,
            bytes,
            origin: Some(origin),
        })
    }

    pub(crate) fn start(&self) -> HostPtr {
        self.start
    }

    /// What was asked for.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// What is page-locked: whole pages.
    pub(crate) fn locked_bytes(&self) -> u64 {
        match self.origin.as_ref().expect("there until it is dropped") {
            Origin::Allocated(reservation) | Origin::Registered(reservation, _) => {
                reservation.bytes()
            }
        }
    }
}

// SAFETY: it owns plain memory behind one pointer, and `DeviceCore` may be used by every thread.
unsafe impl Send for Block {}
// SAFETY: shared access reads the pointer and the numbers only.
unsafe impl Sync for Block {}

/// `bytes` rounded up to whole pages, where the address space holds them.
fn whole_pages(bytes: usize) -> Result<usize> {
    let rounded = bytes.checked_next_multiple_of(page_bytes());
    rounded
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or(Error::TooLarge {
            len: bytes,
            element_bytes: 1,
        })
}

impl Drop for Block {
    fn drop(&mut self) {
        let ptr = self.start;
        // A panic of the driver's keeps it: the pages may still be locked under this address.
        let origin = ManuallyDrop::new(self.origin.take().expect("there until here"));
        // SAFETY: it came from `host_alloc` or was registered under this address, as `origin`
        // tells, this was its only owner, and a buffer in flight is owned by its transfer or
        // parked, so nothing uses it any more.
        let gone = self.core.give_back(|driver| unsafe {
            match &*origin {
                Origin::Allocated(_) => driver.host_free(ptr),
                Origin::Registered(..) => driver.host_unregister(ptr),
            }
        });
        let origin = ManuallyDrop::into_inner(origin);
        if gone {
            // Unmaps what was mapped, and gives the bytes back to the budget.
            drop(origin);
            self.core.counters.pinned_bytes.subtract(self.bytes);
            return;
        }
        // The pages are still locked under this address: they stay, and stay counted.
        match origin {
            Origin::Allocated(reservation) => reservation.keep(),
            Origin::Registered(reservation, mapping) => {
                reservation.keep();
                mapping.keep();
            }
        }
    }
}
