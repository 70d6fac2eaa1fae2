//! Where blocks are taken and given back: several shards, so that threads do not queue at one.

use crate::sync::lock;
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// As many threads take and give back at the same time without minding each other.
pub(super) const SHARDS: usize = 16;

/// Idle blocks of all sizes behind one lock, which is held for a few instructions only, never
/// while the driver is called. Threads that take and give back write to their own shard alone.
#[derive(Default)]
// Neighbours must not slow each other down by sharing a cache line.
#[repr(align(128))]
pub(super) struct PoolShard {
    stock: Mutex<Stock>,
    /// What lies here. Written under the lock only, so that others can look without.
    cached_bytes: AtomicU64,
}

#[derive(Default)]
struct Stock {
    /// Sorted by size.
    free_blocks: Vec<FreeBlocks>,
    /// As much may be taken before more is out than ever was. See [`LockedShard::take`].
    spare_bytes: u64,
    hits: u64,
}

/// A shard with its lock held.
pub(super) struct LockedShard<'a> {
    shard: &'a PoolShard,
    stock: MutexGuard<'a, Stock>,
}

/// All shards of a pool.
#[derive(Default)]
pub(super) struct PoolShards([PoolShard; SHARDS]);

thread_local! {
    /// The number of this thread's shard, in every pool.
    static OWN: Cell<usize> = const { Cell::new(SHARDS) };
}

/// The number of this thread's shard. Threads get them in turn.
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
    /// A block of this size that any shard has at hand, the own one first. None says little: shards
    /// that are busy are passed by.
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

    /// To the own shard, whoever took it where.
    pub(super) fn give_back(&self, block_bytes: usize, piece: BlockRef, now_ns: u64) {
        let own = own();
        let free = (0..SHARDS).find_map(|at| {
            let number = (own + at) % SHARDS;
            Some((number, self.0[number].try_open()?))
        });
        let (number, mut shard) = free.unwrap_or_else(|| (own, self.0[own].open()));
        if number != own {
            // Somebody else has the same one: from now on each has another.
            OWN.set(number);
        }
        shard.give_back(block_bytes, piece, now_ns);
    }

    /// Idle blocks. Of those who give back at the same time, the last sees what all gave back.
    pub(super) fn cached_bytes(&self) -> u64 {
        // Between what was written at the own shard and what is read of others.
        fence(Ordering::SeqCst);
        let bytes = |shard: &PoolShard| shard.cached_bytes.load(Ordering::Relaxed);
        self.0.iter().map(bytes).sum()
    }

    /// All of them, when the last one is free. Always in the same order, so that two who do this
    /// do not wait for each other; nobody else holds more than one.
    pub(super) fn open_all(&self) -> [LockedShard<'_>; SHARDS] {
        self.0.each_ref().map(PoolShard::open)
    }
}

