//! The memory that a kernel's CPU twin sees.

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
    /// The mapped host memory of an access; `None` if it is to device memory.
    fn mapped(
        &mut self,
        address: DevicePtr,
        bytes: usize,
        write: bool,
    ) -> Result<Option<HostBytes>, MemoryFault> {
        if device_of(address.0).is_some() {
            if let Some((_, block)) = self.device.find(address.0, 0) {
                self.touched_before_alloc |= block.state == BlockState::AllocQueued;
            }
            return Ok(None);
        }
        let start = usize::try_from(address.0).unwrap_or(usize::MAX);
        match self.host.coverage(start, bytes) {
            Coverage::Pinned(pin) if pin.mapped && !(write && pin.read_only) => {
                Ok(Some(pin.range.part(start - pin.range.address(), bytes)))
            }
            _ => Err(MemoryFault { address, bytes }),
        }
    }
}

impl Memory for KernelView<'_> {
    fn read(&mut self, source: DevicePtr, target: &mut [u8]) -> Result<(), MemoryFault> {
        match self.mapped(source, target.len(), false)? {
            Some(host) => host.read(0, target),
            None => self.device.read_into(source.0, target)?,
        }
        Ok(())
    }

    fn write(&mut self, target: DevicePtr, source: &[u8]) -> Result<(), MemoryFault> {
        match self.mapped(target, source.len(), true)? {
            Some(host) => host.write(0, source),
            None => self.device.write_from(target.0, source)?,
        }
        Ok(())
    }
}
