//! A thread that reads pieces into pinned slots and sends them to the device.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::time::Instant;

use super::convert::converted;
use super::job::{Job, Task, add};
use super::slots::{Slots, keep_stray};
use crate::load::{Fault, LoadError, Piece, PiecePart, panic};
use crate::{Error, PinnedBuf, Stream};

/// Slots that a thread has in flight: the next one is filled meanwhile. More do not make it faster,
/// and what was read is then no longer in the CPU's caches when it is copied.
const SLOTS: usize = 2;

/// What a thread tells.
pub(super) enum Report {
    /// These parts are on the device.
    Landed(Vec<PiecePart>),
    /// The load cannot go on.
    Failed(LoadError),
}

/// Reads pieces until there are none, or nobody wants them. Where no more memory can be pinned, it
/// leaves them to the threads that have some.
pub(super) fn run(job: &Job, told: &Sender<Report>) {
    let worked = catch_unwind(AssertUnwindSafe(|| work(job, told)));
    let error = match worked {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error,
        Err(panic) => {
            let says = panic::text(panic);
            Fault::Panicked { says }.into()
        }
    };
    job.stop();
    // Nobody is told where nobody listens.
    let _ = told.send(Report::Failed(error));
}

fn work(job: &Job, told: &Sender<Report>) -> Result<(), LoadError> {
    let mut slots = match Slots::new(&job.device, job.slot_bytes, SLOTS) {
        Ok(slots) => slots,
        Err(error) if job.give_up(1) => return Err(Fault::device(error).into()),
        Err(error) => {
            keep_stray(&job.device, error);
            return Ok(());
        }
    };
    let lost = |(error, parts): (Error, Vec<PiecePart>)| {
        job.failed(Fault::device(error), parts.first().map(|part| part.tensor))
    };
    let tell = |parts| {
        job.landed();
        // Nobody is told where nobody listens.
        let _ = told.send(Report::Landed(parts));
    };
    let mut scratch = Vec::new();
    while let Some(task) = job.take() {
        let began = Instant::now();
        let (slot, landed) = slots.free().map_err(lost)?;
        add(&job.spent.waiting_ns, began.elapsed());
        if let Some(parts) = landed {
            tell(parts);
        }
        match ship(job, &task, slot, &job.stream, &mut scratch) {
            Ok(transfer) => slots.sent(transfer, task.piece.parts),
            Err((error, slot)) => {
                if let Some(slot) = slot {
                    slots.put(slot);
                }
                return Err(error);
            }
        }
    }
    while let Some(landed) = slots.land() {
        let (slot, parts) = landed.map_err(lost)?;
        slots.put(slot);
        tell(parts);
    }
    Ok(())
}

type Transfer = crate::Transfer<PinnedBuf<u8>>;
type Unsent = (LoadError, Option<PinnedBuf<u8>>);

/// Read a piece into a slot, and send it on its way.
fn ship(
    job: &Job,
    task: &Task,
    mut slot: PinnedBuf<u8>,
    stream: &Stream,
    scratch: &mut Vec<u8>,
) -> Result<Transfer, Unsent> {
    let piece = &task.piece;
    let filled = match piece.converts() {
        false => read(job, task, &mut slot).map(|start| plain(piece, start)),
        true => {
            scratch.resize(job.slot_bytes + PAGE_BYTES, 0);
            let page = scratch.as_ptr().align_offset(PAGE_BYTES);
            let read = read(job, task, &mut scratch[page..page + job.slot_bytes]);
            read.map(|start| converted(job, piece, &scratch[page + start..], &mut slot))
        }
    };
    let copies = match filled {
        Ok(copies) => copies,
        Err(error) => return Err((error, Some(slot))),
    };
    let places: Vec<_> = copies
        .into_iter()
        .map(
            |Copy {
                 from,
                 allocation,
                 to,
                 bytes,
             }| {
                let memory = job.memory(allocation);
                (from..from + bytes, memory.shared_range_mut(to..to + bytes))
            },
        )
        .collect();
    stream.upload_pieces(slot, &places).map_err(|failure| {
        let tensor = piece.parts.first().map(|part| part.tensor);
        let error = job.failed(Fault::device(failure.error), tensor);
        (error, failure.buffer)
    })
}

const PAGE_BYTES: usize = 4096;

/// Bytes of a slot that go to one place.
pub(super) struct Copy {
    pub(super) from: usize,
    pub(super) allocation: usize,
    pub(super) to: usize,
    pub(super) bytes: usize,
}

fn read(job: &Job, task: &Task, slot: &mut [u8]) -> Result<usize, LoadError> {
    let began = Instant::now();
    let read = job.source(&task.piece).read(&task.piece, task.way, slot);
    job.read(task, began.elapsed());
    read.map_err(|error| match task.piece.parts.first() {
        Some(part) => error.with_tensor(job.tensors()[part.tensor].name()),
        None => error,
    })
}

/// The copies of a piece that starts there in its slot.
fn plain(piece: &Piece, start: usize) -> Vec<Copy> {
    let copies = piece.copies().into_iter();
    copies
        .map(|copy| Copy {
            from: start + copy.from_bytes as usize,
            allocation: copy.allocation,
            to: copy.to_bytes as usize,
            bytes: copy.len_bytes as usize,
        })
        .collect()
}
