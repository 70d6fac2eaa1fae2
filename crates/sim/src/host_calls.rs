//! Calls that page-lock host memory and give it back.

use pinlane_driver::{
    Call, DevicePtr, Error, ErrorKind, HostFlags, HostPtr, RegisterFlags, Result,
};

use crate::calls::name;
use crate::faults::FaultKind;
use crate::finding::FindingKind;
use crate::host_bytes::HostBytes;
use crate::host_memory::{Coverage, Origin, Pin};
use crate::pinned_alloc::PinnedAlloc;
use crate::state::State;

impl State {
    pub(crate) fn host_alloc(&mut self, bytes: usize, flags: HostFlags) -> Result<HostPtr> {
        let error =
            |kind, detail: String| Err(Error::new(kind, name(Call::HostAlloc)).with_detail(detail));
        if bytes == 0 {
            return error(ErrorKind::InvalidValue, "0 bytes".to_owned());
        }
        self.trace.add(bytes as u64);
        self.spend(self.config.profile.host_memory.alloc.ns(bytes as u64));
        if self.injector.hit(FaultKind::OutOfMemory) {
            return error(
                ErrorKind::OutOfMemory,
                format!("{bytes} bytes asked for (injected)"),
            );
        }
        let Some(memory) = PinnedAlloc::new(bytes) else {
            return error(ErrorKind::OutOfMemory, format!("{bytes} bytes asked for"));
        };
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
            None if self.host.was_freed(address) => {
                Some((FindingKind::DoubleFree, "memory that was freed before"))
            }
            None if self.host.find(address).is_some() => Some((
                FindingKind::WrongBase,
                "an address inside of a page-locked range",
            )),
            None => Some((FindingKind::WrongFree, "memory that is not from host_alloc")),
        };
        if let Some((kind, what)) = misuse {
            self.report(kind, name(call), what);
            return Err(Error::new(ErrorKind::InvalidValue, name(call)).with_detail(what));
        }
        let pin = self.take_pin(address, call, FindingKind::HostFreedInFlight);
        self.spend(
            self.config
                .profile
                .host_memory
                .free
                .ns(pin.range.len() as u64),
        );
        if let Origin::Allocated(memory) = pin.origin {
            self.host.quarantine(memory);
        }
        Ok(())
    }

    /// # Safety
    /// What the driver's `host_register` asks for.
    pub(crate) unsafe fn host_register(
        &mut self,
        ptr: HostPtr,
        bytes: usize,
        flags: RegisterFlags,
    ) -> Result<()> {
        let error = |kind, detail: &str| {
            Err(Error::new(kind, name(Call::HostRegister)).with_detail(detail))
        };
        if bytes == 0 {
            return error(ErrorKind::InvalidValue, "0 bytes");
        }
        self.trace.add(bytes as u64);
        self.spend(self.config.profile.host_memory.register.ns(bytes as u64));
        match self.host.coverage(ptr.addr().get(), bytes) {
            Coverage::Pageable => {}
            Coverage::Pinned(_) | Coverage::Partly => {
                let detail = format!("{bytes} bytes, page-locked already in whole or in part");
                let call = name(Call::HostRegister);
                self.report(FindingKind::OverlappingRegistration, call, detail);
                return error(ErrorKind::AlreadyRegistered, "");
            }
            Coverage::Freed => {
                let call = name(Call::HostRegister);
                self.report(FindingKind::UseAfterFree, call, "freed pinned memory");
                return error(ErrorKind::InvalidValue, "freed pinned memory");
            }
        }
        if self.injector.hit(FaultKind::RefusedRegistration) {
            return error(ErrorKind::RegistrationRefused, "(injected)");
        }
        // SAFETY: our caller keeps the range mapped until it is unregistered, and then the range
        // leaves the table.
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
            None if self.host.find(address).is_some() => Some((
                FindingKind::WrongBase,
                "an address inside of a page-locked range",
            )),
            None => Some((FindingKind::DoubleFree, "memory that is not registered")),
        };
        if let Some((kind, what)) = misuse {
            self.report(kind, name(call), what);
            return Err(Error::new(ErrorKind::NotRegistered, name(call)).with_detail(what));
        }
        let pin = self.take_pin(address, call, FindingKind::HostUnregisteredInFlight);
        self.spend(
            self.config
                .profile
                .host_memory
                .unregister
                .ns(pin.range.len() as u64),
        );
        Ok(())
    }

    /// Takes a range out of the table, and away from work in flight.
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
        let address = ptr.addr().get();
        match self.host.find(address) {
            Some(pin) if pin.mapped => Ok(DevicePtr(address as u64)),
            found => {
                let detail = match found {
                    Some(_) => "the memory was pinned without `mapped`",
                    None => "the memory is not pinned",
                };
                Err(
                    Error::new(ErrorKind::InvalidValue, name(Call::HostDevicePtr))
                        .with_detail(detail),
                )
            }
        }
    }
}
