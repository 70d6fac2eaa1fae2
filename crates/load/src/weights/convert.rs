//! Converts the elements of a piece on their way into a pinned slot.

use std::time::Instant;

use pinlane_core::internal::lock;
use pinlane_kernels::convert;

use super::job::Job;
use crate::{Piece, PieceCopy};

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
    // A run: contiguous bytes of the piece. Overlapping rows of a tensor are one run, so each element is
    // converted once and takes room once. `run_start` and `run_end` are offsets in the piece.
    let (mut run_start, mut run_end, mut run_in_slot) = (0, 0, 0);
    let mut filled = 0;
    // Parts are sorted by start.
    for part in &piece.parts {
        let start = part.copy.from_bytes as usize;
        let end = start + part.copy.len_bytes as usize;
        let dtype = job.tensors[part.tensor].dtype();
        let kinds = dtype.conversion_to(job.dtype(part.tensor));
        let in_slot = |bytes: usize| match kinds {
            None => bytes,
            Some((from, to)) => bytes / from.bytes() * to.bytes(),
        };
        if start >= run_end {
            (run_start, run_end, run_in_slot) = (start, start, filled);
        }
        if end > run_end {
            let source = &read[run_end..end];
            let target = &mut slot[filled..filled + in_slot(source.len())];
            filled += target.len();
            run_end = end;
            match kinds {
                None => target.copy_from_slice(source),
                Some((from, to)) => convert::floats(from, to, source, target),
            }
        }
        copies.push(PieceCopy {
            from_bytes: (run_in_slot + in_slot(start - run_start)) as u64,
            len_bytes: part.copy.to_len_bytes,
            ..part.copy
        });
    }
    lock(&job.stats).converting += began.elapsed();
    copies
}
