//! Memory as a kernel's twin sees it.

use pinlane_driver::DevicePtr;
use pinlane_kernels::{Memory, MemoryFault};

use crate::device_memory::{BlockState, DeviceMemory, device_of};
use crate::host_bytes::HostBytes;
use crate::host_memory::{Coverage, HostMemory};

/// The memory of one device, and mapped host memory.
pub(crate) struct KernelMemory<'a> {
    device: &'a mut DeviceMemory,
    host: &'a HostMemory,
    touched_before_alloc: bool,
}

impl<'a> KernelMemory<'a> {
    pub(crate) fn new(device: &'a mut DeviceMemory, host: &'a HostMemory) -> Self {
        Self {
            device,
            host,
            touched_before_alloc: false,
        }
    }

    /// Whether it met memory whose stream-ordered allocation had not happened yet.
    pub(crate) fn touched_before_alloc(&self) -> bool {
        self.touched_before_alloc
    }

    fn note_state(&mut self, address: u64) {
        if let Some((_, block)) = self.device.find(address, 0) {
            self.touched_before_alloc |= block.state == BlockState::AllocQueued;
        }
    }

    /// The mapped host memory at an address, writable where asked for.
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

impl Memory for KernelMemory<'_> {
    fn read(&mut self, source: DevicePtr, target: &mut [u8]) -> Result<(), MemoryFault> {
        let bytes = target.len();
        let fault = MemoryFault {
            address: source,
            bytes,
        };
        if device_of(source.0).is_none() {
            self.mapped(source.0, bytes, false)
                .ok_or(fault)?
                .read(0, target);
            return Ok(());
        }
        self.note_state(source.0);
        self.device
            .read(source.0, bytes, |at, part| {
                target[at..at + part.len()].copy_from_slice(part)
            })
            .map_err(|_| fault)
    }

    fn write(&mut self, target: DevicePtr, source: &[u8]) -> Result<(), MemoryFault> {
        let bytes = source.len();
        let fault = MemoryFault {
            address: target,
            bytes,
        };
        if device_of(target.0).is_none() {
            self.mapped(target.0, bytes, true)
                .ok_or(fault)?
                .write(0, source);
            return Ok(());
        }
        self.note_state(target.0);
        self.device
            .write(target.0, bytes, |at, part| {
                part.copy_from_slice(&source[at..at + part.len()])
            })
            .map_err(|_| fault)
    }
}
