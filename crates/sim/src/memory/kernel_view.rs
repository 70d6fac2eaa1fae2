//! Memory as a kernel's CPU twin sees it.

use pinlane_driver::DevicePtr;
use pinlane_kernels::{Memory, MemoryFault};

use super::HostBytes;
use super::device::{BlockState, DeviceMemory, device_of};
use super::host::{Coverage, HostMemory};

/// The memory of one device, and mapped host memory.
pub(crate) struct KernelView<'a> {
    pub(crate) device: &'a mut DeviceMemory,
    pub(crate) host: &'a HostMemory,
    /// Whether it accessed memory before its stream-ordered allocation.
    pub(crate) touched_before_alloc: bool,
}

impl KernelView<'_> {
    fn note_state(&mut self, address: u64) {
        if let Some((_, block)) = self.device.find(address, 0) {
            self.touched_before_alloc |= block.state == BlockState::AllocQueued;
        }
    }

    /// The mapped host memory at an address, if it can be accessed that way.
    fn mapped(&self, address: u64, bytes: usize, write: bool) -> Option<HostBytes> {
        let address = usize::try_from(address).ok()?;
        match self.host.coverage(address, bytes) {
            Coverage::Pinned(pin) if pin.mapped && !(write && pin.read_only) => {
                Some(pin.range.part(address - pin.range.address(), bytes))
            }
            _ => None,
        }
    }
}

impl Memory for KernelView<'_> {
    fn read(&mut self, source: DevicePtr, target: &mut [u8]) -> Result<(), MemoryFault> {
        let fault = MemoryFault {
            address: source,
            bytes: target.len(),
        };
        if device_of(source.0).is_none() {
            let host = self.mapped(source.0, target.len(), false).ok_or(fault)?;
            host.read(0, target);
            return Ok(());
        }
        self.note_state(source.0);
        self.device.read_into(source.0, target).map_err(|_| fault)
    }

    fn write(&mut self, target: DevicePtr, source: &[u8]) -> Result<(), MemoryFault> {
        let fault = MemoryFault {
            address: target,
            bytes: source.len(),
        };
        if device_of(target.0).is_none() {
            let host = self.mapped(target.0, source.len(), true).ok_or(fault)?;
            host.write(0, source);
            return Ok(());
        }
        self.note_state(target.0);
        self.device.write_from(target.0, source).map_err(|_| fault)
    }
}
