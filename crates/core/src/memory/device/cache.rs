//! Cache of device memory: blocks of dropped buffers, for the next ones.

use crate::sync::lock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use pinlane_driver::DevicePtr;

/// Of a block at most this part more than was asked for: the rest lies idle.
const IDLE_PART: usize = 8;

/// Blocks that nobody uses. None at first: somebody has to allow it.
///
/// It frees nothing itself. Blocks that it lets go of are the caller's to free, without its lock.
#[derive(Default)]
pub(crate) struct DeviceMemoryCache {
    kept: Mutex<Kept>,
    /// Held by whoever takes all and frees it.
    emptying: Mutex<()>,
}

#[derive(Default)]
struct Kept {
    at_most_bytes: u64,
    bytes: u64,
    /// How many there ever were.
    count: u64,
    /// By their number: the oldest first.
    blocks: BTreeMap<u64, Block>,
    /// The same by size, each with its number.
    sizes: BTreeSet<(usize, u64)>,
}

/// One allocation of the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Block {
    pub(crate) ptr: DevicePtr,
    pub(crate) bytes: usize,
}

impl DeviceMemoryCache {
    /// Keep so many bytes from now on. How many it was before, and what is more than that now.
    #[must_use]
    pub(crate) fn limit(&self, at_most_bytes: u64) -> (u64, Vec<Block>) {
        let mut kept = self.lock();
        let before = std::mem::replace(&mut kept.at_most_bytes, at_most_bytes);
        (before, kept.shrink_to(at_most_bytes))
    }

    /// Whether anything may be kept.
    pub(crate) fn is_allowed(&self) -> bool {
        self.lock().at_most_bytes > 0
    }

    /// Hand all blocks to `free`. More are kept as before. Whoever else wants that waits: when it
    /// returns, all that was kept is free.
    pub(crate) fn empty<T>(&self, free: impl FnOnce(Vec<Block>) -> T) -> T {
        let emptying = &self.emptying;
        let _order = lock(emptying);
        let all = self.lock().shrink_to(0);
        free(all)
    }

    /// The smallest block with room for so many bytes, if it is not much too large.
    #[must_use]
    pub(crate) fn take(&self, bytes: usize) -> Option<Block> {
        let most = bytes.saturating_add(bytes / IDLE_PART);
        let mut kept = self.lock();
        let &(_, number) = kept.sizes.range((bytes, 0)..=(most, u64::MAX)).next()?;
        kept.remove(number)
    }

    /// Keep a block. What there is no room for now: older ones first, or the block itself.
    #[must_use]
    pub(crate) fn put(&self, block: Block) -> Vec<Block> {
        let mut kept = self.lock();
        if block.bytes as u64 > kept.at_most_bytes {
            return vec![block];
        }
        kept.insert(block);
        let at_most_bytes = kept.at_most_bytes;
        kept.shrink_to(at_most_bytes)
    }

    /// Bytes that are kept now.
    pub(crate) fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        lock(&self.kept)
    }
}

impl Kept {
    fn insert(&mut self, block: Block) {
        self.count += 1;
        self.bytes += block.bytes as u64;
        self.blocks.insert(self.count, block);
        self.sizes.insert((block.bytes, self.count));
    }

    fn remove(&mut self, number: u64) -> Option<Block> {
        let block = self.blocks.remove(&number)?;
        self.sizes.remove(&(block.bytes, number));
        self.bytes -= block.bytes as u64;
        Some(block)
    }

    /// The oldest blocks, as many as are too many.
    fn shrink_to(&mut self, bytes: u64) -> Vec<Block> {
        let mut excess = Vec::new();
        while self.bytes > bytes
            && let Some((&oldest, _)) = self.blocks.first_key_value()
        {
            excess.extend(self.remove(oldest));
        }
        excess
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn block(number: u64, bytes: usize) -> Block {
        Block {
            ptr: DevicePtr(number),
            bytes,
        }
    }

    #[test]
    fn nothing_is_kept_until_it_is_allowed() {
        let kept = DeviceMemoryCache::default();
        assert_eq!(kept.put(block(1, MIB)), [block(1, MIB)]);
        assert_eq!(kept.take(MIB), None);
        assert_eq!(kept.bytes(), 0);
    }

    #[test]
    fn the_smallest_that_fits_is_taken_and_none_that_is_much_too_large() {
        let kept = DeviceMemoryCache::default();
        assert_eq!(kept.limit(u64::MAX), (0, vec![]));
        for (number, bytes) in [(1, 9 * MIB), (2, 8 * MIB), (3, 9 * MIB + 1)] {
            assert_eq!(kept.put(block(number, bytes)), []);
        }
        assert_eq!(kept.take(10 * MIB), None);
        assert_eq!(kept.take(7 * MIB), None, "an eighth of 7 is less than 1");
        assert_eq!(kept.take(8 * MIB), Some(block(2, 8 * MIB)));
        assert_eq!(kept.take(8 * MIB), Some(block(1, 9 * MIB)));
        assert_eq!(kept.take(8 * MIB), None, "one byte more than an eighth");
        assert_eq!(kept.bytes(), 9 * MIB as u64 + 1);
        assert_eq!(kept.empty(|all| all), [block(3, 9 * MIB + 1)]);
        assert_eq!(kept.bytes(), 0);
    }

    #[test]
    fn older_blocks_make_room_for_newer_ones() {
        let kept = DeviceMemoryCache::default();
        let ten = 10 * MIB as u64;
        assert_eq!(kept.limit(ten), (0, vec![]));
        assert_eq!(kept.put(block(1, 4 * MIB)), []);
        assert_eq!(kept.put(block(2, 4 * MIB)), []);
        assert_eq!(kept.put(block(3, 11 * MIB)), [block(3, 11 * MIB)]);
        assert_eq!(kept.put(block(5, 4 * MIB)), [block(1, 4 * MIB)]);
        assert_eq!(kept.bytes(), 8 * MIB as u64);
        let seven = 7 * MIB as u64;
        assert_eq!(kept.limit(seven), (ten, vec![block(2, 4 * MIB)]));
        assert_eq!(kept.limit(0), (seven, vec![block(5, 4 * MIB)]));
        assert_eq!(kept.bytes(), 0);
    }
}
