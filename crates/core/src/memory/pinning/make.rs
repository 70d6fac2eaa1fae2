//! Which way memory is page-locked.

use std::mem::ManuallyDrop;

use pinlane_driver::{DeviceInfo, ErrorKind, HostFlags, HostPtr, RegisterFlags};

use super::fault_in::fill;
use super::pages::Mapping;
use super::pages::{Errno, HUGE_PAGE_BYTES, Pages};
use crate::device_core::DeviceCore;
use crate::memory::budget::explain;
use crate::{Error, Result};

/// From here on memory is mapped and registered by ourselves. Less than a huge page has nothing
/// to gain from huge pages and several threads, and registering takes a lock of the whole driver.
pub(super) const FAST_FROM_BYTES: usize = HUGE_PAGE_BYTES;

/// Page-locked memory, and whose it is.
pub(super) enum Made {
    Allocated(HostPtr),
    Registered(Mapping),
}

/// Why memory of our own mapping could not be page-locked.
enum Failed {
    /// The system gave no memory.
    System,
    /// The driver did not take it.
    Driver(pinlane_driver::Error),
}

impl From<Errno> for Failed {
    fn from(_: Errno) -> Self {
        Self::System
    }
}

/// The one place that decides: mapped and registered where that is possible and worth it,
/// otherwise, and where it fails, the driver's own allocation, whose word is the last.
pub(super) fn make(
    core: &DeviceCore,
    bytes: usize,
    locked_bytes: usize,
    flags: HostFlags,
    pages: &'static dyn Pages,
) -> Result<Made> {
    let refused = core.registration_refused.is_raised();
    if may_be_fast(bytes, flags, core.driver.info(), refused) && pages.work() {
        match map_and_register(core, locked_bytes, flags, pages) {
            Ok(mapping) => return Ok(Made::Registered(mapping)),
            Err(Failed::Driver(error)) if error.is_fatal() => return Err(error.into()),
            Err(Failed::Driver(error)) => {
                if is_lasting(&error.kind) {
                    core.registration_refused.raise();
                }
                // The caller gets memory all the same, but no error is lost.
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

/// Write-combined memory only the driver can make, and not every device can register.
fn may_be_fast(bytes: usize, flags: HostFlags, info: &DeviceInfo, refused: bool) -> bool {
    bytes >= FAST_FROM_BYTES && !flags.write_combined && info.can_register && !refused
}

/// Whether the driver would say the same next time, as under confidential computing. Otherwise it
/// was about this memory, at this moment.
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
        // Memory on another node is slower, but works: a refusal is no failure.
        mapping.prefer_node(node);
    }
    fill(&mapping)?;
    let flags = RegisterFlags {
        portable: flags.portable,
        mapped: flags.mapped,
        read_only: false,
    };
    let mapping = ManuallyDrop::new(mapping); // kept by a panic of the driver's
    // SAFETY: the range is mapped, and stays so until it is unregistered: a `Block` unmaps it only
    // then. Where this fails nothing is registered.
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
