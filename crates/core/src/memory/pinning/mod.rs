//! Page-locked memory, allocated the fastest way available and freed to match.
//!
//! The driver's own allocation of 1 GiB takes 600 ms: it faults in 4 KiB pages on one thread. Mapping the
//! memory ourselves, faulting in huge pages on all threads and registering the result takes 44 ms.
//!
//! ```text
//!   Block           one page-locked block: mapped and registered, or by the driver   (this file)
//!   fault_in        faults pages in on several threads, huge pages unless they are slow
//!   page_syscalls   the system calls behind a trait, so that tests can make each of them fail
//! ```

mod fault_in;
mod page_syscalls;
#[cfg(test)]
mod tests;

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pinlane_driver::{
    DeviceInfo, Error as DriverError, ErrorKind, HostFlags, HostPtr, RegisterFlags,
};

use self::page_syscalls::Mapping;
pub(super) use self::page_syscalls::{HUGE_PAGE_BYTES, Pages, System};
use super::budget::{Reservation, explain};
use super::page_bytes;
use crate::device_core::DeviceCore;
use crate::{Error, Result};

/// Smallest size that this library maps and registers itself. Below one huge page, huge pages and several
/// threads gain nothing, and registration takes a driver-wide lock.
const FAST_FROM_BYTES: usize = HUGE_PAGE_BYTES;

/// One block of page-locked memory. Its owner ensures that nothing uses it when it is dropped.
pub(crate) struct Block {
    core: Arc<DeviceCore>,
    start: HostPtr,
    /// The requested size, as recorded in the statistics.
    bytes: usize,
    reservation: ManuallyDrop<Reservation>,
    /// The memory was mapped by this library and registered. `None` if it came from `host_alloc`.
    mapping: ManuallyDrop<Option<Mapping>>,
}

impl Block {
    /// Page-locks `bytes`, which must not be 0.
    pub(crate) fn pin(core: &Arc<DeviceCore>, bytes: usize, flags: HostFlags) -> Result<Self> {
        Self::pin_with(core, bytes, flags, &System)
    }

    /// Like [`pin`](Self::pin), with a reservation for the whole pages of `bytes`.
    pub(super) fn pin_reserved(
        core: &Arc<DeviceCore>,
        bytes: usize,
        reservation: Reservation,
    ) -> Result<Self> {
        Self::lock(core, bytes, HostFlags::default(), reservation, &System)
    }

    fn pin_with(
        core: &Arc<DeviceCore>,
        bytes: usize,
        flags: HostFlags,
        pages: &'static dyn Pages,
    ) -> Result<Self> {
        let reservation = core.budget.reserve(whole_pages(bytes)? as u64)?;
        Self::lock(core, bytes, flags, reservation, pages)
    }

