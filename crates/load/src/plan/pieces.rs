//! What is read when, and where its bytes go.

use std::ops::Range;

use super::Plan;
use super::convert::Conversion;
use crate::TensorInfo;

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
    /// Whether they are converted on the way. Then they are whole elements.
    pub converts: bool,
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
    /// How many there are in the piece; never zero.
    pub len_bytes: u64,
    /// How many there are on the device: another number only where they are converted.
    pub to_len_bytes: u64,
}

impl Piece {
    /// How many bytes it has.
    pub fn len_bytes(&self) -> u64 {
        self.bytes.end - self.bytes.start
    }

    /// Whether some of its bytes are converted.
    pub fn converts(&self) -> bool {
        self.parts.iter().any(|part| part.converts)
    }

    /// The copies to make where nothing is converted: those of the parts, joined where one goes on
    /// behind the other on both sides.
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
                    last.to_len_bytes += copy.to_len_bytes;
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
    conversion: Option<Conversion>,
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
pub(super) fn sources(tensors: &[TensorInfo], conversions: &[Option<Conversion>]) -> Vec<Source> {
    order(tensors)
        .into_iter()
        .map(|number| Source {
            tensor: number,
            file: tensors[number].file(),
            bytes: tensors[number].bytes(),
            conversion: conversions[number],
        })
        .filter(|source| !source.bytes.is_empty())
        .collect()
}

/// The pieces of a plan, by file and offset.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    plan: &'a Plan,
    cursor: Cursor,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        let cursor = Cursor::default();
        Self { plan, cursor }
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        self.cursor.next(self.plan)
    }
}

/// How far the pieces of a plan have come.
#[derive(Clone, Default, Debug)]
pub(crate) struct Cursor {
    /// The next that no piece has touched.
    next: usize,
    /// Those that pieces have touched and not ended, in order.
    open: Vec<usize>,
    file: usize,
    at: u64,
}

impl Cursor {
    pub(super) fn next(&mut self, plan: &Plan) -> Option<Piece> {
        let (sources, options) = (&plan.sources, &plan.options);
        let at = self.at;
        self.open.retain(|number| sources[*number].bytes.end > at);
        if self.open.is_empty() {
            let source = sources.get(self.next)?;
            (self.file, self.at) = (source.file, source.bytes.start);
        }
        let grain_start = self.at & !(options.grain_bytes - 1);
        let limit = grain_start.saturating_add(options.piece_bytes);
        let end = self.gather(plan, limit);
        let end = self.whole_elements(plan, end);
        let bytes = self.at..end;
        self.at = end;
        let parts = self
            .open
            .iter()
            .map(|number| &sources[*number])
            .filter(|source| source.bytes.start < end)
            .map(|source| part(plan, source, &bytes))
            .collect();
        Some(Piece {
            file: self.file,
            bytes,
            parts,
        })
    }

    /// Take the sources that go on, without a hole, from what is open. Returns where the piece ends.
    fn gather(&mut self, plan: &Plan, limit: u64) -> u64 {
        let sources = &plan.sources;
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

    /// Where a piece ends that tears no element which is converted. Those that go on there are of
    /// one tensor, or rows of it, so that one step back is right for all of them.
    fn whole_elements(&self, plan: &Plan, end: u64) -> u64 {
        let torn = |number: &usize| {
            let source = &plan.sources[*number];
            let conversion = source
                .conversion
                .filter(|_| source.bytes.start < end && end < source.bytes.end)?;
            Some(source.bytes.start + conversion.whole(end - source.bytes.start))
        };
        self.open.iter().find_map(torn).unwrap_or(end)
    }
}

fn part(plan: &Plan, source: &Source, piece: &Range<u64>) -> PiecePart {
    let placement = plan.placements[source.tensor];
    let start = source.bytes.start.max(piece.start);
    let end = source.bytes.end.min(piece.end);
    let on_device = |bytes| match source.conversion {
        None => bytes,
        Some(conversion) => conversion
            .on_device(bytes)
            .expect("the whole tensor was placed"),
    };
    PiecePart {
        tensor: source.tensor,
        copy: PieceCopy {
            from_bytes: start - piece.start,
            allocation: placement.allocation,
            to_bytes: placement.offset_bytes + on_device(start - source.bytes.start),
            len_bytes: end - start,
            to_len_bytes: on_device(end - start),
        },
        converts: source.conversion.is_some(),
    }
}
