//! State shared by a pool and its blocks.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use super::PoolStats;
use super::block_sizes;
use super::shard::{self, BlockRef, PoolShards, SHARDS};
use super::slabs::{LockedPool, SlabTable};
use crate::device::Shared;
use crate::device_core::DeviceCore;
use crate::memory::budget::{Frees, IdleMemory};
use crate::memory::pinning::{Block, whole_pages};
use crate::sync::lock;
use crate::{Error, Result};

/// Blocks up to this size are cut from slabs, at least eight from each. Larger ones are pinned
/// individually, since a slab of them would pin much unused memory.
const SLAB_BLOCK_BYTES_MAX: usize = 256 << 10;

/// Minimum slab size: a huge page, which is also the smallest size pinned the fast way.
const SLAB_BYTES: usize = 2 << 20;

/// Number of checks for expired idle memory within the idle time limit.
const LOOKS_A_LIMIT: u64 = 4;

/// How much memory of dropped buffers a device keeps for new ones.
const DROPPED_BYTES_MAX: u64 = 64 << 20;

/// Part of the limit that a device's store frees at once when idle memory exceeds it.
const FREED_PART: u64 = 4;

/// The shards and their limits. Blocks in use keep it alive. It keeps the driver open but not the device: a
/// block parked with the device would otherwise form a reference cycle.
pub(super) struct Store {
    pub(super) core: Arc<DeviceCore>,
    device: Weak<Shared>,
    /// The device made it for itself: it is known to the budget, and its idle memory goes with the device.
    of_device: Option<DeviceStore>,
    block_sizes: BlockSizes,
    pub(super) shards: PoolShards,
    /// Locked before any shard.
    slabs: Mutex<SlabTable>,
    limits: Limits,
    /// The limit on the amount of idle memory; `u64::MAX` if there is none.
    idle_bytes_max: AtomicU64,
    clock: Clock,
    /// Time of the next check for expired idle memory.
    next_look_ns: AtomicU64,
    /// Idle memory exceeds the limit, but no whole slab is idle. Written with everything locked.
    stuck: AtomicBool,
}

/// How a request maps to a block size.
#[derive(Clone, Copy)]
pub(super) enum BlockSizes {
    /// Rounded up by at most an eighth; small blocks are cut from slabs.
    Rounded,
    /// Exactly as requested, each pinned individually. For few, large blocks of known sizes.
    Exact,
}

/// What a device keeps in a store of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceStore {
    /// Slots of loads and pipelines, as many as they ever had.
    Slots,
    /// Memory of dropped [`PinnedBuf`](crate::PinnedBuf)s.
    DroppedBuffers,
}

/// What a request may do if the budget has no room for a new block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MakeRoom {
    /// Free memory of dropped buffers. For memory that only adds speed.
    DroppedBuffers,
    /// Free all idle memory of devices and of the pool.
    AllIdle,
    /// The same, and then wait for memory that is about to be released.
    AllIdleOrWait,
}

/// Limits on the amount and age of idle memory.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Limits {
    pub(super) idle_bytes_max: Option<u64>,
    pub(super) idle_time_max: Option<Duration>,
}

/// Monotonic time in nanoseconds.
pub(super) type Clock = Box<dyn Fn() -> u64 + Send + Sync>;

/// A block in use. The buffer that holds it must return it.
#[derive(Clone, Copy)]
pub(super) struct TakenBlock {
    pub(super) piece: BlockRef,
    pub(super) block_bytes: usize,
}

impl Store {
    pub(super) fn new(
        core: &Arc<DeviceCore>,
        device: Weak<Shared>,
        block_sizes: BlockSizes,
        limits: Limits,
        clock: Clock,
    ) -> Self {
        Self {
            core: Arc::clone(core),
            device,
            of_device: None,
            block_sizes,
            shards: PoolShards::default(),
            slabs: Mutex::default(),
            idle_bytes_max: AtomicU64::new(limits.idle_bytes_max.unwrap_or(u64::MAX)),
            limits,
            clock,
            next_look_ns: AtomicU64::new(0),
            stuck: AtomicBool::new(false),
        }
    }

    /// A store that the device makes for itself, with blocks of exactly the requested size. Other requests
    /// may free its idle memory.
    pub(super) fn of_device(
        core: &Arc<DeviceCore>,
        device: Weak<Shared>,
        kept: DeviceStore,
        clock: Clock,
    ) -> Arc<Self> {
        let idle_bytes_max = match kept {
            DeviceStore::Slots => None,
            DeviceStore::DroppedBuffers => Some(DROPPED_BYTES_MAX),
        };
        let limits = Limits {
            idle_bytes_max,
            ..Limits::default()
        };
        let store = Self::new(core, device, BlockSizes::Exact, limits, clock);
        let store = Arc::new(Self {
            of_device: Some(kept),
            ..store
        });
        let idle: Weak<Self> = Arc::downgrade(&store);
        core.budget.may_free(idle);
        store
    }

