//! What is read when, and where its bytes go.

use std::ops::Range;

use super::Plan;
use crate::load::TensorInfo;

/// A range of a file that is read at once, into one pinned slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Number of the file in the catalog.
    pub file: usize,
    /// Bytes of the file.
    pub bytes: Range<u64>,
    /// Which tensors the bytes belong to. Every byte belongs to at least one.
    pub parts: Vec<PiecePart>,
}

/// Bytes of a piece that belong to one tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PiecePart {
    /// Number of the tensor in the plan. It is complete when parts of all its bytes have landed.
    pub tensor: usize,
    /// Where the bytes go.
    pub copy: PieceCopy,
}

/// Bytes of a piece that go to one place on the device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PieceCopy {
    /// Where they start in the piece.
    pub from_bytes: u64,
    /// Number of the allocation that they go to.
    pub allocation: usize,
    /// Where they go in there.
    pub to_bytes: u64,
    /// How many there are; never zero.
    pub len_bytes: u64,
}

impl Piece {
    /// How many bytes it has.
    pub fn len_bytes(&self) -> u64 {
        self.bytes.end - self.bytes.start
    }

    /// The copies to make: those of the parts, joined where one goes on behind the other on both
    /// sides.
    pub fn copies(&self) -> Vec<PieceCopy> {
        let mut copies: Vec<PieceCopy> = Vec::new();
        for PiecePart { copy, .. } in &self.parts {
            match copies.last_mut() {
                Some(last)
                    if last.allocation == copy.allocation
                        && last.from_bytes + last.len_bytes == copy.from_bytes
                        && last.to_bytes + last.len_bytes == copy.to_bytes =>
                {
                    last.len_bytes += copy.len_bytes;
                }
                _ => copies.push(*copy),
            }
        }
        copies
    }
}

/// Bytes to read for one tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Source {
    tensor: usize,
    file: usize,
    bytes: Range<u64>,
}

/// Numbers of the tensors, by file and offset.
pub(super) fn order(tensors: &[TensorInfo]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tensors.len()).collect();
    order.sort_by_key(|number| {
        let tensor = &tensors[*number];
        (tensor.file(), tensor.bytes().start, tensor.bytes().end)
    });
    order
}

/// What there is to read, by file and offset.
pub(super) fn sources(tensors: &[TensorInfo]) -> Vec<Source> {
    order(tensors)
        .into_iter()
        .map(|number| Source {
            tensor: number,
            file: tensors[number].file(),
            bytes: tensors[number].bytes(),
        })
        .filter(|source| !source.bytes.is_empty())
        .collect()
}

/// The pieces of a plan, by file and offset.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    plan: &'a Plan,
    /// The next that no piece has touched.
    next: usize,
    /// Those that pieces have touched and not ended, in order.
    open: Vec<usize>,
    file: usize,
    at: u64,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        Self {
            plan,
            next: 0,
            open: Vec::new(),
            file: 0,
            at: 0,
        }
    }

    /// Take the sources that go on, without a hole, from what is open. Returns where the piece ends.
    fn gather(&mut self, limit: u64) -> u64 {
        let sources = &self.plan.sources;
        let mut end = self.at;
        for number in &self.open {
            end = end.max(sources[*number].bytes.end.min(limit));
        }
        while let Some(source) = sources.get(self.next) {
            let goes_on =
                source.file == self.file && source.bytes.start <= end && source.bytes.start < limit;
            if !goes_on {
                break;
            }
            end = end.max(source.bytes.end.min(limit));
            self.open.push(self.next);
            self.next += 1;
        }
        end
    }

    fn part(&self, source: &Source, piece: &Range<u64>) -> PiecePart {
        let placement = self.plan.placements[source.tensor];
        let start = source.bytes.start.max(piece.start);
        let end = source.bytes.end.min(piece.end);
        PiecePart {
            tensor: source.tensor,
            copy: PieceCopy {
                from_bytes: start - piece.start,
                allocation: placement.allocation,
                to_bytes: placement.offset_bytes + (start - source.bytes.start),
                len_bytes: end - start,
            },
        }
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let (sources, options) = (&self.plan.sources, &self.plan.options);
        let at = self.at;
        self.open.retain(|number| sources[*number].bytes.end > at);
        if self.open.is_empty() {
            let source = sources.get(self.next)?;
            (self.file, self.at) = (source.file, source.bytes.start);
        }
        let grain_start = self.at & !(options.grain_bytes - 1);
        let end = self.gather(grain_start.saturating_add(options.piece_bytes));
        let bytes = self.at..end;
        self.at = end;
        let parts = self
            .open
            .iter()
            .map(|number| self.part(&sources[*number], &bytes))
            .collect();
        Some(Piece {
            file: self.file,
            bytes,
            parts,
        })
    }
}
