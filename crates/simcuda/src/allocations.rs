//! The program's memory: address, length and kind of each block.
//!
//! The simulator has this information as well, and checks all uses. This table answers queries of the
//! driver API that the driver trait does not have, without virtual time.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

use crate::error::Outcome;
use crate::machine::lock;

/// How a block was allocated.
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
    /// How it was allocated.
    pub kind: Kind,
    /// Number of the device.
    pub ordinal: i32,
    /// Handle of the context.
    pub context: usize,
}

/// All blocks.
#[derive(Default)]
pub struct Allocations(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// By address.
    blocks: BTreeMap<u64, Block>,
    /// Contains all device memory that ever existed. The simulator's device addresses are virtual
    /// and disjoint from host memory.
    device_span: Range<u64>,
}

impl Kind {
    /// Whether it is device memory.
    pub fn is_device(self) -> bool {
        matches!(self, Self::Device | Self::DeviceAsync)
    }
}

impl Allocations {
    /// Adds a block.
    pub fn insert(&self, block: Block) {
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

    /// Frees the block that begins at `base`, if it is one, and removes it. That happens before `free`
    /// is called, because the address may be reused at once; if `free` fails, the block is back.
    pub fn remove_by(
        &self,
        base: u64,
        free: impl FnOnce(Option<Block>) -> Outcome<()>,
    ) -> Outcome<()> {
        let block = self.lock().blocks.remove(&base);
        let freed = free(block);
        if freed.is_err()
            && let Some(block) = block
        {
            self.insert(block);
        }
        freed
    }

    /// The block that contains this address.
    pub fn find(&self, address: u64) -> Option<Block> {
        let inner = self.lock();
        let (_, block) = inner.blocks.range(..=address).next_back()?;
        (address - block.base < block.bytes as u64).then_some(*block)
    }

    /// Whether the address is or was device memory. An address of freed memory must not be taken for
    /// host memory and dereferenced.
    pub fn is_or_was_device(&self, address: u64) -> bool {
        self.lock().device_span.contains(&address)
    }

    /// Bytes of stream-ordered memory on a device.
    pub fn async_bytes(&self, ordinal: i32) -> u64 {
        let inner = self.lock();
        let of_pool = |block: &&Block| block.ordinal == ordinal && block.kind == Kind::DeviceAsync;
        let blocks = inner.blocks.values().filter(of_pool);
        blocks.map(|block| block.bytes as u64).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_block_around_it() {
        let blocks = Allocations::default();
        let block = Block {
            base: 0x1000,
            bytes: 16,
            kind: Kind::Device,
            ordinal: 0,
            context: 1,
        };
        blocks.insert(block);
        assert_eq!(blocks.find(0xfff), None);
        assert_eq!(blocks.find(0x100f), Some(block));
        assert_eq!(blocks.find(0x1010), None);
        assert!(blocks.is_or_was_device(0x1000));
        let remove = |base, found| {
            blocks.remove_by(base, |block| {
                assert_eq!(block, found);
                Ok(())
            })
        };
        remove(0x1001, None).unwrap();
        remove(0x1000, Some(block)).unwrap();
        assert_eq!(blocks.find(0x1000), None);
        assert!(blocks.is_or_was_device(0x100f));
        assert!(!blocks.is_or_was_device(0x1010));
    }
}
