//! How threads share the work: pieces are opened one by one, and all threads read slices of them.
//!
//! So the link sees few large copies, back to back, while each thread reads little at a time. Some of
//! the threads wait for the disk, where there is need; the others read what is in the page cache
//! meanwhile.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::files::Way;
use super::filling::{Filling, Slice};
use crate::plan::Cursor;
use crate::{Piece, PiecePart, Plan};
use pinlane_core::internal::keep_stray_error;
use pinlane_core::{Device, PoolBuf, Transfer};

/// Pieces that are open at once, of each kind: while the slices of one run out, others find some in the
/// next.
const OPEN: usize = 2;

/// What all threads know.
pub(super) struct Team {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    cursor: Cursor,
    /// The plan has no more pieces.
    planned: bool,
    /// A piece that could not be opened for want of a slot.
    put_back: Option<(Piece, Way)>,
    /// Pieces that have to come from the disk, put off while enough of them are open.
    put_off: VecDeque<Piece>,
    /// Open pieces, which may have slices that nobody has taken: those in the page cache, and others.
    cached: VecDeque<Arc<Filling>>,
    cold: VecDeque<Arc<Filling>>,
    /// Threads that wait for the disk, and how many should while there is anything else to do.
    at_disk: usize,
    at_disk_at_most: usize,
    /// Somebody is about to open a piece.
    opening: bool,
    /// Nobody wants the rest.
    stopped: bool,
    /// Threads that wait for others.
    waiting: usize,
    free: Vec<PoolBuf<u8>>,
    flying: VecDeque<Flying>,
    /// Slots there are, and how many there may be.
    slots: usize,
    slots_at_most: usize,
}

/// A slot in flight, and what it brings.
pub(super) type Flying = (Transfer<PoolBuf<u8>>, Vec<PiecePart>);

/// What a thread does next.
pub(super) enum Turn {
    /// Read this slice.
    Read(Slice),
    /// Find out how this piece is to be read, and [`consider`](Team::consider) it. Nobody else opens
    /// one meanwhile.
    Look(Piece),
    /// Open this piece: it is to be read in this way. Nobody else opens one meanwhile.
    Open(Piece, Way),
    /// Nothing is left to read.
    End,
}

/// A slot for a piece.
pub(super) enum Slot {
    /// One that nothing uses.
    Free(PoolBuf<u8>),
    /// The one that is in flight longest; to be waited for.
    Flying(Flying),
    /// A new one may be made.
    New,
    /// Nobody wants the rest.
    None,
}

impl Team {
    /// Of so many threads, with so many slots at most.
    pub(super) fn new(threads: usize, slots_at_most: usize) -> Self {
        Self {
            state: Mutex::new(State {
                cursor: Cursor::default(),
                planned: false,
                put_back: None,
                put_off: VecDeque::new(),
                cached: VecDeque::new(),
                cold: VecDeque::new(),
                at_disk: 0,
                at_disk_at_most: (threads * 2 / 3).max(1),
                opening: false,
                stopped: false,
                waiting: 0,
                free: Vec::new(),
                flying: VecDeque::new(),
                slots: 0,
                slots_at_most,
            }),
            changed: Condvar::new(),
        }
    }

    /// What to do next. Waits while there is nothing.
    pub(super) fn turn(&self, plan: &Plan) -> Turn {
        let mut state = self.lock();
        loop {
            let planned = state.planned;
            if let Some(turn) = state.open(plan) {
                return turn;
            }
            if planned != state.planned {
                // Those who left the disk to others, or wait for the end.
                self.changed.notify_all();
            }
            if let Some(slice) = state.take() {
                return Turn::Read(slice);
            }
            if state.is_over() {
                return Turn::End;
            }
            state = self.wait(state);
        }
    }

    /// A piece is to be read in this way. The piece, if it is to be opened now.
    pub(super) fn consider(&self, piece: Piece, way: Way) -> Option<Piece> {
        let mut state = self.lock();
        if way == Way::Buffered || state.cold.len() < OPEN {
            return Some(piece);
        }
        state.put_off.push_back(piece);
        state.opening = false;
        None
    }

