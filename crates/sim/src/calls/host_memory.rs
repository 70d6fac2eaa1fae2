//! Calls that pin and unpin host memory.

use pinlane_driver::{DevicePtr, ErrorKind, HostFlags, HostPtr, RegisterFlags, Result};
use pinlane_model::{HostMemoryCosts, LinearCost};

use super::DeviceCall;
use crate::checks::FindingKind;
use crate::faults::FaultKind;
use crate::memory::HostBytes;
use crate::memory::host::{Coverage, Origin, Pin, PinnedAlloc};

const INSIDE_PINNED: &str = "an address inside a page-locked range";

impl DeviceCall<'_> {
    fn spend_pinning(&mut self, cost: fn(&HostMemoryCosts) -> LinearCost, bytes: usize) {
        let ns = cost(&self.config.profile.host_memory).ns(bytes as u64);
        self.spend(ns);
    }

    pub(crate) fn host_alloc(&mut self, bytes: usize, flags: HostFlags) -> Result<HostPtr> {
        if bytes == 0 {
            return Err(self.invalid("the size is 0 bytes"));
        }
        self.trace.add(bytes as u64);
        self.spend_pinning(|costs| costs.alloc, bytes);
        if self.injector.hit(FaultKind::OutOfMemory) {
            let detail = format!("{bytes} bytes requested (injected)");
            return Err(self.error(ErrorKind::OutOfMemory, detail));
        }
        let memory = PinnedAlloc::new(bytes).ok_or_else(|| {
            let detail = format!("{bytes} bytes requested");
            self.error(ErrorKind::OutOfMemory, detail)
        })?;
        let range = memory.range;
        let origin = Origin::Allocated(memory);
        self.host.insert(range, origin, flags.mapped, false);
        Ok(range.ptr())
    }

    pub(crate) fn host_free(&mut self, ptr: HostPtr) -> Result<()> {
        let address = ptr.addr().get();
        let (kind, what) = match self.host.at(address) {
            Some(pin) if matches!(pin.origin, Origin::Allocated(_)) => {
                let pin = self.take_pin(address, FindingKind::HostFreedInFlight);
                self.spend_pinning(|costs| costs.free, pin.range.len());
                if let Origin::Allocated(memory) = pin.origin {
                    self.host.quarantine(memory);
                }
                return Ok(());
            }
            Some(_) => (FindingKind::WrongFree, "registered memory"),
            None if self.host.was_freed(address) => (
                FindingKind::DoubleFree,
                "memory that has already been freed",
            ),
            None if self.host.find(address).is_some() => (FindingKind::WrongBase, INSIDE_PINNED),
            None => (FindingKind::WrongFree, "memory that is not from host_alloc"),
        };
        self.report_misuse(kind, what);
        Err(self.invalid(what))
    }

    /// # Safety
    /// As for the driver's `host_register`.
    pub(crate) unsafe fn host_register(
        &mut self,
        ptr: HostPtr,
        bytes: usize,
        flags: RegisterFlags,
    ) -> Result<()> {
        if bytes == 0 {
            return Err(self.invalid("the size is 0 bytes"));
        }
        self.trace.add(bytes as u64);
        self.spend_pinning(|costs| costs.register, bytes);
        match self.host.coverage(ptr.addr().get(), bytes) {
            Coverage::Pageable => {}
            Coverage::Pinned(_) | Coverage::Partly => {
                let detail = format!("{bytes} bytes, some of them already page-locked");
                self.report_misuse(FindingKind::OverlappingRegistration, detail);
                return Err(self.error(ErrorKind::AlreadyRegistered, ""));
            }
            Coverage::Freed => {
                self.report_misuse(FindingKind::UseAfterFree, "freed pinned memory");
                return Err(self.invalid("freed pinned memory"));
            }
        }
        if self.injector.hit(FaultKind::RefusedRegistration) {
            return Err(self.error(ErrorKind::RegistrationRefused, "(injected)"));
        }
        // SAFETY: the caller keeps the range mapped until it unregisters it, which removes it from
        // the table.
        let range = unsafe { HostBytes::new(ptr, bytes) };
        let origin = Origin::Registered;
        self.host
            .insert(range, origin, flags.mapped, flags.read_only);
        Ok(())
    }

    pub(crate) fn host_unregister(&mut self, ptr: HostPtr) -> Result<()> {
        let address = ptr.addr().get();
        let (kind, what) = match self.host.at(address) {
            Some(pin) if matches!(pin.origin, Origin::Registered) => {
                let pin = self.take_pin(address, FindingKind::HostUnregisteredInFlight);
                self.spend_pinning(|costs| costs.unregister, pin.range.len());
                return Ok(());
            }
            Some(_) => (FindingKind::WrongFree, "memory from host_alloc"),
            None if self.host.find(address).is_some() => (FindingKind::WrongBase, INSIDE_PINNED),
            None => (FindingKind::DoubleFree, "memory that is not registered"),
        };
        self.report_misuse(kind, what);
        Err(self.error(ErrorKind::NotRegistered, what))
    }

    /// Removes a range from the table, and takes it away from work in flight.
    fn take_pin(&mut self, address: usize, in_flight: FindingKind) -> Pin {
        let pin = self.host.remove(address).expect("a range that was found");
        let users = self.cancel(|op| op.uses_host(pin.range.address(), pin.range.end()));
        self.report_users(in_flight, &users);
        self.trace.add(pin.id);
        pin
    }

    pub(crate) fn host_device_ptr(&mut self, ptr: HostPtr) -> Result<DevicePtr> {
        let address = ptr.addr().get();
        match self.host.find(address) {
            Some(pin) if pin.mapped => Ok(DevicePtr(address as u64)),
            Some(_) => Err(self.invalid("the memory was pinned without `mapped`")),
            None => Err(self.invalid("the memory is not pinned")),
        }
    }
}
