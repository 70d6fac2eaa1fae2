//! Page-locked memory, allocated the fastest way available and freed to match.
//!
//! The driver's own allocation of 1 GiB takes 600 ms: it faults in 4 KiB pages on one thread. Mapping the
//! memory ourselves, faulting in huge pages on all threads and registering the result takes 44 ms.
//!
//! ```text
//!   Block     one page-locked block and how to free it                (this file)
//!   make      how it is allocated: mapped and registered, or by the driver
//!   fault_in  faults pages in on several threads, huge pages unless they are slow
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

/// One block of page-locked memory. Its owner ensures that nothing uses it when it is dropped.
pub(crate) struct Block {
    core: Arc<DeviceCore>,
    start: HostPtr,
    /// The requested size, as recorded in the statistics.
    bytes: usize,
    /// Taken once, by `drop`.
    origin: Option<Origin>,
}

/// How the block was allocated, which decides how it is freed.
enum Origin {
    /// From `host_alloc`, freed by `host_free`.
    Allocated(Reservation),
    /// Mapped by this library and registered. Freed by unregistering, then unmapping.
    Registered(Reservation, Mapping),
}

impl Block {
    /// Page-locks `bytes`, which must not be 0.
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

    /// The requested size.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// The page-locked size, in whole pages.
    pub(crate) fn locked_bytes(&self) -> u64 {
        match self.origin.as_ref().expect("there until it is dropped") {
            Origin::Allocated(reservation) | Origin::Registered(reservation, _) => {
                reservation.bytes()
            }
        }
    }
}

// SAFETY: it owns plain memory behind one pointer, and any thread may use a `DeviceCore`.
unsafe impl Send for Block {}
// SAFETY: shared access only reads the pointer and the numbers.
unsafe impl Sync for Block {}

/// Rounds `bytes` up to whole pages, if the result fits the address space.
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
        // Leaked if the driver panics, since the pages may still be locked at this address.
        let origin = ManuallyDrop::new(self.origin.take().expect("there until here"));
        // SAFETY: as `origin` records, it came from `host_alloc` or was registered at this address. This
        // was its only owner, and a buffer in flight is owned by its transfer or parked, so nothing uses
        // it.
        let gone = self.core.give_back(|driver| unsafe {
            match &*origin {
                Origin::Allocated(_) => driver.host_free(ptr),
                Origin::Registered(..) => driver.host_unregister(ptr),
            }
        });
        let origin = ManuallyDrop::into_inner(origin);
        if gone {
            // Unmaps a mapping and releases the reservation.
            drop(origin);
            self.core.counters.pinned_bytes.subtract(self.bytes);
            return;
        }
        // The pages are still locked at this address, so they stay mapped and counted.
        match origin {
            Origin::Allocated(reservation) => reservation.keep(),
            Origin::Registered(reservation, mapping) => {
                reservation.keep();
                mapping.keep();
            }
        }
    }
}
