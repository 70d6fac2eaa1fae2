//! Shards of a pool, so that threads do not contend for one lock.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::sync::lock;

/// Number of shards: this many threads can take and return blocks without contention.
pub(super) const SHARDS: usize = 16;

/// Idle blocks of all sizes behind one lock, held for a few instructions and never during a driver call. A
/// thread that takes and returns blocks writes only to its own shard.
#[derive(Default)]
// Avoids false sharing between neighbours.
#[repr(align(128))]
pub(super) struct PoolShard {
    stock: Mutex<Stock>,
    /// Bytes of idle blocks in this shard. Written under the lock, so other threads can read it without.
    cached_bytes: AtomicU64,
}

#[derive(Default)]
pub(super) struct Stock {
    /// Sorted by size.
    free_blocks: Vec<FreeBlocks>,
    /// How much this shard may hand out before usage reaches a new maximum. See [`LockedShard::take`].
    pub(super) spare_bytes: u64,
    pub(super) hits: u64,
}

/// A shard with its lock held.
pub(super) struct LockedShard<'a> {
    shard: &'a PoolShard,
    pub(super) stock: MutexGuard<'a, Stock>,
}

/// All shards of a pool.
#[derive(Default)]
pub(super) struct PoolShards([PoolShard; SHARDS]);

thread_local! {
    /// Index of this thread's shard, the same in every pool.
    static OWN: Cell<usize> = const { Cell::new(SHARDS) };
}

/// Index of this thread's shard. Threads are assigned round-robin.
pub(super) fn own() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let own = OWN.get();
    if own < SHARDS {
        return own;
    }
    let own = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
    OWN.set(own);
    own
}

impl PoolShards {
    /// Takes a block of this size from any shard, starting with the thread's own. Skips shards that are
    /// locked, so `None` does not mean that there is no block.
    pub(super) fn take(&self, block_bytes: usize) -> Option<BlockRef> {
        let own = own();
        (0..SHARDS).find_map(|at| {
            let shard = &self.0[(own + at) % SHARDS];
            if shard.cached_bytes.load(Ordering::Relaxed) < block_bytes as u64 {
                return None;
            }
            shard.try_open()?.take(block_bytes)
        })
    }

    /// Returns a block to this thread's shard, wherever it was taken.
    pub(super) fn give_back(&self, block_bytes: usize, piece: BlockRef, now_ns: u64) {
        let own = own();
        let free = (0..SHARDS).find_map(|at| {
            let number = (own + at) % SHARDS;
            Some((number, self.0[number].try_open()?))
        });
        let (number, mut shard) = free.unwrap_or_else(|| (own, self.0[own].open()));
        if number != own {
            // Another thread uses the same shard, so switch to this one.
            OWN.set(number);
        }
        shard.give_back(block_bytes, piece, now_ns);
    }

    /// Bytes of all idle blocks. Of several threads returning blocks at once, the last one sees them all.
    pub(super) fn cached_bytes(&self) -> u64 {
        // Orders the write to the own shard before the reads of the others.
        fence(Ordering::SeqCst);
        let bytes = |shard: &PoolShard| shard.cached_bytes.load(Ordering::Relaxed);
        self.0.iter().map(bytes).sum()
    }

    /// Locks all shards, always in the same order; all other code locks one at a time.
    pub(super) fn open_all(&self) -> [LockedShard<'_>; SHARDS] {
        self.0.each_ref().map(PoolShard::open)
    }
}

impl PoolShard {
    fn open(&self) -> LockedShard<'_> {
        let stock = lock(&self.stock);
        LockedShard { shard: self, stock }
    }

    /// Locks the shard, or returns `None` if it is locked.
    fn try_open(&self) -> Option<LockedShard<'_>> {
        let stock = match self.stock.try_lock() {
            Ok(stock) => stock,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(LockedShard { shard: self, stock })
    }
}

