//! What a pool and its blocks share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use pinlane_driver::HostFlags;

use super::PoolStats;
use super::class;
use super::shelf::{IdleSlab, Piece, Shelf};
use crate::device::Shared;
use crate::link::Link;
use crate::memory::pinning::Block;
use crate::{Error, Result};

/// Blocks up to this size are cut from slabs, at least eight from each. Larger ones are pinned
/// singly, since a slab of them would pin much that nobody asked for.
const SLAB_BLOCK_BYTES_MAX: usize = 256 << 10;

/// A slab is at least this long: a huge page, which is also what is pinned the fast way.
const SLAB_BYTES: usize = 2 << 20;

/// The longest idle memory is looked for this often in the time that it may be idle.
const LOOKS_A_LIMIT: u64 = 4;

/// The shelves, and what bounds them. Blocks that are out keep it alive, and it keeps the driver
/// open, but not the device: a block that is parked with the device would hold what holds it.
pub(super) struct Store {
    pub(super) link: Arc<Link>,
    device: Weak<Shared>,
    shelves: Box<[Shelf]>,
    limits: Limits,
    clock: Clock,
    /// When to look again for memory that was idle too long.
    next_look_ns: AtomicU64,
    counts: Counts,
}

/// Away from what is only read, since every take and give-back writes here.
#[derive(Default)]
#[repr(align(128))]
struct Counts {
    in_use_bytes: AtomicU64,
    high_water_bytes: AtomicU64,
    /// All blocks, idle and out. Changes only when memory is pinned or freed.
    cut_bytes: AtomicU64,
}

/// How much may lie idle, and how long.
#[derive(Clone, Copy, Default)]
pub(super) struct Limits {
    pub(super) idle_bytes_max: Option<u64>,
    pub(super) idle_time_max: Option<Duration>,
}

/// Nanoseconds since some moment.
pub(super) type Clock = Box<dyn Fn() -> u64 + Send + Sync>;

/// A block in use. Giving it back is the buffer's duty.
#[derive(Clone, Copy)]
pub(super) struct Taken {
    pub(super) piece: Piece,
    pub(super) class: u32,
}

impl Store {
    pub(super) fn new(device: &Arc<Shared>, limits: Limits, clock: Clock) -> Self {
        Self {
            link: Arc::clone(&device.link),
            device: Arc::downgrade(device),
            shelves: (0..class::COUNT).map(|_| Shelf::default()).collect(),
            limits,
            clock,
            next_look_ns: AtomicU64::new(0),
            counts: Counts::default(),
        }
    }

    /// A block of at least `bytes`, more than 0 and at most `isize::MAX`.
    pub(super) fn take(&self, bytes: usize) -> Result<Taken> {
        let class = class::index(bytes);
        self.free_what_was_idle_too_long();
        let shelf = &self.shelves[class];
        let taken = shelf.take().or_else(|| {
            // Blocks of transfers that nobody waited for may have landed meanwhile.
            self.reclaim().then(|| shelf.take()).flatten()
        });
        let block_bytes = class::block_bytes(class) as u64;
        let piece = match taken {
            Some(piece) => piece,
            None => self.grow(class)?,
        };
        self.counts.add_in_use(block_bytes);
        Ok(Taken {
            piece,
            class: class as u32,
        })
    }

    pub(super) fn give_back(&self, taken: Taken) {
        let class = taken.class as usize;
        let block_bytes = class::block_bytes(class) as u64;
        // Before another can take it, or it would count twice for a moment.
        let in_use = &self.counts.in_use_bytes;
        in_use.fetch_sub(block_bytes, Ordering::Relaxed);
        let slab_is_idle = self.shelves[class].give_back(taken.piece, &self.clock);
        self.link.budget.ring();
        // Where its slab is in use still, nothing can be freed that could not before.
        if let Some(max) = self.limits.idle_bytes_max
            && slab_is_idle
            && self.counts.cached_bytes() > max
        {
            self.trim(max);
        }
        self.free_what_was_idle_too_long();
    }

    /// Whether anything that the device had parked has come back.
    fn reclaim(&self) -> bool {
        let device = self.device.upgrade();
        device.is_some_and(|device| device.lot.reclaim() > 0)
    }

    /// Pin memory for this size, and take the first block of it.
    fn grow(&self, class: usize) -> Result<Piece> {
        let block_bytes = class::block_bytes(class);
        let blocks = if block_bytes <= SLAB_BLOCK_BYTES_MAX {
            SLAB_BYTES.div_ceil(block_bytes)
        } else {
            1
        };
        match self.pin_slab(class, blocks) {
            // A slab does not fit, but the block alone may.
            Err(Error::OverBudget { .. }) if blocks > 1 => self.pin_slab(class, 1),
            result => result,
        }
    }

