//! Which memory the program has: where each block lies, how long it is, and how it was made.
//!
//! The simulator knows as much, and is the judge of what is right. The ledger answers questions
//! that the driver API asks and the driver trait does not, without costing virtual time.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How a block was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Device memory.
    Device,
    /// Device memory allocated in stream order.
    DeviceAsync,
    /// Pinned host memory, with the flags that the program passed.
    Pinned(u32),
    /// Host memory registered in place, with the flags that the program passed.
    Registered(u32),
}

/// A block of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// First address.
    pub base: u64,
    /// Length.
    pub bytes: usize,
    /// How it was made.
    pub kind: Kind,
    /// Number of the device.
    pub ordinal: i32,
    /// Handle of the context.
    pub context: usize,
}

/// All blocks.
#[derive(Default)]
pub struct Ledger {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// By address.
    blocks: BTreeMap<u64, Block>,
    /// Around all device memory that there ever was. The simulator's device addresses are made up
    /// and lie apart from all host memory.
    device_span: Range<u64>,
}

impl Kind {
    /// Whether it is the device's memory rather than the host's.
    pub fn is_device(self) -> bool {
        matches!(self, Self::Device | Self::DeviceAsync)
    }
}

impl Ledger {
    /// Enters a block.
    pub fn enter(&self, block: Block) {
        let mut inner = self.lock();
        inner.blocks.insert(block.base, block);
        if block.kind.is_device() {
            let end = block.base + block.bytes as u64;
            let span = &mut inner.device_span;
            *span = if span.is_empty() {
                block.base..end
            } else {
                span.start.min(block.base)..span.end.max(end)
            };
        }
    }

    /// Strikes out the block that begins at `base`. Done before it is freed, since the address may
    /// be given out again at once; a failed free enters it anew.
    pub fn strike(&self, base: u64) -> Option<Block> {
        self.lock().blocks.remove(&base)
    }

    /// The block that holds this address.
    pub fn find(&self, address: u64) -> Option<Block> {
        let inner = self.lock();
        let (_, block) = inner.blocks.range(..=address).next_back()?;
        (address - block.base < block.bytes as u64).then_some(*block)
    }

    /// Whether the address is the device's memory, or was: a program that uses memory after it
    /// was freed must not have its address taken for the host's, and followed.
    pub fn is_or_was_device(&self, address: u64) -> bool {
        self.lock().device_span.contains(&address)
    }

    /// Bytes of stream-ordered memory on a device.
    pub fn async_bytes(&self, ordinal: i32) -> u64 {
        let inner = self.lock();
        let of_pool = |block: &&Block| block.ordinal == ordinal && block.kind == Kind::DeviceAsync;
        inner
            .blocks
            .values()
            .filter(of_pool)
            .map(|block| block.bytes as u64)
            .sum()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_block_around_it() {
        let ledger = Ledger::default();
        let block = Block {
            base: 0x1000,
            bytes: 16,
            kind: Kind::Device,
            ordinal: 0,
            context: 1,
        };
        ledger.enter(block);
        assert_eq!(ledger.find(0xfff), None);
        assert_eq!(ledger.find(0x100f), Some(block));
        assert_eq!(ledger.find(0x1010), None);
        assert!(ledger.is_or_was_device(0x1000));
        assert_eq!(ledger.strike(0x1001), None);
        assert_eq!(ledger.strike(0x1000), Some(block));
        assert_eq!(ledger.find(0x1000), None);
        assert!(ledger.is_or_was_device(0x100f));
        assert!(!ledger.is_or_was_device(0x1010));
    }
}