impl PoolShard {
    fn open(&self) -> LockedShard<'_> {
        let stock = lock(&self.stock);
        LockedShard { shard: self, stock }
    }

    /// None where it is busy.
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
    /// A block, where that makes no new high of what is out.
    ///
    /// The high-water mark is of all shards together, but a count that all of them write would be
    /// what they queue for. So what is out may rise by `spare_bytes` at each shard: in all of them
    /// together that is the high-water mark less what is out. It goes out and comes back with the
    /// blocks; where it is short, all shards are asked.
    fn take(&mut self, block_bytes: usize) -> Option<BlockRef> {
        let left_bytes = self.stock.spare_bytes.checked_sub(block_bytes as u64)?;
        let piece = self.take_idle(block_bytes)?;
        self.stock.spare_bytes = left_bytes;
        Some(piece)
    }

    /// A block. What is out is the caller's to account for.
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

    /// The blocks of a new slab, the one to be taken first last.
    pub(super) fn stock_up(
        &mut self,
        block_bytes: usize,
        pieces: impl ExactSizeIterator<Item = BlockRef>,
    ) {
        let bytes = (pieces.len() * block_bytes) as u64;
        self.free_blocks_mut(block_bytes).stock_up(pieces);
        self.set_cached_bytes(self.cached_bytes() + bytes);
    }

    /// Forget the blocks of all slabs that are gone.
    pub(super) fn clear(&mut self, block_bytes: usize, gone: impl Fn(u32) -> bool) {
        if let Ok(at) = self.find(block_bytes) {
            let bytes = (self.stock.free_blocks[at].clear(gone) * block_bytes) as u64;
            self.set_cached_bytes(self.cached_bytes() - bytes);
        }
    }

    /// Forget a size of which all slabs are gone.
    pub(super) fn remove_size(&mut self, block_bytes: usize) {
        self.clear(block_bytes, |_| true);
        if let Ok(at) = self.find(block_bytes) {
            self.stock.free_blocks.remove(at);
        }
    }

    /// Take up to `bytes` of what may be taken before there is a new high. How much there was.
    pub(super) fn take_spare(&mut self, bytes: u64) -> u64 {
        let taken = bytes.min(self.stock.spare_bytes);
        self.stock.spare_bytes -= taken;
        taken
    }

    pub(super) fn spare_bytes(&self) -> u64 {
        self.stock.spare_bytes
    }

    pub(super) fn cached_bytes(&self) -> u64 {
        self.shard.cached_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn hits(&self) -> u64 {
        self.stock.hits
    }

    pub(super) fn free_blocks(&self, block_bytes: usize) -> Option<&FreeBlocks> {
        let at = self.find(block_bytes).ok()?;
        Some(&self.stock.free_blocks[at])
    }

    fn free_blocks_mut(&mut self, block_bytes: usize) -> &mut FreeBlocks {
        let at = self.find(block_bytes).unwrap_or_else(|at| {
            self.stock
                .free_blocks
                .insert(at, FreeBlocks::new(block_bytes));
            at
        });
        &mut self.stock.free_blocks[at]
    }

    /// Where the blocks of this size are, or would be.
    fn find(&self, block_bytes: usize) -> Result<usize, usize> {
        let free_blocks = &self.stock.free_blocks;
        free_blocks.binary_search_by_key(&block_bytes, |free_blocks| free_blocks.block_bytes)
    }

    /// The lock is what makes this a plain number: nobody else writes it.
    fn set_cached_bytes(&self, bytes: u64) {
        self.shard.cached_bytes.store(bytes, Ordering::Relaxed);
    }
}

/// A block of the pool's: where it is, and the number of the slab that it was cut from.
#[derive(Clone, Copy)]
pub(super) struct BlockRef {
    pub(super) start: NonNull<u8>,
    pub(super) slab: u32,
}

// SAFETY: an address in memory that the pool owns; whoever holds it is its only user.
unsafe impl Send for BlockRef {}

/// Idle blocks of one size. Blocks of a slab may lie in several shards.
// Lists must not slow each other down by sharing a cache line.
#[repr(align(64))]
pub(super) struct FreeBlocks {
    pub(super) block_bytes: usize,
    /// The one given back last is taken first: it is the warmest.
    idle: Vec<BlockRef>,
    /// By the number of the slab; those beyond the end are as new.
    tallies: Vec<SlabTally>,
}

/// What one list knows of one slab.
#[derive(Clone, Copy, Default)]
#[repr(align(64))] // as for the list
pub(super) struct SlabTally {
    /// Blocks of it that lie here.
    pub(super) idle: u32,
    /// When one came back to here last, whether it still lies here or not.
    pub(super) back_ns: u64,
}

/// Room for as many blocks is made at once: as few as one would share a cache line with others.
const ROOM_MIN: usize = 16;

impl FreeBlocks {
    pub(super) fn new(block_bytes: usize) -> Self {
        Self {
            block_bytes,
            idle: Vec::new(),
            tallies: Vec::new(),
        }
    }

    pub(super) fn pop(&mut self) -> Option<BlockRef> {
        let piece = self.idle.pop()?;
        self.tallies[piece.slab as usize].idle -= 1;
        Some(piece)
    }

    pub(super) fn push(&mut self, piece: BlockRef, now_ns: u64) {
        self.put(piece);
        // Threads look at the clock before they are here, so it may be an older time that is new.
        let tally = &mut self.tallies[piece.slab as usize];
        tally.back_ns = tally.back_ns.max(now_ns);
    }

    /// The blocks of a new slab, the one to be taken first last.
    pub(super) fn stock_up(&mut self, pieces: impl ExactSizeIterator<Item = BlockRef>) {
        self.idle.reserve(pieces.len());
        pieces.for_each(|piece| self.put(piece));
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
        let known = self.tallies.get(slab as usize);
        known.copied().unwrap_or_default()
    }

    /// Forget the blocks of all slabs that are gone. How many lay here.
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
