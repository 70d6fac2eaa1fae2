//! A thread that reads slices of pieces into pinned slots, and sends slots that are full to the device.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use super::convert::converted;
use super::files::{GRAIN_BYTES, Way};
use super::filling::{Filling, Slice};
use super::job::{Job, add};
use super::slots::another;
use super::stats::thread_time;
use super::team::{Slot, Turn};
use crate::{Fault, LoadError, Piece, PiecePart, panic};
use pinlane_core::internal::keep_stray_error;
use pinlane_core::{Error, PoolBuf};

/// What a thread tells.
pub(super) enum Report {
    /// These parts are on the device.
    Landed(Vec<PiecePart>),
    /// The load cannot go on.
    Failed(LoadError),
}

/// A thread of a load.
pub(super) struct Worker<'j> {
    job: &'j Job,
    told: &'j Sender<Report>,
    /// What is read before it is converted.
    scratch: Vec<u8>,
}

/// Reads until nothing is left, or nobody wants it.
pub(super) fn run(job: &Job, told: &Sender<Report>) {
    let mut worker = Worker {
        job,
        told,
        scratch: Vec::new(),
    };
    let worked = catch_unwind(AssertUnwindSafe(|| worker.work()));
    let error = match worked {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error,
        Err(panic) => {
            let says = panic::text(panic);
            Fault::Panicked { says }.into()
        }
    };
    job.stop();
    worker.tell(Report::Failed(error));
}

