//! The pieces of a plan: which file ranges are read together, and where their bytes go.

use std::ops::Range;

use super::Plan;
use crate::dtype::element_bytes;
use crate::{Dtype, TensorInfo};

/// A file range that is read into one pinned slot.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Piece {
    /// Position of the file in the catalog.
    pub file: usize,
    /// Byte range in the file.
    pub bytes: Range<u64>,
    /// The tensors the bytes belong to. Every byte belongs to at least one.
    pub parts: Vec<PiecePart>,
}

/// Bytes of a piece that belong to one tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct PiecePart {
    /// Position of the tensor in the plan.
    pub tensor: usize,
    /// The copy to the device.
    pub copy: PieceCopy,
    /// Whether the bytes are converted. If so, they are whole elements.
    pub converts: bool,
}

/// A copy from a piece to contiguous device memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct PieceCopy {
    /// Offset in the piece.
    pub from_bytes: u64,
    /// Number of the target allocation.
    pub allocation: usize,
    /// Offset in the allocation.
    pub to_bytes: u64,
    /// Bytes in the piece; never zero.
    pub len_bytes: u64,
    /// Bytes on the device; differs from `len_bytes` only if they are converted.
    pub to_len_bytes: u64,
}

impl Piece {
    /// Size in the file.
    pub fn len_bytes(&self) -> u64 {
        self.bytes.end - self.bytes.start
    }

    /// Whether any of its bytes are converted.
    pub fn converts(&self) -> bool {
        self.parts.iter().any(|part| part.converts)
    }

    /// The copies of a piece without conversions, merged where they are contiguous on both sides.
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

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TensorSource {
    /// Position of the tensor in the plan.
    pub(super) tensor: usize,
    pub(super) file: usize,
    pub(super) bytes: Range<u64>,
    /// Offset of these bytes in the tensor, and the size of the tensor: where the plan begins, it may be cut.
    pub(super) start_in_tensor: u64,
    pub(super) tensor_bytes: u64,
    converts: bool,
    /// Bytes per element in the file and on the device; both 1 if it is not converted.
    pub(super) element_bytes: (u64, u64),
}

impl TensorSource {
    /// Size on the device of whole elements that take `bytes` in the file.
    pub(super) fn device_bytes(&self, bytes: u64) -> Option<u64> {
        (bytes / self.element_bytes.0).checked_mul(self.element_bytes.1)
    }

    pub(super) fn len_bytes(&self) -> u64 {
        self.bytes.end - self.bytes.start
    }

    /// Cuts it at a place in the file, between two elements. Returns the tail.
    pub(super) fn split_off(&mut self, place: u64) -> Self {
        let mut tail = self.clone();
        tail.start_in_tensor += place - self.bytes.start;
        tail.bytes.start = place;
        self.bytes.end = place;
        tail
    }

    /// Whether this is the first part of a tensor that was cut. Its tail comes earlier in the plan.
    fn is_head(&self) -> bool {
        self.start_in_tensor == 0 && self.len_bytes() < self.tensor_bytes
    }
}

/// The ranges to read, sorted by file and offset.
pub(super) fn sources(tensors: &[TensorInfo], convert: Option<Dtype>) -> Vec<TensorSource> {
    let source = |(number, tensor): (usize, &TensorInfo)| {
        let kinds = convert.and_then(|to| tensor.dtype().conversion_to(to));
        TensorSource {
            tensor: number,
            file: tensor.file(),
            bytes: tensor.bytes(),
            start_in_tensor: 0,
            tensor_bytes: tensor.len_bytes(),
            converts: kinds.is_some(),
            element_bytes: element_bytes(kinds),
        }
    };
    let mut sources: Vec<_> = tensors.iter().enumerate().map(source).collect();
    sources.retain(|source| !source.bytes.is_empty());
    sources.sort_by_key(|source| (source.file, source.bytes.start, source.bytes.end));
    sources
}

/// Iterator over the pieces of a plan.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    pub(super) plan: &'a Plan,
    pub(super) cursor: PieceCursor,
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        self.cursor.next(self.plan)
    }
}

/// Position in the pieces of a plan.
#[derive(Clone, Default, Debug)]
pub(crate) struct PieceCursor {
    /// First source that no piece has reached.
    next: usize,
    /// Number of tensors that pieces have reached, in the order of the plan.
    pub(crate) reached: usize,
    /// Sources that pieces have reached but not finished, in order.
    open: Vec<usize>,
    file: usize,
    at: u64,
}

impl PieceCursor {
    pub(crate) fn next(&mut self, plan: &Plan) -> Option<Piece> {
        let (sources, options) = (&plan.sources, &plan.options);
        let at = self.at;
        self.open.retain(|number| sources[*number].bytes.end > at);
        if self.open.is_empty() {
            let source = sources.get(self.next)?;
            (self.file, self.at) = (source.file, source.bytes.start);
        }
        let aligned_start = self.at & !(options.read_align_bytes - 1);
        let limit = aligned_start.saturating_add(options.piece_bytes);
        let ends = self.open.iter().map(|number| sources[*number].bytes.end);
        let mut end = ends.max().unwrap_or(self.at).min(limit);
        let device_bytes = |number: usize| plan.placements[sources[number].tensor].len_bytes;
        let mut open_bytes: u64 = self.open.iter().map(|number| device_bytes(*number)).sum();
        // The sources that continue without a hole. One that had to wait for the window is read from its start,
        // when all before it are read.
        while let Some(source) = sources.get(self.next)
            && source.file == self.file
            && (self.at..=end).contains(&source.bytes.start)
            && source.bytes.start < limit
            && open_bytes < options.window_bytes
        {
            end = end.max(source.bytes.end.min(limit));
            open_bytes += device_bytes(self.next);
            self.open.push(self.next);
            self.next += 1;
            self.reached += usize::from(!source.is_head());
        }
        let end = self.whole_elements(plan, end);
        let bytes = self.at..end;
        self.at = end;
        let open = self.open.iter().map(|number| &sources[*number]);
        let parts = open
            .filter(|source| source.bytes.start < end)
            .map(|source| part(plan, source, &bytes));
        Some(Piece {
            file: self.file,
            parts: parts.collect(),
            bytes,
        })
    }

    /// Moves the end of a piece back so that it splits no converted element. All sources that continue
    /// there are rows of the same tensor.
    fn whole_elements(&self, plan: &Plan, end: u64) -> u64 {
        let sources = self.open.iter().map(|number| &plan.sources[*number]);
        sources
            .filter(|source| source.bytes.start < end && end < source.bytes.end)
            .map(|source| end - (end - source.bytes.start) % source.element_bytes.0)
            .min()
            .unwrap_or(end)
    }
}

fn part(plan: &Plan, source: &TensorSource, piece: &Range<u64>) -> PiecePart {
    let placement = plan.placements[source.tensor];
    let start = source.bytes.start.max(piece.start);
    let end = source.bytes.end.min(piece.end);
    let device_bytes = |bytes| {
        let bytes = source.device_bytes(bytes);
        bytes.expect("the whole tensor was placed")
    };
    PiecePart {
        tensor: source.tensor,
        copy: PieceCopy {
            from_bytes: start - piece.start,
            allocation: placement.allocation,
            to_bytes: placement.offset_bytes
                + device_bytes(source.start_in_tensor + start - source.bytes.start),
            len_bytes: end - start,
            to_len_bytes: device_bytes(end - start),
        },
        converts: source.converts,
    }
}
