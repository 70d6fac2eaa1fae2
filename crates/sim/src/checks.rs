//! Checks on host memory in flight.
//!
//! The page-locked end of a copy is hashed when it is submitted, and must have that hash when the
//! bytes move and when the copy is done. Where the device itself writes the memory in between, or
//! a host callback that comes before the copy in stream order may, the hash is taken anew.

use crate::finding::FindingKind;
use crate::op::{Op, Piece, Work};
use crate::slab::Id;
use crate::state::State;

/// Whether any of some pieces changed.
#[derive(Default)]
pub(crate) struct Changed(bool);

impl Changed {
    /// Compares a piece with its hash.
    pub(crate) fn check(&mut self, piece: &Piece) {
        if let (Some(hash), Some(range)) = (piece.hash, piece.pinned()) {
            self.0 |= range.hash() != hash;
        }
    }

    pub(crate) fn any(&self) -> bool {
        self.0
    }
}

impl State {
    /// Hash of the page-locked end of a new piece, where checks are on.
    pub(crate) fn hash_of(&self, piece: &Piece) -> Option<u64> {
        if !self.config.checks {
            return None;
        }
        piece.pinned().map(|range| range.hash())
    }

    pub(crate) fn report_changed(&mut self, op: &Op) {
        let detail = "its host memory is not what it was when the copy was submitted";
        self.report(FindingKind::HostChangedInFlight, op.describe(), detail);
    }

    /// Before the device writes host memory: compares what other work in flight has there.
    pub(crate) fn verify_others(&mut self, start: usize, end: usize) {
        let mut found = Vec::new();
        self.for_pieces(
            start,
            end,
            |changed, piece| changed.check(piece),
            |op| {
                found.push(op.describe());
            },
        );
        for operation in found {
            let detail = "its host memory is not what it was when the copy was submitted";
            self.report(FindingKind::HostChangedInFlight, operation, detail);
        }
    }

    /// After the device wrote host memory: takes the hashes of other work in flight anew.
    pub(crate) fn rehash_others(&mut self, start: usize, end: usize) {
        let rehash = |_: &mut Changed, piece: &mut Piece| {
            if let Some(range) = piece.pinned() {
                piece.hash = piece.hash.map(|_| range.hash());
            }
        };
        self.for_pieces(start, end, rehash, |_| {});
    }

    /// Shows all pieces in flight that lie in a range of host memory to `look`, and the operations
    /// where that found a change to `note`.
    fn for_pieces(
        &mut self,
        start: usize,
        end: usize,
        mut look: impl FnMut(&mut Changed, &mut Piece),
        mut note: impl FnMut(&Op),
    ) {
        if !self.config.checks {
            return;
        }
        for &id in &self.active {
            let Some(stream) = self.streams.get_mut(id) else {
                continue;
            };
            for op in &mut stream.queue {
                let Work::Transfer(transfer) = &mut op.work else {
                    continue;
                };
                let mut changed = Changed::default();
                let pieces = transfer.pieces.iter_mut();
                pieces
                    .filter(|piece| {
                        piece
                            .pinned()
                            .is_some_and(|range| range.overlaps(start, end))
                    })
                    .for_each(|piece| look(&mut changed, piece));
                if changed.any() {
                    op.stop_checking();
                    note(op);
                }
            }
        }
    }

    /// Before a callback is called: compares what the work behind it has in host memory. From then
    /// on until it returns, that memory is the callback's.
    pub(crate) fn verify_behind_callback(&mut self, stream: Id) {
        let mut found = Vec::new();
        self.for_transfers_behind(stream, |op| {
            let mut changed = Changed::default();
            if let Work::Transfer(transfer) = &op.work {
                transfer
                    .pieces
                    .iter()
                    .for_each(|piece| changed.check(piece));
            }
            if changed.any() {
                op.stop_checking();
                found.push(op.describe());
            }
        });
        for operation in found {
            let detail = "its host memory is not what it was when the copy was submitted";
            self.report(FindingKind::HostChangedInFlight, operation, detail);
        }
    }

    /// After a callback has returned: takes the hashes of the work behind it anew.
    pub(crate) fn rehash_behind_callback(&mut self, stream: Id) {
        self.for_transfers_behind(stream, |op| {
            if let Work::Transfer(transfer) = &mut op.work {
                for piece in &mut transfer.pieces {
                    if let Some(range) = piece.pinned() {
                        piece.hash = piece.hash.map(|_| range.hash());
                    }
                }
            }
        });
    }

    /// Shows all transfers to `look` that come after the head of a stream: in the stream itself,
    /// and in those that wait for it, directly or not.
    fn for_transfers_behind(&mut self, stream: Id, mut look: impl FnMut(&mut Op)) {
        if !self.config.checks {
            return;
        }
        let Some(head) = self
            .streams
            .get(stream)
            .and_then(|stream| stream.queue.front())
        else {
            return;
        };
        // Streams, each with the sequence number after which its work is behind the head.
        let mut behind = vec![(stream, head.sequence)];
        loop {
            let known = behind.len();
            for &other in &self.active {
                if behind.iter().any(|(id, _)| *id == other) {
                    continue;
                }
                let queue = self.streams.get(other).map(|stream| &stream.queue);
                let wait = queue.into_iter().flatten().find(|op| match op.work {
                    Work::Wait(point, _) => behind
                        .iter()
                        .any(|(id, after)| *id == point.stream && point.sequence > *after),
                    _ => false,
                });
                behind.extend(wait.map(|wait| (other, wait.sequence)));
            }
            if behind.len() == known {
                break;
            }
        }
        for (id, after) in behind {
            let queue = self.streams.get_mut(id).map(|stream| &mut stream.queue);
            let ops = queue.into_iter().flatten();
            ops.filter(|op| op.sequence > after).for_each(&mut look);
        }
    }

    /// Takes device memory away from work in flight; the operations that used it.
    pub(crate) fn cancel_device_uses(&mut self, start: u64, end: u64) -> Vec<String> {
        self.cancel(|op| op.uses_device(start, end))
    }

    /// Takes host memory away from work in flight; the operations that used it.
    pub(crate) fn cancel_host_uses(&mut self, start: usize, end: usize) -> Vec<String> {
        self.cancel(|op| op.uses_host(start, end))
    }

    fn cancel(&mut self, mut uses: impl FnMut(&Op) -> bool) -> Vec<String> {
        let mut cancelled = Vec::new();
        for &id in &self.active {
            let Some(stream) = self.streams.get_mut(id) else {
                continue;
            };
            for op in stream.queue.iter_mut().filter(|op| uses(op)) {
                op.cancelled = true;
                cancelled.push(op.describe());
            }
        }
        cancelled
    }
}