    /// Takes a block of at least `bytes`, which is more than 0 and at most `isize::MAX`. `make_room`
    /// is for a new block.
    pub(super) fn take(&self, bytes: usize, make_room: MakeRoom) -> Result<TakenBlock> {
        let block_bytes = match self.block_sizes {
            BlockSizes::Rounded => block_sizes::round_up(bytes),
            BlockSizes::Exact => bytes,
        };
        self.free_what_was_idle_too_long();
        let taken = self.shards.take(block_bytes).or_else(|| {
            // A shard may have been busy. Never pin while any shard has a block.
            let taken = self.whole().take(block_bytes);
            // Blocks of dropped transfers may have completed since.
            taken.or_else(|| {
                self.reclaim()
                    .then(|| self.whole().take(block_bytes))
                    .flatten()
            })
        });
        let piece = match taken {
            Some(piece) => piece,
            None => self.grow(block_bytes, make_room)?,
        };
        Ok(TakenBlock { piece, block_bytes })
    }

    /// The smallest idle block of these sizes.
    pub(super) fn take_idle(&self, sizes: RangeInclusive<usize>) -> Option<TakenBlock> {
        let (piece, block_bytes) = self.whole().take_of(sizes)?;
        Some(TakenBlock { piece, block_bytes })
    }

    pub(super) fn give_back(&self, taken: TakenBlock) {
        if self.core.process.is_parent() {
            // A forked child cannot use it, and a thread of the parent's may have held the locks.
            return;
        }
        let now_ns = (self.clock)();
        self.shards
            .give_back(taken.block_bytes, taken.piece, now_ns);
        self.core.budget.ring();
        let max = self.idle_bytes_max();
        if max < u64::MAX {
            self.free_what_is_too_much(max, taken);
        }
        self.free_what_was_idle_too_long();
    }

    /// After the device's shutdown, nothing would free what stays idle. A block that is returned during the
    /// shutdown is seen by one of the two, since both lock the shard.
    fn idle_bytes_max(&self) -> u64 {
        let gone = self.of_device.is_some() && self.device.strong_count() == 0;
        match gone {
            true => 0,
            false => self.idle_bytes_max.load(Ordering::Relaxed),
        }
    }

    /// Sets the limit on the amount of idle memory, and returns the one before.
    pub(super) fn keep(&self, at_most_bytes: u64) -> u64 {
        let before = self.idle_bytes_max.swap(at_most_bytes, Ordering::Relaxed);
        self.trim(at_most_bytes);
        before
    }

