//! Device and host memory: what an address belongs to, and what a kernel's CPU twin sees.

pub(crate) mod device;
pub(crate) mod host;

use pinlane_driver::{DevicePtr, PointerKind};
use pinlane_kernels::{Memory, MemoryFault};

use self::device::{BlockState, DeviceMemory, device_of};
use self::host::{Coverage, HostMemory, Origin};
use crate::sim::Allocation;
use crate::state::State;

pub(crate) use self::host::HostBytes;

impl State {
    /// The allocation or registration that contains an address.
    pub(crate) fn allocation(&self, address: u64) -> Option<Allocation> {
        if let Some(owner) = device_of(address) {
            let (base, block) = self.devices.get(owner)?.memory.find(address, 0)?;
            return Some(Allocation {
                kind: PointerKind::Device,
                base,
                bytes: block.bytes,
                device: Some(owner as u32),
                mapped: true,
            });
        }
        let pin = self.host.find(usize::try_from(address).ok()?)?;
        Some(Allocation {
            kind: match pin.origin {
                Origin::Allocated(_) => PointerKind::Pinned,
                Origin::Registered => PointerKind::Registered,
            },
            base: pin.range.address() as u64,
            bytes: pin.range.len() as u64,
            device: None,
            mapped: pin.mapped,
        })
    }

    /// The kind of memory that an address points to.
    pub(crate) fn pointer_kind(&self, address: u64) -> pinlane_driver::Result<PointerKind> {
        let found = self.allocation(address);
        Ok(found.map_or(PointerKind::Pageable, |allocation| allocation.kind))
    }
}

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
