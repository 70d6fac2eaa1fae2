//! Cache of device memory from dropped buffers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use pinlane_driver::DevicePtr;

use crate::sync::lock;

/// A cached block may exceed the request by at most 1/8 of the request, since the excess is wasted.
const IDLE_PART: usize = 8;

/// Unused blocks. Empty until a limit is set.
///
/// Frees nothing itself: the caller frees evicted blocks, outside the lock.
#[derive(Default)]
pub(crate) struct DeviceMemoryCache {
    kept: Mutex<Kept>,
    /// Held while all blocks are taken and freed.
    emptying: Mutex<()>,
}

#[derive(Default)]
struct Kept {
    at_most_bytes: u64,
    bytes: u64,
    /// Number of blocks ever cached.
    count: u64,
    /// Keyed by sequence number: oldest first.
    blocks: BTreeMap<u64, Block>,
    /// The same blocks, sorted by size and sequence number.
    sizes: BTreeSet<(usize, u64)>,
}

/// One driver allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Block {
    pub(crate) ptr: DevicePtr,
    pub(crate) bytes: usize,
}

impl DeviceMemoryCache {
    /// Sets the limit in bytes. Returns the previous limit and the blocks that now exceed it.
    #[must_use]
    pub(crate) fn limit(&self, at_most_bytes: u64) -> (u64, Vec<Block>) {
        let mut kept = self.lock();
        let before = std::mem::replace(&mut kept.at_most_bytes, at_most_bytes);
        (before, kept.shrink_to(at_most_bytes))
    }

    /// Whether caching is enabled.
    pub(crate) fn is_allowed(&self) -> bool {
        self.lock().at_most_bytes > 0
    }

    /// Hands all blocks to `free`; caching stays enabled. Concurrent callers wait, so when this returns,
    /// everything that was cached has been freed.
    pub(crate) fn empty<T>(&self, free: impl FnOnce(Vec<Block>) -> T) -> T {
        let _order = lock(&self.emptying);
        let all = self.lock().shrink_to(0);
        free(all)
    }

    /// Takes the smallest block that holds `bytes`, unless it is much too large.
    #[must_use]
    pub(crate) fn take(&self, bytes: usize) -> Option<Block> {
        let most = bytes.saturating_add(bytes / IDLE_PART);
        let mut kept = self.lock();
        let &(_, number) = kept.sizes.range((bytes, 0)..=(most, u64::MAX)).next()?;
        kept.remove(number)
    }

    /// Caches a block. Returns the blocks that no longer fit: older ones first, or the block itself.
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

    /// Number of bytes cached.
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

    /// Removes the oldest blocks until at most `bytes` are left.
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
