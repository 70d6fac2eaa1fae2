//! What a pool and its blocks share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use pinlane_driver::HostFlags;

use super::PoolStats;
use super::books::Books;
use super::class;
use super::desk::Desks;
use super::shelf::Piece;
use super::whole::Whole;
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

/// The desks, and what bounds them. Blocks that are out keep it alive, and it keeps the driver
/// open, but not the device: a block that is parked with the device would hold what holds it.
pub(super) struct Store {
    pub(super) link: Arc<Link>,
    device: Weak<Shared>,
    pub(super) desks: Desks,
    /// Locked before any desk.
    books: Mutex<Books>,
    limits: Limits,
    clock: Clock,
    /// When to look again for memory that was idle too long.
    next_look_ns: AtomicU64,
    /// More lies idle than may, but no slab as a whole. Written with everything locked.
    stuck: AtomicBool,
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
            desks: Desks::default(),
            books: Mutex::default(),
            limits,
            clock,
            next_look_ns: AtomicU64::new(0),
            stuck: AtomicBool::new(false),
        }
    }

    /// A block of at least `bytes`, more than 0 and at most `isize::MAX`.
    pub(super) fn take(&self, bytes: usize) -> Result<Taken> {
        let class = class::index(bytes);
        self.free_what_was_idle_too_long();
        let taken = self.desks.take(class).or_else(|| {
            // Desks may have been busy: nothing is pinned while there is a block at one.
            let taken = self.whole().take(class);
            // Blocks of transfers that nobody waited for may have landed meanwhile.
            taken.or_else(|| self.reclaim().then(|| self.whole().take(class)).flatten())
        });
        let piece = match taken {
            Some(piece) => piece,
            None => self.grow(class)?,
        };
        Ok(Taken {
            piece,
            class: class as u32,
        })
    }

    pub(super) fn give_back(&self, taken: Taken) {
        let class = taken.class as usize;
        let now_ns = (self.clock)();
        self.desks.give_back(class, taken.piece, now_ns);
        self.link.budget.ring();
        if let Some(max) = self.limits.idle_bytes_max {
            self.free_what_is_too_much(max, taken);
        }
        self.free_what_was_idle_too_long();
    }

    fn whole(&self) -> Whole<'_> {
        Whole {
            books: self.books.lock().unwrap_or_else(PoisonError::into_inner),
            desks: self.desks.open_all(),
        }
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
        let piece = self.whole().add(class, memory, blocks as u32);
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
                if hopeless || !self.free_idle(short_bytes) {
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
        let mut whole = self.whole();
        let too_much_bytes = whole.cached_bytes().saturating_sub(keep_bytes);
        let freed = whole.remove_idle(too_much_bytes);
        drop(whole);
        drop(freed); // no lock is held: this calls the driver
    }

    /// Free at least `bytes` of idle memory, if there are as many, longest idle first. Whether
    /// anything was freed.
    fn free_idle(&self, bytes: u64) -> bool {
        let freed = self.whole().remove_idle(bytes);
        !freed.is_empty()
    }

    /// As `trim`, when this block has come back.
    fn free_what_is_too_much(&self, max: u64, back: Taken) {
        let stuck = || self.stuck.load(Ordering::Relaxed);
        if self.desks.cached_bytes() <= max && !stuck() {
            return;
        }
        let mut whole = self.whole();
        let too_much_bytes = whole.cached_bytes().saturating_sub(max);
        // What could not be freed at the last look still cannot, unless this was its last block.
        if too_much_bytes > 0 && stuck() && !whole.is_idle(back.class as usize, back.piece.slab) {
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
