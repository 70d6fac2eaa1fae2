//! Distributes the work: pieces are opened one at a time, and all threads read parts of them. So the link
//! sees a few large copies, back to back, while each thread reads little at a time. While some threads
//! wait for the disk, the others read what is in the page cache.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::piece_being_filled::{OpenPiece, PieceRead, SlotBuf};
use super::source_file::ReadMode;
use crate::plan::PieceCursor;
use crate::{Piece, PiecePart, Plan};
use pinlane_core::internal::{keep_stray_error, lock};
use pinlane_core::{Device, Transfer};

/// Open pieces per read mode: when the reads of one run out, threads continue with the next.
const OPEN_PIECES: usize = 2;

pub(super) struct ReadScheduler {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    cursor: PieceCursor,
    /// A piece that waits for its targets.
    waiting_piece: Option<Piece>,
    /// Tensors that have device memory, in the order of the plan.
    targets: usize,
    /// The cursor has no more pieces.
    plan_done: bool,
    /// Pieces to read directly while enough of them are open. In front, one that found no slot.
    deferred: VecDeque<(Piece, ReadMode)>,
    /// Open pieces with unclaimed reads, by mode.
    buffered: VecDeque<Arc<OpenPiece>>,
    direct: VecDeque<Arc<OpenPiece>>,
    /// Threads in a direct read, and their limit while there is other work.
    direct_readers: usize,
    direct_readers_max: usize,
    /// A thread is opening a piece.
    opening: bool,
    cancelled: bool,
    /// Threads blocked on `changed`.
    waiting: usize,
    free: Vec<SlotBuf>,
    in_flight: VecDeque<PieceTransfer>,
    /// Existing slots, and their limit.
    slots: usize,
    slots_max: usize,
}

pub(super) type PieceTransfer = (Transfer<SlotBuf>, Vec<PiecePart>);

pub(super) enum WorkStep {
    /// Read a part of an open piece.
    Read(PieceRead),
    /// Open this piece, if [`ReadScheduler::may_open`]. No other thread opens one meanwhile.
    Open(Piece, Option<ReadMode>),
    /// Wait for this copy: the consumer may need its tensors before it gives memory for others.
    Wait(PieceTransfer),
}

pub(super) enum NextSlot {
    Free(SlotBuf),
    /// The one in flight longest. Wait for it.
    InFlight(PieceTransfer),
    /// Allocate a new one.
    Allocate,
    /// The load was cancelled.
    Cancelled,
}

impl ReadScheduler {
    /// All tensors have device memory, until [`targets_given`](Self::targets_given) says otherwise.
    pub(super) fn new(threads: usize, slots_max: usize) -> Self {
        Self {
            state: Mutex::new(State {
                targets: usize::MAX,
                direct_readers_max: (threads * 2 / 3).max(1),
                slots_max,
                ..State::default()
            }),
            changed: Condvar::new(),
        }
    }

    /// The next step of a thread. Blocks while there is none; `None` if nothing is left to read.
    pub(super) fn next_step(&self, plan: &Plan) -> Option<WorkStep> {
        let mut state = lock(&self.state);
        loop {
            let may_open = state.may_open_later();
            if let Some(step) = state.open_next(plan) {
                return Some(step);
            }
            if may_open != state.may_open_later() {
                // Threads that left the disk to others, or wait for the end.
                self.changed.notify_all();
            }
            if let Some(read) = state.claim_read() {
                return Some(WorkStep::Read(read));
            }
            if state.waiting_piece.is_some()
                && let Some(transfer) = state.in_flight.pop_front()
            {
                return Some(WorkStep::Wait(transfer));
            }
            if state.is_done() {
                return None;
            }
            state = self.wait(state);
        }
    }

    /// Returns the piece if it is to be opened now. Otherwise defers it.
    pub(super) fn may_open(&self, piece: Piece, mode: ReadMode) -> Option<Piece> {
        let mut state = lock(&self.state);
        if state.has_room_for(mode) {
            return Some(piece);
        }
        state.deferred.push_back((piece, mode));
        state.opening = false;
        None
    }

    /// A slot for the piece this thread is opening. Blocks while all slots are being filled.
    pub(super) fn next_slot(&self, device: &Device) -> NextSlot {
        let mut state = lock(&self.state);
        loop {
            if state.cancelled {
                return NextSlot::Cancelled;
            }
            if let Some(slot) = state.free.pop() {
                return NextSlot::Free(slot);
            }
            let may_grow = state.slots < state.slots_max;
            if (!may_grow || state.oldest_transfer_is_done(device))
                && let Some(transfer) = state.in_flight.pop_front()
            {
                return NextSlot::InFlight(transfer);
            }
            if may_grow {
                state.slots += 1;
                return NextSlot::Allocate;
            }
            state = self.wait(state);
        }
    }

    /// Time that all threads waited for the link: one for a slot in flight, the others for that thread.
    pub(super) fn total_wait(&self, waited: Duration) -> Duration {
        let others = lock(&self.state).waiting;
        waited.saturating_mul(u32::try_from(others + 1).unwrap_or(u32::MAX))
    }

    /// Allocating a slot for this piece failed. Returns whether there are no slots at all to go on with.
    pub(super) fn slot_failed(&self, piece: Piece, mode: ReadMode) -> bool {
        let mut state = lock(&self.state);
        state.slots -= 1;
        state.slots_max = state.slots;
        state.deferred.push_front((piece, mode));
        state.opening = false;
        self.changed.notify_all();
        state.slots == 0
    }

