//! Calls that allocate and free device memory, and that pin and unpin host memory.

use pinlane_driver::{
    DevicePtr, ErrorKind, HostFlags, HostPtr, MemoryInfo, RegisterFlags, Result, StreamHandle,
};
use pinlane_model::{HostMemoryCosts, LinearCost};

use super::DeviceCall;
use crate::checks::FindingKind;
use crate::faults::FaultKind;
use crate::memory::HostBytes;
use crate::memory::device::{BlockKind, BlockState, DeviceMemory};
use crate::memory::host::{Coverage, Origin, Pin, PinnedAlloc};
use crate::operation::Work;

const INSIDE_PINNED: &str = "an address inside a page-locked range";

impl DeviceCall<'_> {
    fn memory(&mut self) -> &mut DeviceMemory {
        &mut self.state.devices[self.device].memory
    }

    pub(crate) fn memory_info(&mut self) -> Result<MemoryInfo> {
        let memory = self.memory();
        Ok(MemoryInfo {
            free_bytes: memory.free_bytes(),
            total_bytes: memory.capacity_bytes,
        })
    }

    pub(crate) fn device_alloc(&mut self, bytes: usize) -> Result<DevicePtr> {
        self.new_block(bytes, BlockKind::Plain)
    }

    pub(crate) fn device_alloc_async(
        &mut self,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<DevicePtr> {
        let stream = self.stream(stream)?;
        let ptr = self.new_block(bytes, BlockKind::StreamOrdered)?;
        self.submit(stream, Work::Alloc(ptr.0));
        Ok(ptr)
    }

    fn new_block(&mut self, bytes: usize, kind: BlockKind) -> Result<DevicePtr> {
        if bytes == 0 {
            return Err(self.invalid("the size is 0 bytes"));
        }
        let injected = self.injector.hit(FaultKind::OutOfMemory);
        let free_bytes = self.memory().free_bytes();
        let address = match injected {
            true => None,
            false => self.memory().alloc(bytes as u64, kind),
        };
        self.trace.add(bytes as u64);
        address.map(DevicePtr).ok_or_else(|| {
            let why = if injected { " (injected)" } else { "" };
            let detail = format!("{bytes} bytes requested, {free_bytes} free{why}");
            self.error(ErrorKind::OutOfMemory, detail)
        })
    }

    pub(crate) fn device_free(&mut self, ptr: DevicePtr) -> Result<()> {
        let bytes = self.freeable(ptr, BlockKind::Plain)?;
        let users = self.cancel(|op| op.uses_device(ptr.0, ptr.0 + bytes));
        self.report_users(FindingKind::DeviceFreedInUse, &users);
        self.memory().remove(ptr.0);
        Ok(())
    }

    /// Reports work in flight that used memory which the call releases.
    fn report_users(&mut self, kind: FindingKind, users: &[String]) {
        if !users.is_empty() {
            let detail = format!("still used by {}", users.join(", "));
            self.report_misuse(kind, detail);
        }
    }

    pub(crate) fn device_free_async(&mut self, ptr: DevicePtr, stream: StreamHandle) -> Result<()> {
        self.freeable(ptr, BlockKind::StreamOrdered)?;
        if self.devices[self.device].fatal.is_some() {
            self.memory().remove(ptr.0);
            return Ok(());
        }
        let stream = self.stream(stream)?;
        if let Some(block) = self.memory().at(ptr.0) {
            block.state = BlockState::FreeQueued;
        }
        self.submit(stream, Work::Free(ptr.0));
        Ok(())
    }

    /// Size of the block, if this call may free it. Reports misuse otherwise.
    fn freeable(&mut self, ptr: DevicePtr, kind: BlockKind) -> Result<u64> {
        let memory = self.memory();
        let (finding, what) = match memory.find(ptr.0, 0) {
            Some((base, _)) if base != ptr.0 => {
                (FindingKind::WrongBase, "points inside an allocation")
            }
            Some((_, block)) if block.state == BlockState::FreeQueued => (
                FindingKind::DoubleFree,
                "has already been freed in stream order",
            ),
            Some((_, block)) if block.kind == kind => return Ok(block.bytes),
            Some(_) if kind == BlockKind::Plain => {
                (FindingKind::WrongFree, "came from device_alloc_async")
            }
            Some(_) => (FindingKind::WrongFree, "came from device_alloc"),
            None if memory.was_freed(ptr.0) => (FindingKind::DoubleFree, "has already been freed"),
            None => (FindingKind::WrongFree, "is not device memory"),
        };
        let detail = format!("{ptr:?} {what}");
        self.report_misuse(finding, detail.clone());
        Err(self.invalid(detail))
    }

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
