//! State shared by a pool and its blocks.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use pinlane_driver::HostFlags;

use super::PoolStats;
use super::block_sizes;
use super::shard::{self, BlockRef, PoolShards, SHARDS};
use super::slabs::{LockedPool, SlabTable};
use crate::device::Shared;
use crate::device_core::DeviceCore;
use crate::memory::pinning::Block;
use crate::sync::lock;
use crate::{Error, Result};

/// Blocks up to this size are cut from slabs, at least eight from each. Larger ones are pinned
/// individually, since a slab of them would pin much unused memory.
const SLAB_BLOCK_BYTES_MAX: usize = 256 << 10;

/// Minimum slab size: a huge page, which is also the smallest size pinned the fast way.
const SLAB_BYTES: usize = 2 << 20;

/// Number of checks for expired idle memory within the idle time limit.
const LOOKS_A_LIMIT: u64 = 4;

/// The shards and their limits. Blocks in use keep it alive. It keeps the driver open but not the device: a
/// block parked with the device would otherwise form a reference cycle.
pub(super) struct Store {
    pub(super) core: Arc<DeviceCore>,
    device: Weak<Shared>,
    block_sizes: BlockSizes,
    pub(super) shards: PoolShards,
    /// Locked before any shard.
    slabs: Mutex<SlabTable>,
    limits: Limits,
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
            block_sizes,
            shards: PoolShards::default(),
            slabs: Mutex::default(),
            limits,
            clock,
            next_look_ns: AtomicU64::new(0),
            stuck: AtomicBool::new(false),
        }
    }

    /// Takes a block of at least `bytes`, which is more than 0 and at most `isize::MAX`. `make_room` frees
    /// idle memory if the budget has no room for a new block.
    pub(super) fn take(&self, bytes: usize, make_room: bool) -> Result<TakenBlock> {
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
        let now_ns = (self.clock)();
        self.shards
            .give_back(taken.block_bytes, taken.piece, now_ns);
        self.core.budget.ring();
        if let Some(max) = self.limits.idle_bytes_max {
            self.free_what_is_too_much(max, taken);
        }
        self.free_what_was_idle_too_long();
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
    fn grow(&self, block_bytes: usize, make_room: bool) -> Result<BlockRef> {
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

    fn pin_slab(&self, block_bytes: usize, blocks: usize, make_room: bool) -> Result<BlockRef> {
        let memory = self.pin(block_bytes * blocks, make_room)?;
        let piece = self.whole().add(block_bytes, memory, blocks as u32);
        if blocks > 1 {
            self.core.budget.ring();
        }
        Ok(piece)
    }

    /// Pins memory. `make_room` frees idle memory if that brings it within the budget.
    fn pin(&self, bytes: usize, make_room: bool) -> Result<Block> {
        let pin = || Block::pin(&self.core, bytes, HostFlags::default());
        match pin() {
            Err(
                over @ Error::OverBudget {
                    requested_bytes,
                    in_use_bytes,
                    limit_bytes,
                    ..
                },
            ) if make_room => {
                let short_bytes = in_use_bytes
                    .saturating_add(requested_bytes)
                    .saturating_sub(limit_bytes);
                // If it would not fit anyway, freeing does not help.
                let hopeless = requested_bytes > limit_bytes;
                if hopeless || !self.make_room(short_bytes) {
                    return Err(over);
                }
                pin()
            }
            result => result,
        }
    }

    /// Frees idle memory until at most `keep_bytes` are left or no more can be freed.
    pub(super) fn trim(&self, keep_bytes: u64) {
        let mut whole = self.whole();
        let too_much_bytes = whole.cached_bytes().saturating_sub(keep_bytes);
        let freed = whole.remove_idle(too_much_bytes);
        drop(whole);
        drop(freed); // no lock is held: this calls the driver
    }

    /// Frees idle memory that takes at least `bytes` of the budget, the device's own first, then the
    /// pool's. Frees nothing and returns `false` if there is less.
    fn make_room(&self, bytes: u64) -> bool {
        let device = self.device.upgrade();
        let device_store = device.as_ref().map(|device| &**device.pinned_store.store());
        let other = device_store.filter(|store| !std::ptr::eq(*store, self));
        let stores = other.into_iter().chain([self]);
        if stores.clone().map(Self::idle_locked_bytes).sum::<u64>() < bytes {
            return false;
        }
        let mut short_bytes = bytes;
        for store in stores {
            let freed = store.whole().remove_locked(short_bytes);
            let freed_bytes: u64 = freed.iter().map(Block::locked_bytes).sum();
            short_bytes = short_bytes.saturating_sub(freed_bytes);
        }
        true
    }

    /// What idle memory takes of the budget.
    fn idle_locked_bytes(&self) -> u64 {
        let idle = self.whole().idle_slabs();
        idle.iter().map(|slab| slab.locked_bytes).sum()
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
        let too_much_bytes = whole.cached_bytes().saturating_sub(max);
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
    pub(super) fn new(store: Store) -> Self {
        let store = Arc::new(store);
        Self(std::array::from_fn(|_| {
            let store = Arc::clone(&store);
            Arc::new(ShardRef { store })
        }))
    }

    /// The reference of this thread's shard.
    pub(super) fn own(&self) -> &Arc<ShardRef> {
        &self.0[shard::own()]
    }
}
