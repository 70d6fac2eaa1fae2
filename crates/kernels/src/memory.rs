//! How a twin reaches memory.

use pinlane_driver::DevicePtr;

/// An access outside of any allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryFault {
    /// First address of the access.
    pub address: DevicePtr,
    /// Its length.
    pub bytes: usize,
}

/// Memory as a kernel sees it: device memory, and mapped host memory.
pub trait Memory {
    /// Read at a device address.
    fn read(&mut self, source: DevicePtr, target: &mut [u8]) -> Result<(), MemoryFault>;
    /// Write at a device address.
    fn write(&mut self, target: DevicePtr, source: &[u8]) -> Result<(), MemoryFault>;
}