    /// A slot for the piece that this thread opens. Waits while all are being filled.
    pub(super) fn slot(&self, device: &Device) -> Slot {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return Slot::None;
            }
            if let Some(slot) = state.free.pop() {
                return Slot::Free(slot);
            }
            let may_grow = state.slots < state.slots_at_most;
            if (!may_grow || state.has_landed(device))
                && let Some(flying) = state.flying.pop_front()
            {
                return Slot::Flying(flying);
            }
            if may_grow {
                state.slots += 1;
                return Slot::New;
            }
            state = self.wait(state);
        }
    }

    /// A thread has waited so long for a slot in flight, and others for that thread.
    pub(super) fn waited_for_the_link(&self, waited: Duration) -> Duration {
        let others = self.lock().waiting;
        waited.saturating_mul(u32::try_from(others + 1).unwrap_or(u32::MAX))
    }

    /// A new slot could not be made for a piece. Whether there is no other one, either; else fewer
    /// will do, and the piece is opened when there is one.
    pub(super) fn no_slot(&self, piece: Piece, way: Way) -> bool {
        let mut state = self.lock();
        state.slots -= 1;
        state.slots_at_most = state.slots;
        state.put_back = Some((piece, way));
        state.opening = false;
        self.changed.notify_all();
        state.slots == 0
    }

    /// The piece is open.
    pub(super) fn opened(&self, filling: Arc<Filling>) {
        let mut state = self.lock();
        state.opening = false;
        if state.stopped {
            state.free.extend(Filling::into_slot(filling));
            return;
        }
        match filling.way {
            Way::Buffered => state.cached.push_back(filling),
            Way::Direct => state.cold.push_back(filling),
        }
        self.changed.notify_all();
    }

    /// A slice was read in this way.
    pub(super) fn read(&self, way: Way) {
        if way == Way::Direct {
            self.lock().at_disk -= 1;
            self.changed.notify_all();
        }
    }

    /// A slot is in flight.
    pub(super) fn sent(&self, flying: Flying) {
        self.lock().flying.push_back(flying);
        self.changed.notify_all();
    }

    /// A slot is not needed any more.
    pub(super) fn put(&self, slot: PoolBuf<u8>) {
        self.lock().free.push(slot);
        self.changed.notify_all();
    }

    /// Nobody wants the rest.
    pub(super) fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        state.opening = false;
        let State {
            cached, cold, free, ..
        } = &mut *state;
        // Where somebody still reads, memory goes with whoever reads last.
        let unread = cached.drain(..).chain(cold.drain(..));
        free.extend(unread.filter_map(Filling::into_slot));
        self.changed.notify_all();
    }

    /// A slot that is in flight, at the end.
    pub(super) fn flying(&self) -> Option<Flying> {
        self.lock().flying.pop_front()
    }

    /// Give all slots back, those in flight when they have landed.
    pub(super) fn end(&mut self, device: &Device) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let flying = state.flying.drain(..).filter_map(|(transfer, _)| {
            transfer
                .wait()
                .map_err(|failure| keep_stray_error(device, failure.error))
                .ok()
        });
        // Back into the device's store.
        flying.chain(state.free.drain(..)).for_each(drop);
    }

    fn wait<'s>(&self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        state.waiting += 1;
        let waited = self.changed.wait(state);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Another piece, if it is time to open one.
    fn open(&mut self, plan: &Plan) -> Option<Turn> {
        // A slot for it is at hand, or there is nothing else to do.
        let at_hand = !self.free.is_empty() || self.slots < self.slots_at_most;
        if self.stopped || self.opening || !at_hand && self.can_read() {
            return None;
        }
        let turn = if let Some((piece, way)) = self.put_back.take() {
            Turn::Open(piece, way)
        } else if self.cold.len() < OPEN
            && let Some(piece) = self.put_off.pop_front()
        {
            Turn::Open(piece, Way::Direct)
        } else if self.cached.len() < OPEN && !self.planned {
            match plan.next(&mut self.cursor) {
                Some(piece) => Turn::Look(piece),
                None => {
                    self.planned = true;
                    return None;
                }
            }
        } else {
            return None;
        };
        self.opening = true;
        Some(turn)
    }

    /// Whether the slot that is in flight longest has landed.
    fn has_landed(&self, device: &Device) -> bool {
        let Some((transfer, _)) = self.flying.front() else {
            return false;
        };
        transfer.is_done().unwrap_or_else(|error| {
            keep_stray_error(device, error);
            false
        })
    }

    /// Whether a thread may go and wait for the disk.
    fn may_go(&self) -> bool {
        let nothing_else = self.cached.is_empty() && self.planned;
        self.at_disk < self.at_disk_at_most || nothing_else
    }

    /// Whether a thread finds something to read.
    fn can_read(&self) -> bool {
        !self.cached.is_empty() || !self.cold.is_empty() && self.may_go()
    }

    fn take(&mut self) -> Option<Slice> {
        if self.may_go()
            && let Some(slice) = claim(&mut self.cold)
        {
            self.at_disk += 1;
            return Some(slice);
        }
        claim(&mut self.cached)
    }

    /// Whether nobody will open a piece any more, and all slices are taken.
    fn is_over(&self) -> bool {
        let opened = self.planned && self.put_back.is_none() && self.put_off.is_empty();
        let taken = self.cached.is_empty() && self.cold.is_empty();
        (opened || self.stopped) && !self.opening && taken
    }
}

/// A slice of the first piece. It goes when all of it is taken.
fn claim(open: &mut VecDeque<Arc<Filling>>) -> Option<Slice> {
    let filling = open.front()?;
    let slice = filling.claim();
    if !filling.has_more() {
        open.pop_front();
    }
    slice
}