impl LockedShard<'_> {
    /// Takes a block, unless that would raise the high-water mark.
    ///
    /// The high-water mark covers all shards, but a shared counter would be a point of contention. So each
    /// shard may hand out `spare_bytes` more; the sum over all shards is the high-water mark minus the
    /// bytes in use. Spare bytes leave and return with the blocks. A shard that runs short locks all.
    fn take(&mut self, block_bytes: usize) -> Option<BlockRef> {
        let left_bytes = self.stock.spare_bytes.checked_sub(block_bytes as u64)?;
        let piece = self.take_idle(block_bytes)?;
        self.stock.spare_bytes = left_bytes;
        Some(piece)
    }

    /// Takes a block. The caller accounts for its use.
    pub(super) fn take_idle(&mut self, block_bytes: usize) -> Option<BlockRef> {
        let at = self.find(block_bytes).ok()?;
        let piece = self.stock.free_blocks[at].pop()?;
        self.stock.hits += 1;
        self.set_cached_bytes(self.cached_bytes() - block_bytes as u64);
        Some(piece)
    }

    fn give_back(&mut self, block_bytes: usize, piece: BlockRef, now_ns: u64) {
        self.free_blocks_mut(block_bytes).push(piece, now_ns);
        self.stock.spare_bytes += block_bytes as u64;
        self.set_cached_bytes(self.cached_bytes() + block_bytes as u64);
    }

    /// Adds the blocks of a new slab. The last one is taken first.
    pub(super) fn stock_up(
        &mut self,
        block_bytes: usize,
        pieces: impl ExactSizeIterator<Item = BlockRef>,
    ) {
        let bytes = (pieces.len() * block_bytes) as u64;
        let free_blocks = self.free_blocks_mut(block_bytes);
        free_blocks.idle.reserve(pieces.len());
        pieces.for_each(|piece| free_blocks.put(piece));
        self.set_cached_bytes(self.cached_bytes() + bytes);
    }

    /// Removes the blocks of all slabs that are gone.
    pub(super) fn clear(&mut self, block_bytes: usize, gone: impl Fn(u32) -> bool) {
        if let Ok(at) = self.find(block_bytes) {
            let bytes = (self.stock.free_blocks[at].clear(gone) * block_bytes) as u64;
            self.set_cached_bytes(self.cached_bytes() - bytes);
        }
    }

    /// Removes a size whose slabs are all gone.
    pub(super) fn remove_size(&mut self, block_bytes: usize) {
        self.clear(block_bytes, |_| true);
        if let Ok(at) = self.find(block_bytes) {
            self.stock.free_blocks.remove(at);
        }
    }

    /// Takes up to `bytes` of the shard's spare bytes and returns how many.
    pub(super) fn take_spare(&mut self, bytes: u64) -> u64 {
        let taken = bytes.min(self.stock.spare_bytes);
        self.stock.spare_bytes -= taken;
        taken
    }

    pub(super) fn cached_bytes(&self) -> u64 {
        self.shard.cached_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn free_blocks(&self, block_bytes: usize) -> Option<&FreeBlocks> {
        let at = self.find(block_bytes).ok()?;
        Some(&self.stock.free_blocks[at])
    }

    fn free_blocks_mut(&mut self, block_bytes: usize) -> &mut FreeBlocks {
        let at = self.find(block_bytes).unwrap_or_else(|at| {
            let new = FreeBlocks {
                block_bytes,
                idle: Vec::new(),
                tallies: Vec::new(),
            };
            self.stock.free_blocks.insert(at, new);
            at
        });
        &mut self.stock.free_blocks[at]
    }

    /// Index of this size's list, or where to insert it.
    fn find(&self, block_bytes: usize) -> Result<usize, usize> {
        let free_blocks = &self.stock.free_blocks;
        free_blocks.binary_search_by_key(&block_bytes, |free_blocks| free_blocks.block_bytes)
    }

    /// A plain store is enough, since only the lock's holder writes.
    fn set_cached_bytes(&self, bytes: u64) {
        self.shard.cached_bytes.store(bytes, Ordering::Relaxed);
    }
}

/// A block: its address, and the number of the slab it was cut from.
#[derive(Clone, Copy)]
pub(super) struct BlockRef {
    pub(super) start: NonNull<u8>,
    pub(super) slab: u32,
}

// SAFETY: an address in memory that the pool owns; its holder is its only user.
unsafe impl Send for BlockRef {}

/// Idle blocks of one size. Blocks of one slab may be in several shards.
// Avoids false sharing between lists.
#[repr(align(64))]
pub(super) struct FreeBlocks {
    pub(super) block_bytes: usize,
    /// Used as a stack: the block returned last is the warmest in cache.
    idle: Vec<BlockRef>,
    /// Indexed by slab number; missing entries count as default.
    tallies: Vec<SlabTally>,
}

/// What one list knows about one slab.
#[derive(Clone, Copy, Default)]
#[repr(align(64))] // avoids false sharing, as above
pub(super) struct SlabTally {
    /// Number of its blocks in this list.
    pub(super) idle: u32,
    /// When one was last returned to this list, whether or not it is still here.
    pub(super) back_ns: u64,
}

impl SlabTally {
    /// Adds what another list knows.
    pub(super) fn add(&mut self, other: Self) {
        self.idle += other.idle;
        self.back_ns = self.back_ns.max(other.back_ns);
    }
}

/// Minimum capacity. A smaller vector would share a cache line with others.
const ROOM_MIN: usize = 16;

impl FreeBlocks {
    fn pop(&mut self) -> Option<BlockRef> {
        let piece = self.idle.pop()?;
        self.tallies[piece.slab as usize].idle -= 1;
        Some(piece)
    }

    fn push(&mut self, piece: BlockRef, now_ns: u64) {
        self.put(piece);
        // Threads read the clock before they take the lock, so times may arrive out of order.
        let tally = &mut self.tallies[piece.slab as usize];
        tally.back_ns = tally.back_ns.max(now_ns);
    }

    fn put(&mut self, piece: BlockRef) {
        if self.idle.capacity() == 0 {
            self.idle.reserve(ROOM_MIN);
        }
        self.idle.push(piece);
        let slab = piece.slab as usize;
        if slab >= self.tallies.len() {
            self.tallies.resize(slab + 1, SlabTally::default());
        }
        self.tallies[slab].idle += 1;
    }

    pub(super) fn tally(&self, slab: u32) -> SlabTally {
        self.tallies.get(slab as usize).copied().unwrap_or_default()
    }

    /// By slab number; those of the last slabs may be missing.
    pub(super) fn tallies(&self) -> &[SlabTally] {
        &self.tallies
    }

    /// Removes the blocks of all slabs that are gone, and returns how many.
    pub(super) fn clear(&mut self, gone: impl Fn(u32) -> bool) -> usize {
        let before = self.idle.len();
        self.idle.retain(|piece| !gone(piece.slab));
        for (slab, tally) in (0u32..).zip(&mut self.tallies) {
            if gone(slab) {
                *tally = SlabTally::default();
            }
        }
        before - self.idle.len()
    }
}