impl Worker<'_> {
    fn work(&mut self) -> Result<(), LoadError> {
        let job = self.job;
        loop {
            match job.turn() {
                Turn::Open(piece, way) => self.open(piece, way)?,
                Turn::Look(piece) => {
                    let way = job.source(&piece).way(&piece.bytes);
                    if let Some(piece) = job.team.consider(piece, way) {
                        self.open(piece, way)?;
                    }
                }
                Turn::Read(slice) => self.read(slice)?,
                Turn::End => break,
            }
        }
        while let Some((transfer, parts)) = job.team.flying() {
            let slot = self.land(transfer.wait(), parts)?;
            job.team.put(slot);
        }
        Ok(())
    }

    /// Find a slot for a piece.
    fn open(&mut self, piece: Piece, way: Way) -> Result<(), LoadError> {
        let job = self.job;
        let slot = match job.team.slot(&job.device) {
            Slot::Free(slot) => slot,
            Slot::Flying((transfer, parts)) => {
                let began = Instant::now();
                let landed = transfer.wait();
                let waited = job.team.waited_for_the_link(began.elapsed());
                add(&job.spent.waiting_ns, waited);
                self.land(landed, parts)?
            }
            Slot::None => return Ok(()),
            Slot::New => match another(&job.device, job.sizes.slot_bytes) {
                Ok(slot) => slot,
                Err(error) if job.team.no_slot(piece, way) => {
                    return Err(Fault::device(error).into());
                }
                Err(error) => {
                    keep_stray_error(&job.device, error);
                    return Ok(());
                }
            },
        };
        let filling = Filling::new(piece, way, job.sizes.slice_bytes, slot);
        job.team.opened(filling);
        Ok(())
    }

    /// Read a slice, and send the slot on its way if it was the last one.
    fn read(&mut self, mut slice: Slice) -> Result<(), LoadError> {
        let filling = Arc::clone(slice.filling());
        let piece = &filling.piece;
        if self.job.convert.is_some() {
            let slot = slice.end().expect("all of it is this thread's");
            return self.convert(&filling, slot);
        }
        self.fetch(piece, &slice.bytes(), filling.way, slice.target())?;
        match slice.end() {
            Some(slot) => self.ship(piece, slot, plain(piece, filling.start())),
            None => Ok(()),
        }
    }

    /// Read all of a piece, and convert what is to be converted.
    fn convert(&mut self, filling: &Filling, mut slot: PoolBuf<u8>) -> Result<(), LoadError> {
        let (job, piece) = (self.job, &filling.piece);
        let copies = match piece.converts() {
            false => {
                let read = self.fetch(piece, &piece.bytes, filling.way, &mut slot);
                read.map(|()| plain(piece, filling.start()))
            }
            true => {
                let mut scratch = std::mem::take(&mut self.scratch);
                scratch.resize(job.sizes.piece_bytes + PAGE_BYTES, 0);
                let page = scratch.as_ptr().align_offset(PAGE_BYTES);
                let target = &mut scratch[page..page + job.sizes.piece_bytes];
                let read = self.fetch(piece, &piece.bytes, filling.way, target);
                let copies =
                    read.map(|()| converted(job, piece, &target[filling.start()..], &mut slot));
                self.scratch = scratch;
                copies
            }
        };
        match copies {
            Ok(copies) => self.ship(piece, slot, copies),
            Err(error) => {
                job.team.put(slot);
                Err(error)
            }
        }
    }

    /// Read bytes of a piece.
    fn fetch(
        &self,
        piece: &Piece,
        range: &Range<u64>,
        way: Way,
        target: &mut [u8],
    ) -> Result<(), LoadError> {
        let job = self.job;
        let (began, ran) = (Instant::now(), thread_time());
        let read = job.source(piece).read(range, way, target);
        let took = began.elapsed();
        add(&job.spent.reading_ns, took);
        let ran = thread_time().saturating_sub(ran);
        add(&job.spent.blocked_ns, took.saturating_sub(ran));
        job.team.read(way);
        match read {
            Ok(way) => {
                job.read(way, range.end - range.start);
                Ok(())
            }
            Err(error) => {
                let there = |part: &&PiecePart| {
                    piece.bytes.start + part.copy.from_bytes + part.copy.len_bytes > range.start
                };
                Err(match piece.parts.iter().find(there) {
                    Some(part) => error.with_tensor(job.tensors()[part.tensor].name()),
                    None => error,
                })
            }
        }
    }

    /// Send a full slot on its way.
    fn ship(&self, piece: &Piece, slot: PoolBuf<u8>, copies: Vec<Copy>) -> Result<(), LoadError> {
        let job = self.job;
        let place = |copy: &Copy| {
            let memory = job.memory(copy.allocation);
            let target = memory.shared_range_mut(copy.to..copy.to + copy.bytes);
            (copy.from..copy.from + copy.bytes, target)
        };
        let places: Vec<_> = copies.iter().map(place).collect();
        match job.stream.upload_pieces(slot, &places) {
            Ok(transfer) => {
                job.team.sent((transfer, piece.parts.clone()));
                Ok(())
            }
            Err((failure, at)) => {
                if let Some(slot) = failure.buffer {
                    job.team.put(slot);
                }
                let there =
                    |part: &&PiecePart| copies.get(at).is_some_and(|copy| copy.brings(part));
                let part = piece.parts.iter().find(there);
                Err(self.lost(failure.error, part.or(piece.parts.first())))
            }
        }
    }

    /// A slot has landed, or not.
    fn land(
        &self,
        landed: Result<PoolBuf<u8>, pinlane_core::TransferError<PoolBuf<u8>>>,
        parts: Vec<PiecePart>,
    ) -> Result<PoolBuf<u8>, LoadError> {
        match landed {
            Ok(slot) => {
                self.job.landed();
                self.tell(Report::Landed(parts));
                Ok(slot)
            }
            Err(failure) => {
                if let Some(slot) = failure.buffer {
                    self.job.team.put(slot);
                }
                Err(self.lost(failure.error, parts.first()))
            }
        }
    }

    fn lost(&self, error: Error, part: Option<&PiecePart>) -> LoadError {
        let tensor = part.map(|part| part.tensor);
        self.job.failed(Fault::device(error), tensor)
    }

    fn tell(&self, report: Report) {
        // Nobody is told where nobody listens.
        let _ = self.told.send(report);
    }
}

const PAGE_BYTES: usize = GRAIN_BYTES as usize;

/// Bytes of a slot that go to one place.
pub(super) struct Copy {
    pub(super) from: usize,
    pub(super) allocation: usize,
    pub(super) to: usize,
    pub(super) bytes: usize,
}

impl Copy {
    /// Whether some of a part goes where this copy goes.
    fn brings(&self, part: &PiecePart) -> bool {
        let (start, end) = (self.to as u64, (self.to + self.bytes) as u64);
        part.copy.allocation == self.allocation && (start..end).contains(&part.copy.to_bytes)
    }
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