    fn whole(&self) -> LockedPool<'_> {
        LockedPool {
            slabs: lock(&self.slabs),
            shards: self.shards.open_all(),
        }
    }

    /// Reclaims buffers parked with the device. Returns whether any came back.
    fn reclaim(&self) -> bool {
        let device = self.device.upgrade();
        device.is_some_and(|device| device.deferred.reclaim() > 0)
    }

    /// Pins memory for this size and takes its first block.
    fn grow(&self, block_bytes: usize, make_room: MakeRoom) -> Result<BlockRef> {
        let blocks = match self.block_sizes {
            BlockSizes::Rounded if block_bytes <= SLAB_BLOCK_BYTES_MAX => {
                SLAB_BYTES.div_ceil(block_bytes)
            }
            _ => 1,
        };
        match self.pin_slab(block_bytes, blocks, make_room) {
            // A slab does not fit, but a single block may.
            Err(Error::OverBudget { .. }) if blocks > 1 => self.pin_slab(block_bytes, 1, make_room),
            result => result,
        }
    }

    fn pin_slab(&self, block_bytes: usize, blocks: usize, make_room: MakeRoom) -> Result<BlockRef> {
        let memory = self.pin(block_bytes * blocks, make_room)?;
        let piece = self.whole().add(block_bytes, memory, blocks as u32);
        if blocks > 1 {
            self.core.budget.ring();
        }
        Ok(piece)
    }

    /// Pins memory, within the budget.
    fn pin(&self, bytes: usize, make_room: MakeRoom) -> Result<Block> {
        let locked_bytes = whole_pages(bytes)? as u64;
        let budget = &self.core.budget;
        // The budget knows those of devices.
        let own = self.of_device.is_none().then_some(self as &dyn IdleMemory);
        let frees = match make_room {
            MakeRoom::DroppedBuffers => Frees::DroppedBuffers,
            MakeRoom::AllIdle | MakeRoom::AllIdleOrWait => Frees::AllAnd(own),
        };
        let may_wait = make_room == MakeRoom::AllIdleOrWait;
        let reservation = budget.reserve_freeing(locked_bytes, frees, may_wait)?;
        Block::pin_reserved(&self.core, bytes, reservation)
    }

    /// Frees idle memory until at most `keep_bytes` are left or no more can be freed.
    pub(super) fn trim(&self, keep_bytes: u64) {
        let mut whole = self.whole();
        let too_much_bytes = whole.cached_bytes().saturating_sub(keep_bytes);
        let freed = whole.remove_idle(too_much_bytes);
        drop(whole);
        drop(freed); // no lock is held: this calls the driver
    }

    /// Frees at least `bytes` of idle memory if there is so much, longest idle first. Returns how much.
    pub(super) fn free_idle(&self, bytes: u64) -> u64 {
        let freed = self.whole().remove_idle(bytes);
        freed.iter().map(Block::bytes).sum()
    }

    /// Trims to `max` after the block `back` was returned.
    fn free_what_is_too_much(&self, max: u64, back: TakenBlock) {
        let stuck = || self.stuck.load(Ordering::Relaxed);
        if self.shards.cached_bytes() <= max && !stuck() {
            return;
        }
        let mut whole = self.whole();
        let mut too_much_bytes = whole.cached_bytes().saturating_sub(max);
        if self.of_device.is_some() && too_much_bytes > 0 {
            // Finding the longest idle means looking at all of them, so not for each block that returns.
            too_much_bytes += max / FREED_PART;
        }
        // What could not be freed last time still cannot, unless this was the slab's last block in use.
        if too_much_bytes > 0 && stuck() && !whole.is_idle(back.block_bytes, back.piece.slab) {
            return;
        }
        let freed = whole.remove_idle(too_much_bytes);
        let still_too_much = whole.cached_bytes() > max;
        self.stuck.store(still_too_much, Ordering::Relaxed);
        drop(whole);
        drop(freed); // no lock is held: this calls the driver
    }

    fn free_what_was_idle_too_long(&self) {
        let Some(max) = self.limits.idle_time_max else {
            return;
        };
        let max_ns = u64::try_from(max.as_nanos()).unwrap_or(u64::MAX);
        let now_ns = (self.clock)();
        let look_ns = self.next_look_ns.load(Ordering::Relaxed);
        let next_ns = now_ns.saturating_add(max_ns / LOOKS_A_LIMIT);
        let mine = now_ns >= look_ns
            && self
                .next_look_ns
                .compare_exchange(look_ns, next_ns, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if !mine {
            return;
        }
        let too_long = |since_ns| now_ns.saturating_sub(since_ns) > max_ns;
        let freed = self.whole().remove_idle_if(|slab| too_long(slab.since_ns));
        drop(freed); // no lock is held: this calls the driver
    }

    pub(super) fn stats(&self) -> PoolStats {
        self.whole().stats()
    }
}

impl IdleMemory for Store {
    fn idle_locked_bytes(&self) -> u64 {
        let idle = self.whole().idle_slabs();
        idle.iter().map(|slab| slab.locked_bytes).sum()
    }

    fn free_idle_locked(&self, bytes: u64) -> u64 {
        let freed = self.whole().remove_locked(bytes);
        freed.iter().map(Block::locked_bytes).sum()
    }

    fn is_of_dropped_buffers(&self) -> bool {
        self.of_device == Some(DeviceStore::DroppedBuffers)
    }
}

/// Keeps the store alive. Each shard has one, and its blocks hold references to it: if they all referenced
/// the store directly, all threads would contend for one reference count.
// The reference count comes first and must not share a cache line with another one.
#[repr(align(128))]
pub(super) struct ShardRef {
    pub(super) store: Arc<Store>,
}

/// The references of all shards.
pub(super) struct ShardRefs([Arc<ShardRef>; SHARDS]);

impl ShardRefs {
    pub(super) fn new(store: &Arc<Store>) -> Self {
        Self(std::array::from_fn(|_| {
            let store = Arc::clone(store);
            Arc::new(ShardRef { store })
        }))
    }

    /// The reference of this thread's shard.
    pub(super) fn own(&self) -> &Arc<ShardRef> {
        &self.0[shard::own()]
    }
}
