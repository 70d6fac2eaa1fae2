//! Converts the elements of a piece on their way into a pinned slot.

use std::time::Instant;

use pinlane_core::internal::lock;
use pinlane_kernels::convert;

use super::job::Job;
use crate::{Piece, PieceCopy, PiecePart};

/// Contiguous bytes of a piece in the slot. Overlapping rows of a tensor are one run, so each element is
/// converted once and takes room once.
#[derive(Default)]
struct ConvertedRun {
    /// Start in the piece.
    start: usize,
    /// End in the piece, so far.
    end: usize,
    /// Start in the slot.
    in_slot: usize,
}

/// Fills a slot with the parts of a piece, converted if needed. Returns the copies from the slot to the
/// device.
pub(super) fn fill_converted(
    job: &Job,
    piece: &Piece,
    read: &[u8],
    slot: &mut [u8],
) -> Vec<PieceCopy> {
    let began = Instant::now();
    let mut copies = Vec::with_capacity(piece.parts.len());
    let mut run = ConvertedRun::default();
    let mut filled = 0;
    // Parts are sorted by start.
    for part in &piece.parts {
        let PiecePart { tensor, copy, .. } = *part;
        let start = copy.from_bytes as usize;
        let end = start + copy.len_bytes as usize;
        let kinds = job.tensors[tensor].dtype().conversion_to(job.dtype(tensor));
        let in_slot = |bytes: usize| match kinds {
            None => bytes,
            Some((from, to)) => bytes / from.bytes() * to.bytes(),
        };
        if start >= run.end {
            run = ConvertedRun {
                start,
                end: start,
                in_slot: filled,
            };
        }
        if end > run.end {
            let source = &read[run.end..end];
            let target = &mut slot[filled..filled + in_slot(source.len())];
            filled += target.len();
            run.end = end;
            match kinds {
                None => target.copy_from_slice(source),
                Some((from, to)) => convert::floats(from, to, source, target),
            }
        }
        copies.push(PieceCopy {
            from_bytes: (run.in_slot + in_slot(start - run.start)) as u64,
            len_bytes: copy.to_len_bytes,
            ..copy
        });
    }
    lock(&job.stats).converting += began.elapsed();
    copies
}
