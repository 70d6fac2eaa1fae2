//! Calls that pin and unpin host memory.

use pinlane_driver::{Call, DevicePtr, ErrorKind, HostFlags, HostPtr, RegisterFlags, Result};

use super::{error, invalid, name};
use crate::checks::FindingKind;
use crate::faults::FaultKind;
use crate::memory::host::{Coverage, Origin, Pin};
use crate::memory::{HostBytes, PinnedAlloc};
use crate::state::State;

const INSIDE_PINNED: &str = "an address inside a page-locked range";

impl State {
    pub(crate) fn host_alloc(&mut self, bytes: usize, flags: HostFlags) -> Result<HostPtr> {
        let call = Call::HostAlloc;
        if bytes == 0 {
            return Err(invalid(call, "the size is 0 bytes"));
        }
        self.trace.add(bytes as u64);
        self.spend(self.config.profile.host_memory.alloc.ns(bytes as u64));
        if self.injector.hit(FaultKind::OutOfMemory) {
            let detail = format!("{bytes} bytes requested (injected)");
            return Err(error(call, ErrorKind::OutOfMemory, detail));
        }
        let memory = PinnedAlloc::new(bytes).ok_or_else(|| {
            let detail = format!("{bytes} bytes requested");
            error(call, ErrorKind::OutOfMemory, detail)
        })?;
        let range = memory.range();
        self.host
            .insert(range, Origin::Allocated(memory), flags.mapped, false);
        Ok(range.ptr())
    }

    pub(crate) fn host_free(&mut self, ptr: HostPtr) -> Result<()> {
        let call = Call::HostFree;
        let address = ptr.addr().get();
        let misuse = match self.host.at(address) {
            Some(pin) if matches!(pin.origin, Origin::Allocated(_)) => None,
            Some(_) => Some((FindingKind::WrongFree, "registered memory")),
            None if self.host.was_freed(address) => Some((
                FindingKind::DoubleFree,
                "memory that has already been freed",
            )),
            None if self.host.find(address).is_some() => {
                Some((FindingKind::WrongBase, INSIDE_PINNED))
            }
            None => Some((FindingKind::WrongFree, "memory that is not from host_alloc")),
        };
        if let Some((kind, what)) = misuse {
            self.report(kind, name(call), what);
            return Err(invalid(call, what));
        }
        let pin = self.take_pin(address, call, FindingKind::HostFreedInFlight);
        let bytes = pin.range.len() as u64;
        self.spend(self.config.profile.host_memory.free.ns(bytes));
        if let Origin::Allocated(memory) = pin.origin {
            self.host.quarantine(memory);
        }
        Ok(())
    }

    /// # Safety
    /// As for the driver's `host_register`.
    pub(crate) unsafe fn host_register(
        &mut self,
        ptr: HostPtr,
        bytes: usize,
        flags: RegisterFlags,
    ) -> Result<()> {
        let call = Call::HostRegister;
        if bytes == 0 {
            return Err(invalid(call, "the size is 0 bytes"));
        }
        self.trace.add(bytes as u64);
        self.spend(self.config.profile.host_memory.register.ns(bytes as u64));
        match self.host.coverage(ptr.addr().get(), bytes) {
            Coverage::Pageable => {}
            Coverage::Pinned(_) | Coverage::Partly => {
                let detail = format!("{bytes} bytes, some of them already page-locked");
                self.report(FindingKind::OverlappingRegistration, name(call), detail);
                return Err(error(call, ErrorKind::AlreadyRegistered, ""));
            }
            Coverage::Freed => {
                self.report(FindingKind::UseAfterFree, name(call), "freed pinned memory");
                return Err(invalid(call, "freed pinned memory"));
            }
        }
        if self.injector.hit(FaultKind::RefusedRegistration) {
            return Err(error(call, ErrorKind::RegistrationRefused, "(injected)"));
        }
        // SAFETY: the caller keeps the range mapped until it unregisters it, which removes it from
        // the table.
        let range = unsafe { HostBytes::new(ptr, bytes) };
        self.host
            .insert(range, Origin::Registered, flags.mapped, flags.read_only);
        Ok(())
    }

    pub(crate) fn host_unregister(&mut self, ptr: HostPtr) -> Result<()> {
        let call = Call::HostUnregister;
        let address = ptr.addr().get();
        let misuse = match self.host.at(address) {
            Some(pin) if matches!(pin.origin, Origin::Registered) => None,
            Some(_) => Some((FindingKind::WrongFree, "memory from host_alloc")),
            None if self.host.find(address).is_some() => {
                Some((FindingKind::WrongBase, INSIDE_PINNED))
            }
            None => Some((FindingKind::DoubleFree, "memory that is not registered")),
        };
        if let Some((kind, what)) = misuse {
            self.report(kind, name(call), what);
            return Err(error(call, ErrorKind::NotRegistered, what));
        }
        let pin = self.take_pin(address, call, FindingKind::HostUnregisteredInFlight);
        let bytes = pin.range.len() as u64;
        self.spend(self.config.profile.host_memory.unregister.ns(bytes));
        Ok(())
    }

    /// Removes a range from the table, and takes it away from work in flight.
    fn take_pin(&mut self, address: usize, call: Call, in_flight: FindingKind) -> Pin {
        let pin = self.host.remove(address).expect("a range that was found");
        let users = self.cancel_host_uses(pin.range.address(), pin.range.end());
        if !users.is_empty() {
            let detail = format!("still used by {}", users.join(", "));
            self.report(in_flight, name(call), detail);
        }
        self.trace.add(pin.id);
        pin
    }

    pub(crate) fn host_device_ptr(&mut self, ptr: HostPtr) -> Result<DevicePtr> {
        let call = Call::HostDevicePtr;
        let address = ptr.addr().get();
        match self.host.find(address) {
            Some(pin) if pin.mapped => Ok(DevicePtr(address as u64)),
            Some(_) => Err(invalid(call, "the memory was pinned without `mapped`")),
            None => Err(invalid(call, "the memory is not pinned")),
        }
    }
}