    fn pin_slab(&self, class: usize, blocks: usize) -> Result<Piece> {
        let block_bytes = class::block_bytes(class);
        let memory = self.pin_with_room(block_bytes * blocks)?;
        let cut_bytes = (block_bytes * blocks) as u64;
        let cut = &self.counts.cut_bytes;
        cut.fetch_add(cut_bytes, Ordering::Relaxed);
        let piece = self.shelves[class].add(memory, blocks as u32, block_bytes);
        if blocks > 1 {
            self.link.budget.ring();
        }
        Ok(piece)
    }

    /// Pin, and make room for it in the budget by freeing our own idle memory where that helps.
    fn pin_with_room(&self, bytes: usize) -> Result<Block> {
        let pin = || Block::pin(&self.link, bytes, HostFlags::default());
        match pin() {
            Err(Error::OverBudget {
                requested_bytes,
                in_use_bytes,
                limit_bytes,
            }) => {
                let short_bytes = in_use_bytes
                    .saturating_add(requested_bytes)
                    .saturating_sub(limit_bytes);
                // Freeing helps nobody where it would not fit all the same.
                let hopeless = requested_bytes > limit_bytes;
                if hopeless || self.free_idle(short_bytes) == 0 {
                    return Err(Error::OverBudget {
                        requested_bytes,
                        in_use_bytes,
                        limit_bytes,
                    });
                }
                pin()
            }
            result => result,
        }
    }

    /// Free idle memory until no more than `keep_bytes` of it are left, or none can be freed.
    pub(super) fn trim(&self, keep_bytes: u64) {
        let cached_bytes = self.counts.cached_bytes();
        self.free_idle(cached_bytes.saturating_sub(keep_bytes));
    }

    /// Free at least `bytes` of idle memory, if there are as many, longest idle first. How many.
    fn free_idle(&self, bytes: u64) -> u64 {
        let mut freed_bytes = 0;
        let mut idle = self.idle_slabs();
        idle.sort_by_key(|(_, slab)| slab.since_ns);
        for (class, slab) in idle {
            if freed_bytes >= bytes {
                break;
            }
            freed_bytes += self.free(class, slab);
        }
        freed_bytes
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
        for (class, slab) in self.idle_slabs() {
            if now_ns.saturating_sub(slab.since_ns) > max_ns {
                self.free(class, slab);
            }
        }
    }

    fn idle_slabs(&self) -> Vec<(usize, IdleSlab)> {
        let shelves = self.shelves.iter().enumerate();
        shelves
            .flat_map(|(class, shelf)| {
                let slabs = shelf.idle_slabs();
                slabs.into_iter().map(move |slab| (class, slab))
            })
            .collect()
    }

    /// Bytes of it; 0 where it is not idle any more.
    fn free(&self, class: usize, slab: IdleSlab) -> u64 {
        let Some((memory, blocks)) = self.shelves[class].remove(slab) else {
            return 0;
        };
        let idle_bytes = class::block_bytes(class) as u64 * u64::from(blocks);
        let cut = &self.counts.cut_bytes;
        cut.fetch_sub(idle_bytes, Ordering::Relaxed);
        drop(memory); // no lock is held: this calls the driver
        idle_bytes
    }

    pub(super) fn stats(&self) -> PoolStats {
        let mut stats = PoolStats {
            in_use_bytes: self.counts.in_use_bytes.load(Ordering::Relaxed),
            high_water_bytes: self.counts.high_water_bytes.load(Ordering::Relaxed),
            ..PoolStats::default()
        };
        for (class, shelf) in self.shelves.iter().enumerate() {
            let sums = shelf.sums();
            stats.cached_bytes += sums.idle_blocks * class::block_bytes(class) as u64;
            stats.pinned_bytes += sums.pinned_bytes;
            stats.hits += sums.hits;
            stats.misses += sums.misses;
        }
        stats
    }
}

impl Counts {
    fn add_in_use(&self, bytes: u64) {
        let in_use = self.in_use_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if in_use > self.high_water_bytes.load(Ordering::Relaxed) {
            self.high_water_bytes.fetch_max(in_use, Ordering::Relaxed);
        }
    }

    /// Idle blocks. While others take and give back it may be a little off.
    fn cached_bytes(&self) -> u64 {
        let cut = self.cut_bytes.load(Ordering::Relaxed);
        cut.saturating_sub(self.in_use_bytes.load(Ordering::Relaxed))
    }
}