    pub(super) fn piece_opened(&self, piece: Arc<OpenPiece>) {
        let mut state = lock(&self.state);
        state.opening = false;
        if state.cancelled {
            state.free.extend(OpenPiece::into_slot(piece));
            return;
        }
        match piece.mode {
            ReadMode::Buffered => state.buffered.push_back(piece),
            ReadMode::Direct => state.direct.push_back(piece),
        }
        self.changed.notify_all();
    }

    pub(super) fn read_done(&self, mode: ReadMode) {
        if mode == ReadMode::Direct {
            lock(&self.state).direct_readers -= 1;
            self.changed.notify_all();
        }
    }

    pub(super) fn submitted(&self, transfer: PieceTransfer) {
        lock(&self.state).in_flight.push_back(transfer);
        self.changed.notify_all();
    }

    pub(super) fn free_slot(&self, slot: SlotBuf) {
        lock(&self.state).free.push(slot);
        self.changed.notify_all();
    }

    /// The first `targets` tensors, in the order of the plan, have device memory.
    pub(super) fn targets_given(&self, targets: usize) {
        lock(&self.state).targets = targets;
        self.changed.notify_all();
    }

    pub(super) fn is_cancelled(&self) -> bool {
        lock(&self.state).cancelled
    }

    /// Ends the load: threads finish their current reads and stop.
    pub(super) fn cancel(&self) {
        let mut state = lock(&self.state);
        state.cancelled = true;
        state.opening = false;
        let state = &mut *state;
        // A slot that is still being filled is freed by its last reader.
        let unread = state.buffered.drain(..).chain(state.direct.drain(..));
        state.free.extend(unread.filter_map(OpenPiece::into_slot));
        self.changed.notify_all();
    }

    pub(super) fn pop_in_flight(&self) -> Option<PieceTransfer> {
        lock(&self.state).in_flight.pop_front()
    }

    /// Gives all slots back to the device's store, after their copies are done.
    pub(super) fn release_slots(&mut self, device: &Device) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (transfer, _) in state.in_flight.drain(..) {
            if let Err(failure) = transfer.wait() {
                keep_stray_error(device, failure.error);
            }
        }
        state.free.clear();
    }

    fn wait<'s>(&self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        state.waiting += 1;
        let woken = self.changed.wait(state);
        let mut state = woken.unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state
    }
}

impl State {
    /// The next piece to open, if a slot is available or there is nothing to read.
    fn open_next(&mut self, plan: &Plan) -> Option<WorkStep> {
        let slot_available = !self.free.is_empty() || self.slots < self.slots_max;
        if self.cancelled || self.opening || !slot_available && self.can_read() {
            return None;
        }
        let next = self.deferred.front();
        let (piece, mode) = if next.is_some_and(|(_, mode)| self.has_room_for(*mode)) {
            let (piece, mode) = self.deferred.pop_front()?;
            (piece, Some(mode))
        } else if self.buffered.len() < OPEN_PIECES && !self.plan_done {
            let waited = self.waiting_piece.take();
            let piece = waited.or_else(|| self.cursor.next(plan));
            self.plan_done = piece.is_none();
            if self.cursor.reached > self.targets {
                self.waiting_piece = piece;
                return None;
            }
            (piece?, None)
        } else {
            return None;
        };
        self.opening = true;
        Some(WorkStep::Open(piece, mode))
    }

    fn has_room_for(&self, mode: ReadMode) -> bool {
        mode == ReadMode::Buffered || self.direct.len() < OPEN_PIECES
    }

    fn oldest_transfer_is_done(&self, device: &Device) -> bool {
        self.in_flight.front().is_some_and(|(transfer, _)| {
            let done = transfer.is_done();
            done.map_err(|error| keep_stray_error(device, error)) == Ok(true)
        })
    }

    /// Whether pieces that can be opened may be left in the plan.
    fn may_open_later(&self) -> bool {
        !self.plan_done && self.waiting_piece.is_none()
    }

    /// Whether one more thread may start a direct read.
    fn may_read_direct(&self) -> bool {
        let no_other_work = self.buffered.is_empty() && !self.may_open_later();
        self.direct_readers < self.direct_readers_max || no_other_work
    }

    fn can_read(&self) -> bool {
        !self.buffered.is_empty() || !self.direct.is_empty() && self.may_read_direct()
    }

    fn claim_read(&mut self) -> Option<PieceRead> {
        if self.may_read_direct()
            && let Some(read) = claim_from(&mut self.direct)
        {
            self.direct_readers += 1;
            return Some(read);
        }
        claim_from(&mut self.buffered)
    }

    /// Whether no piece will be opened any more, and all reads are claimed.
    fn is_done(&self) -> bool {
        let all_opened = self.plan_done && self.deferred.is_empty();
        let all_claimed = self.buffered.is_empty() && self.direct.is_empty();
        (all_opened || self.cancelled) && !self.opening && all_claimed
    }
}

/// Claims a read of the first piece, and removes the piece when all of it is claimed.
fn claim_from(open: &mut VecDeque<Arc<OpenPiece>>) -> Option<PieceRead> {
    let piece = open.front()?;
    let read = piece.claim();
    if !piece.slot.has_unclaimed() {
        open.pop_front();
    }
    read
}