    fn lock(
        core: &Arc<DeviceCore>,
        bytes: usize,
        flags: HostFlags,
        reservation: Reservation,
        pages: &'static dyn Pages,
    ) -> Result<Self> {
        let locked_bytes = reservation.bytes() as usize;
        let mapping = try_to_register(core, bytes, locked_bytes, flags, pages)?;
        let start = match &mapping {
            Some(mapping) => mapping.start,
            None => {
                let allocated = alloc_without_idle(core, bytes, flags);
                allocated.map_err(|error| explain(error, locked_bytes as u64, &core.budget))?
            }
        };
        core.counters.pinned_bytes.add(bytes);
        Ok(Self {
            core: Arc::clone(core),
            start,
            bytes,
            reservation: ManuallyDrop::new(reservation),
            mapping: ManuallyDrop::new(mapping),
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
        self.reservation.bytes()
    }
}

/// Allocates with the driver. If that is out of memory, frees idle memory, then waits for pending memory, and
/// tries again.
fn alloc_without_idle(
    core: &DeviceCore,
    bytes: usize,
    flags: HostFlags,
) -> pinlane_driver::Result<HostPtr> {
    let mut may_wait = true;
    let mut makes_room = || {
        core.budget.free_idle() || (std::mem::take(&mut may_wait) && core.budget.release_pending())
    };
    loop {
        match core.driver.host_alloc(bytes, flags) {
            Err(error) if error.kind == ErrorKind::OutOfMemory && makes_room() => {}
            result => return result,
        }
    }
}

// SAFETY: it owns plain memory behind one pointer, and any thread may use a `DeviceCore`.
unsafe impl Send for Block {}
// SAFETY: shared access only reads the pointer and the numbers.
unsafe impl Sync for Block {}

impl Drop for Block {
    fn drop(&mut self) {
        let (ptr, mapped) = (self.start, self.mapping.is_some());
        // SAFETY: as `mapping` records, it came from `host_alloc` or was registered at this address. This
        // was its only owner, and a buffer in flight is owned by its transfer or parked.
        let gone = self.core.give_back(|driver| unsafe {
            match mapped {
                false => driver.host_free(ptr),
                true => driver.host_unregister(ptr),
            }
        });
        // Otherwise, and if the driver panics, the pages may still be locked: they stay mapped and counted.
        if gone {
            self.core.counters.pinned_bytes.subtract(self.bytes);
            // SAFETY: dropped only here.
            unsafe {
                ManuallyDrop::drop(&mut self.reservation);
                ManuallyDrop::drop(&mut self.mapping);
            }
        }
    }
}

/// Rounds `bytes` up to whole pages, if the result fits the address space.
pub(super) fn whole_pages(bytes: usize) -> Result<usize> {
    let rounded = bytes.checked_next_multiple_of(page_bytes());
    rounded
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or(Error::TooLarge {
            len: bytes,
            element_bytes: 1,
        })
}

/// Maps and registers memory where possible and worthwhile. `None` leaves it to the driver's own
/// allocation, whose result is final.
fn try_to_register(
    core: &DeviceCore,
    bytes: usize,
    locked_bytes: usize,
    flags: HostFlags,
    pages: &'static dyn Pages,
) -> Result<Option<Mapping>> {
    let refused = core.registration_refused.load(Ordering::Relaxed);
    if !may_be_fast(bytes, flags, core.driver.info(), refused) || !pages.work() {
        return Ok(None);
    }
    match map_and_register(core, locked_bytes, flags, pages) {
        Ok(mapping) => return Ok(Some(mapping)),
        Err(Some(error)) if error.is_fatal() => return Err(error.into()),
        Err(Some(error)) => {
            // The driver would reject every registration, as under confidential computing. Other errors
            // concern only this memory at this moment.
            if let ErrorKind::RegistrationRefused | ErrorKind::NotSupported = error.kind {
                core.registration_refused.store(true, Ordering::Relaxed);
            }
            // The caller still gets memory, but the error must not be lost.
            core.keep_stray(error);
        }
        Err(None) => {}
    }
    Ok(None)
}

/// Whether to map and register. Only the driver can allocate write-combined memory.
fn may_be_fast(bytes: usize, flags: HostFlags, info: &DeviceInfo, refused: bool) -> bool {
    bytes >= FAST_FROM_BYTES && !flags.write_combined && info.can_register && !refused
}

/// Fails with the error of the driver, or `None` if the system could not provide memory.
fn map_and_register(
    core: &DeviceCore,
    locked_bytes: usize,
    flags: HostFlags,
    pages: &'static dyn Pages,
) -> std::result::Result<Mapping, Option<DriverError>> {
    let mapping = Mapping::new(pages, locked_bytes).map_err(|_| None)?;
    if let Some(node) = core.driver.info().numa_node {
        // Memory on another node is slower but works, so a failure here is not an error.
        mapping.prefer_node(node);
    }
    fault_in::fill(&mapping).map_err(|_| None)?;
    let flags = RegisterFlags {
        portable: flags.portable,
        mapped: flags.mapped,
        read_only: false,
    };
    let mapping = ManuallyDrop::new(mapping); // leaked if the driver panics
    // SAFETY: the range is mapped and stays so until it is unregistered: a `Block` unmaps it only
    // afterwards. If this fails, nothing is registered.
    let registered = unsafe {
        core.driver
            .host_register(mapping.start, locked_bytes, flags)
    };
    let mapping = ManuallyDrop::into_inner(mapping);
    registered.map_err(Some)?;
    Ok(mapping)
}
