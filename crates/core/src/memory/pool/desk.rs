//! Where blocks are taken and given back: several desks, so that threads do not queue at one.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use super::class;
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
    /// By size, up to the largest that was here.
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
    pub(super) fn take(&self, class: usize) -> Option<Piece> {
        let block_bytes = class::block_bytes(class) as u64;
        let own = own();
        (0..DESKS).find_map(|at| {
            let desk = &self.0[(own + at) % DESKS];
            if desk.cached_bytes.load(Ordering::Relaxed) < block_bytes {
                return None;
            }
            desk.try_open()?.take(class)
        })
    }

    /// To the own desk, whoever took it where.
    pub(super) fn give_back(&self, class: usize, piece: Piece, now_ns: u64) {
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
        desk.give_back(class, piece, now_ns);
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
    fn take(&mut self, class: usize) -> Option<Piece> {
        let block_bytes = class::block_bytes(class) as u64;
        let left_bytes = self.stock.spare_bytes.checked_sub(block_bytes)?;
        let piece = self.take_idle(class)?;
        self.stock.spare_bytes = left_bytes;
        Some(piece)
    }

    /// A block. What is out is the caller's to account for.
    pub(super) fn take_idle(&mut self, class: usize) -> Option<Piece> {
        let piece = self.stock.shelves.get_mut(class)?.pop()?;
        self.stock.hits += 1;
        self.set_cached_bytes(self.cached_bytes() - class::block_bytes(class) as u64);
        Some(piece)
    }

    fn give_back(&mut self, class: usize, piece: Piece, now_ns: u64) {
        let block_bytes = class::block_bytes(class) as u64;
        self.shelf_mut(class).push(piece, now_ns);
        self.stock.spare_bytes += block_bytes;
        self.set_cached_bytes(self.cached_bytes() + block_bytes);
    }

    /// The blocks of a new slab, the one to be taken first last.
    pub(super) fn stock_up(&mut self, class: usize, pieces: impl ExactSizeIterator<Item = Piece>) {
        let bytes = (pieces.len() * class::block_bytes(class)) as u64;
        self.shelf_mut(class).stock_up(pieces);
        self.set_cached_bytes(self.cached_bytes() + bytes);
    }

    /// Forget the blocks of all slabs that are gone.
    pub(super) fn clear(&mut self, class: usize, gone: impl Fn(u32) -> bool) {
        if let Some(shelf) = self.stock.shelves.get_mut(class) {
            let bytes = (shelf.clear(gone) * class::block_bytes(class)) as u64;
            self.set_cached_bytes(self.cached_bytes() - bytes);
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

    pub(super) fn shelf(&self, class: usize) -> Option<&Shelf> {
        self.stock.shelves.get(class)
    }

    fn shelf_mut(&mut self, class: usize) -> &mut Shelf {
        let shelves = &mut self.stock.shelves;
        if class >= shelves.len() {
            shelves.resize_with(class + 1, Shelf::default);
        }
        &mut shelves[class]
    }

    /// The lock is what makes this a plain number: nobody else writes it.
    fn set_cached_bytes(&self, bytes: u64) {
        self.desk.cached_bytes.store(bytes, Ordering::Relaxed);
    }
}
