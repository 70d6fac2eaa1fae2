//! Host memory that changes while a copy of it is in flight.
//!
//! The page-locked end of a copy is hashed at submission. The hash must match when the bytes move and
//! when the copy completes. It is recomputed if the device itself writes the memory in between, or a
//! host callback that precedes the copy in stream order could.

use super::FindingKind;
use crate::operation::{Operation, Piece, Work};
use crate::slab::Id;
use crate::state::State;

impl Piece {
    /// Whether its host memory differs from its hash.
    pub(crate) fn has_changed(&self) -> bool {
        match (self.hash, self.pinned()) {
            (Some(hash), Some(range)) => range.hash() != hash,
            _ => false,
        }
    }

    fn rehash(&mut self) {
        if let Some(range) = self.pinned() {
            self.hash = self.hash.map(|_| range.hash());
        }
    }
}

impl State {
    /// Hash of the page-locked end of a new piece, if checks are on.
    pub(crate) fn hash_of(&self, piece: &Piece) -> Option<u64> {
        let range = piece.pinned().filter(|_| self.config.checks)?;
        Some(range.hash())
    }

    pub(crate) fn report_changed(&mut self, operations: Vec<String>) {
        let detail = "its host memory changed after the copy was submitted";
        for operation in operations {
            self.report(FindingKind::HostChangedInFlight, operation, detail);
        }
    }

    /// Checks other work in flight before the device writes host memory.
    pub(crate) fn check_others(&mut self, start: usize, end: usize) {
        let mut changed = Vec::new();
        self.for_overlapping(start, end, |op, overlaps| {
            changed.extend(op.check_pieces(overlaps));
        });
        self.report_changed(changed);
    }

    /// Rehashes other work in flight after the device wrote host memory.
    pub(crate) fn rehash_others(&mut self, start: usize, end: usize) {
        self.for_overlapping(start, end, |op, overlaps| {
            let pieces = op.pieces_mut().iter_mut();
            pieces.filter(|it| overlaps(it)).for_each(Piece::rehash);
        });
    }

    /// Passes all work in flight to `visit`, with a test whether a piece overlaps a range of host
    /// memory.
    fn for_overlapping(
        &mut self,
        start: usize,
        end: usize,
        mut visit: impl FnMut(&mut Operation, &dyn Fn(&Piece) -> bool),
    ) {
        if !self.config.checks {
            return;
        }
        let overlaps = |piece: &Piece| piece.pinned().is_some_and(|it| it.overlaps(start, end));
        for &id in &self.active {
            let queue = self.streams.get_mut(id).map(|stream| &mut stream.queue);
            for op in queue.into_iter().flatten() {
                visit(op, &overlaps);
            }
        }
    }

    /// Checks the work behind a callback before it is called. Until the callback returns, it may
    /// change that work's memory.
    pub(crate) fn check_behind_callback(&mut self, stream: Id) {
        let mut changed = Vec::new();
        self.for_behind(stream, |op| changed.extend(op.check_pieces(&|_| true)));
        self.report_changed(changed);
    }

    /// Rehashes the work behind a callback after it returned.
    pub(crate) fn rehash_behind_callback(&mut self, stream: Id) {
        self.for_behind(stream, |op| {
            op.pieces_mut().iter_mut().for_each(Piece::rehash);
        });
    }

    /// Passes all operations to `visit` that come after the first one of a stream: in the stream
    /// itself, and in streams that wait for it, directly or not.
    fn for_behind(&mut self, stream: Id, mut visit: impl FnMut(&mut Operation)) {
        if !self.config.checks {
            return;
        }
        let queue = self.streams.get(stream).map(|stream| &stream.queue);
        let Some(first) = queue.and_then(|queue| queue.front()) else {
            return;
        };
        // Streams, each with the sequence number after which its work is behind the first one.
        let mut behind = vec![(stream, first.sequence)];
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
            ops.filter(|op| op.sequence > after).for_each(&mut visit);
        }
    }
}
