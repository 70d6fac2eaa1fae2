//! A kernel on the CPU: its signature, what it costs, and how it accesses memory.

use std::fmt;

use pinlane_driver::{DevicePtr, KernelArg, LaunchShape, ParamKind};

/// A built-in kernel as the simulated GPU runs it.
#[derive(Clone, Copy)]
pub struct Kernel {
    /// Its name in the PTX module.
    pub name: &'static str,
    /// The types of its parameters.
    pub params: &'static [ParamKind],
    /// The CPU twin. Its arguments match `params`.
    pub run: fn(&mut dyn Memory, LaunchShape, &[KernelArg]) -> TwinResult,
    /// Device bytes that it reads and writes: the cost of a bandwidth-bound kernel.
    pub bytes_touched: fn(&[KernelArg]) -> u64,
    /// Time that it takes whatever the bandwidth, in nanoseconds.
    pub fixed_ns: fn(&[KernelArg]) -> u64,
    /// What it takes longer, alone on the device, because it has too few threads to fill it, in
    /// nanoseconds. Kernels of other streams can run meanwhile.
    pub tail_ns: fn(&[KernelArg]) -> u64,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Kernel");
        fields
            .field("name", &self.name)
            .field("params", &self.params);
        fields.finish_non_exhaustive()
    }
}

/// The result of a CPU twin.
pub type TwinResult = Result<(), MemoryFault>;

/// An access outside any allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryFault {
    /// First address of the access.
    pub address: DevicePtr,
    /// Length of the access.
    pub bytes: usize,
}

/// Memory as a kernel sees it: device memory and mapped host memory.
pub trait Memory {
    /// Reads from a device address.
    fn read(&mut self, source: DevicePtr, target: &mut [u8]) -> TwinResult;
    /// Writes to a device address.
    fn write(&mut self, target: DevicePtr, source: &[u8]) -> TwinResult;
}
