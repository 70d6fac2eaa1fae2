//! Where blocks are taken and given back: several desks, so that threads do not queue at one.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use super::shelf::{Piece, Shelf};

/// As many threads take and give back at the same time without minding each other.
pub(super) const DESKS: usize = 16;

/// Idle blocks of all sizes behind one lock, which is held for a few instructions only, never
/// while the driver is called. Threads that take and give back write to their own desk alone.
#[derive(Default)]
// Neighbours must not slow each other down by sharing a cache line.
#[repr(align(128))]
pub(super) struct Desk {
    stock: Mutex<Stock>,
    /// What lies here. Written under the lock only, so that others can look without.
    cached_bytes: AtomicU64,
}

#[derive(Default)]
struct Stock {
    /// Sorted by size.
    shelves: Vec<Shelf>,
    /// As much may be taken before more is out than ever was. See [`OpenDesk::take`].
    spare_bytes: u64,
    hits: u64,
}

/// A desk with its lock held.
pub(super) struct OpenDesk<'a> {
    desk: &'a Desk,
    stock: MutexGuard<'a, Stock>,
}

/// All desks of a pool.
#[derive(Default)]
pub(super) struct Desks([Desk; DESKS]);

thread_local! {
    /// The number of this thread's desk, in every pool.
    static OWN: Cell<usize> = const { Cell::new(DESKS) };
}

/// The number of this thread's desk. Threads get them in turn.
pub(super) fn own() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let own = OWN.get();
    if own < DESKS {
        return own;
    }
    let own = NEXT.fetch_add(1, Ordering::Relaxed) % DESKS;
    OWN.set(own);
    own
}

impl Desks {
    /// A block of this size that any desk has at hand, the own one first. None says little: desks
    /// that are busy are passed by.
    pub(super) fn take(&self, block_bytes: usize) -> Option<Piece> {
        let own = own();
        (0..DESKS).find_map(|at| {
            let desk = &self.0[(own + at) % DESKS];
            if desk.cached_bytes.load(Ordering::Relaxed) < block_bytes as u64 {
                return None;
            }
            desk.try_open()?.take(block_bytes)
        })
    }

    /// To the own desk, whoever took it where.
    pub(super) fn give_back(&self, block_bytes: usize, piece: Piece, now_ns: u64) {
        let own = own();
        let free = (0..DESKS).find_map(|at| {
            let number = (own + at) % DESKS;
            Some((number, self.0[number].try_open()?))
        });
        let (number, mut desk) = free.unwrap_or_else(|| (own, self.0[own].open()));
        if number != own {
            // Somebody else has the same one: from now on each has another.
            OWN.set(number);
        }
        desk.give_back(block_bytes, piece, now_ns);
    }

    /// Idle blocks. Of those who give back at the same time, the last sees what all gave back.
    pub(super) fn cached_bytes(&self) -> u64 {
        // Between what was written at the own desk and what is read of others.
        fence(Ordering::SeqCst);
        let bytes = |desk: &Desk| desk.cached_bytes.load(Ordering::Relaxed);
        self.0.iter().map(bytes).sum()
    }

    /// All of them, when the last one is free. Always in the same order, so that two who do this
    /// do not wait for each other; nobody else holds more than one.
    pub(super) fn open_all(&self) -> [OpenDesk<'_>; DESKS] {
        self.0.each_ref().map(Desk::open)
    }
}

impl Desk {
    fn open(&self) -> OpenDesk<'_> {
        let stock = self.stock.lock().unwrap_or_else(PoisonError::into_inner);
        OpenDesk { desk: self, stock }
    }

    /// None where it is busy.
    fn try_open(&self) -> Option<OpenDesk<'_>> {
        let stock = match self.stock.try_lock() {
            Ok(stock) => stock,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(OpenDesk { desk: self, stock })
    }
}

impl OpenDesk<'_> {
    /// A block, where that makes no new high of what is out.
    ///
    /// The high-water mark is of all desks together, but a count that all of them write would be
    /// what they queue for. So what is out may rise by `spare_bytes` at each desk: in all of them
    /// together that is the high-water mark less what is out. It goes out and comes back with the
    /// blocks; where it is short, all desks are asked.
    fn take(&mut self, block_bytes: usize) -> Option<Piece> {
        let left_bytes = self.stock.spare_bytes.checked_sub(block_bytes as u64)?;
        let piece = self.take_idle(block_bytes)?;
        self.stock.spare_bytes = left_bytes;
        Some(piece)
    }

    /// A block. What is out is the caller's to account for.
    pub(super) fn take_idle(&mut self, block_bytes: usize) -> Option<Piece> {
        let at = self.find(block_bytes).ok()?;
        let piece = self.stock.shelves[at].pop()?;
        self.stock.hits += 1;
        self.set_cached_bytes(self.cached_bytes() - block_bytes as u64);
        Some(piece)
    }

    fn give_back(&mut self, block_bytes: usize, piece: Piece, now_ns: u64) {
        self.shelf_mut(block_bytes).push(piece, now_ns);
        self.stock.spare_bytes += block_bytes as u64;
        self.set_cached_bytes(self.cached_bytes() + block_bytes as u64);
    }

    /// The blocks of a new slab, the one to be taken first last.
    pub(super) fn stock_up(
        &mut self,
        block_bytes: usize,
        pieces: impl ExactSizeIterator<Item = Piece>,
    ) {
        let bytes = (pieces.len() * block_bytes) as u64;
        self.shelf_mut(block_bytes).stock_up(pieces);
        self.set_cached_bytes(self.cached_bytes() + bytes);
    }

    /// Forget the blocks of all slabs that are gone.
    pub(super) fn clear(&mut self, block_bytes: usize, gone: impl Fn(u32) -> bool) {
        if let Ok(at) = self.find(block_bytes) {
            let bytes = (self.stock.shelves[at].clear(gone) * block_bytes) as u64;
            self.set_cached_bytes(self.cached_bytes() - bytes);
        }
    }

    /// Forget a size of which all slabs are gone.
    pub(super) fn remove_size(&mut self, block_bytes: usize) {
        self.clear(block_bytes, |_| true);
        if let Ok(at) = self.find(block_bytes) {
            self.stock.shelves.remove(at);
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
        self.desk.cached_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn hits(&self) -> u64 {
        self.stock.hits
    }

    pub(super) fn shelf(&self, block_bytes: usize) -> Option<&Shelf> {
        let at = self.find(block_bytes).ok()?;
        Some(&self.stock.shelves[at])
    }

    fn shelf_mut(&mut self, block_bytes: usize) -> &mut Shelf {
        let at = self.find(block_bytes).unwrap_or_else(|at| {
            self.stock.shelves.insert(at, Shelf::new(block_bytes));
            at
        });
        &mut self.stock.shelves[at]
    }

    /// Where the shelf of this size is, or would be.
    fn find(&self, block_bytes: usize) -> Result<usize, usize> {
        let shelves = &self.stock.shelves;
        shelves.binary_search_by_key(&block_bytes, |shelf| shelf.block_bytes)
    }

    /// The lock is what makes this a plain number: nobody else writes it.
    fn set_cached_bytes(&self, bytes: u64) {
        self.desk.cached_bytes.store(bytes, Ordering::Relaxed);
    }
}
