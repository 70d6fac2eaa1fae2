//! A memory that knows its bounds.

use pinlane_driver::{DevicePtr, KernelArg, LaunchShape};
use pinlane_kernels::{Memory, MemoryFault, find};

/// One allocation at a fixed address.
pub(crate) struct Flat {
    base: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Flat {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self {
            base: 0x1000,
            bytes,
        }
    }

    pub(crate) fn of_words<const N: usize>(words: impl IntoIterator<Item = [u8; N]>) -> Self {
        Self::new(words.into_iter().flatten().collect())
    }

    pub(crate) fn at(&self, offset_bytes: usize) -> KernelArg {
        KernelArg::Ptr(self.address(offset_bytes))
    }

    pub(crate) fn address(&self, offset_bytes: usize) -> DevicePtr {
        DevicePtr(self.base).offset(offset_bytes)
    }

    pub(crate) fn words(&self) -> Vec<[u8; 4]> {
        self.bytes
            .chunks_exact(4)
            .map(|word| word.try_into().expect("four bytes"))
            .collect()
    }

    fn range(&mut self, address: DevicePtr, bytes: usize) -> Result<&mut [u8], MemoryFault> {
        let fault = MemoryFault { address, bytes };
        let start = address.0.checked_sub(self.base).ok_or(fault)? as usize;
        self.bytes.get_mut(start..start + bytes).ok_or(fault)
    }
}

impl Memory for Flat {
    fn read(&mut self, source: DevicePtr, target: &mut [u8]) -> Result<(), MemoryFault> {
        target.copy_from_slice(self.range(source, target.len())?);
        Ok(())
    }

    fn write(&mut self, target: DevicePtr, source: &[u8]) -> Result<(), MemoryFault> {
        self.range(target, source.len())?.copy_from_slice(source);
        Ok(())
    }
}

/// Runs a twin, once its arguments have the right types.
pub(crate) fn run(name: &str, memory: &mut Flat, args: &[KernelArg]) -> Result<(), MemoryFault> {
    let kernel = find(name).expect("a built-in kernel");
    let kinds: Vec<_> = args.iter().map(KernelArg::kind).collect();
    assert_eq!(kinds, kernel.params, "the test passes other types");
    (kernel.run)(memory, LaunchShape::for_items(1), args)
}
