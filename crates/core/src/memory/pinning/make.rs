//! Chooses how memory is page-locked.

use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering;

use pinlane_driver::{DeviceInfo, ErrorKind, HostFlags, HostPtr, RegisterFlags};

use super::fault_in::fill;
use super::pages::Mapping;
use super::pages::{Errno, HUGE_PAGE_BYTES, Pages};
use crate::device_core::DeviceCore;
use crate::memory::budget::explain;
use crate::{Error, Result};

/// Smallest size that this library maps and registers itself. Below one huge page, huge pages and several
/// threads gain nothing, and registration takes a driver-wide lock.
pub(super) const FAST_FROM_BYTES: usize = HUGE_PAGE_BYTES;

/// Page-locked memory, by who allocated it.
pub(super) enum Made {
    Allocated(HostPtr),
    Registered(Mapping),
}

/// Why our own mapping could not be page-locked.
enum Failed {
    /// The system could not provide memory.
    System,
    /// The driver rejected it.
    Driver(pinlane_driver::Error),
}

impl From<Errno> for Failed {
    fn from(_: Errno) -> Self {
        Self::System
    }
}

/// Page-locks memory: maps and registers it where possible and worthwhile. Otherwise, or if that fails,
/// uses the driver's own allocation, whose result is final.
pub(super) fn make(
    core: &DeviceCore,
    bytes: usize,
    locked_bytes: usize,
    flags: HostFlags,
    pages: &'static dyn Pages,
) -> Result<Made> {
    let refused = core.registration_refused.load(Ordering::Relaxed);
    if may_be_fast(bytes, flags, core.driver.info(), refused) && pages.work() {
        match map_and_register(core, locked_bytes, flags, pages) {
            Ok(mapping) => return Ok(Made::Registered(mapping)),
            Err(Failed::Driver(error)) if error.is_fatal() => return Err(error.into()),
            Err(Failed::Driver(error)) => {
                if is_lasting(&error.kind) {
                    core.registration_refused.store(true, Ordering::Relaxed);
                }
                // The caller still gets memory, but the error must not be lost.
                core.keep_stray(error);
            }
            Err(Failed::System) => {}
        }
    }
    let allocated = core.driver.host_alloc(bytes, flags);
    allocated.map(Made::Allocated).map_err(|error| {
        let in_use_bytes = core.budget.in_use_bytes();
        let others_bytes = in_use_bytes.saturating_sub(locked_bytes as u64);
        Error::Driver(explain(error, locked_bytes as u64, others_bytes))
    })
}

/// Whether to map and register. Only the driver can allocate write-combined memory, and not every device
/// can register.
fn may_be_fast(bytes: usize, flags: HostFlags, info: &DeviceInfo, refused: bool) -> bool {
    bytes >= FAST_FROM_BYTES && !flags.write_combined && info.can_register && !refused
}

/// Whether the driver would reject every registration, as under confidential computing. Other errors
/// concern only this memory at this moment.
fn is_lasting(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::RegistrationRefused | ErrorKind::NotSupported
    )
}

fn map_and_register(
    core: &DeviceCore,
    locked_bytes: usize,
    flags: HostFlags,
    pages: &'static dyn Pages,
) -> std::result::Result<Mapping, Failed> {
    let mapping = Mapping::new(pages, locked_bytes)?;
    if let Some(node) = core.driver.info().numa_node {
        // Memory on another node is slower but works, so a failure here is not an error.
        mapping.prefer_node(node);
    }
    fill(&mapping)?;
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
            .host_register(mapping.start(), locked_bytes, flags)
    };
    let mapping = ManuallyDrop::into_inner(mapping);
    registered.map_err(Failed::Driver)?;
    Ok(mapping)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mapped_and_registered() {
        let mut info = DeviceInfo::new(0, "any");
        info.can_register = true;
        let plain = HostFlags::default();
        let mapped = HostFlags {
            mapped: true,
            ..plain
        };
        let combined = HostFlags {
            write_combined: true,
            ..plain
        };
        assert!(may_be_fast(FAST_FROM_BYTES, plain, &info, false));
        assert!(may_be_fast(FAST_FROM_BYTES, mapped, &info, false));
        assert!(!may_be_fast(FAST_FROM_BYTES - 1, plain, &info, false));
        assert!(!may_be_fast(FAST_FROM_BYTES, combined, &info, false));
        assert!(!may_be_fast(FAST_FROM_BYTES, plain, &info, true));
        info.can_register = false;
        assert!(!may_be_fast(FAST_FROM_BYTES, plain, &info, false));
    }
}
