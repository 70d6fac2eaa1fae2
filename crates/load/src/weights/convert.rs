//! Elements that become others on their way into a slot.

use std::time::Instant;

use pinlane_kernels::convert;

use super::job::{Job, add};
use super::worker::Copy;
use crate::{Piece, PiecePart};

/// Bytes of a piece that are in the slot without a hole. Rows of a tensor that overlap are in one run,
/// so that each element is converted once, and takes room once.
#[derive(Default)]
struct Run {
    /// Where it starts in the piece.
    start: usize,
    /// Where it ends in there, as yet.
    end: usize,
    /// Where it starts in the slot.
    in_slot: usize,
}

/// Fill a slot with the parts of a piece, converted where they are to be.
pub(super) fn converted(job: &Job, piece: &Piece, read: &[u8], slot: &mut [u8]) -> Vec<Copy> {
    let began = Instant::now();
    let mut copies = Vec::with_capacity(piece.parts.len());
    let mut run = Run::default();
    let mut filled = 0;
    // Parts come in the order in which they start.
    for part in &piece.parts {
        let PiecePart { tensor, copy, .. } = *part;
        let start = copy.from_bytes as usize;
        let end = start + copy.len_bytes as usize;
        let kinds = || {
            let from = job.tensors()[tensor].dtype().float_kind()?;
            Some((from, job.dtype(tensor).float_kind()?))
        };
        // Others may be torn, and stay as they are.
        let kinds = part.converts.then(kinds).flatten();
        let in_slot = |bytes: usize| match kinds {
            None => bytes,
            Some((from, to)) => bytes / from.bytes() * to.bytes(),
        };
        if start >= run.end {
            run = Run {
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
        copies.push(Copy {
            from: run.in_slot + in_slot(start - run.start),
            allocation: copy.allocation,
            to: copy.to_bytes as usize,
            bytes: copy.to_len_bytes as usize,
        });
    }
    add(&job.spent.converting_ns, began.elapsed());
    copies
}
