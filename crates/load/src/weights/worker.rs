//! A reader thread: reads parts of pieces into pinned slots, converts them, and submits full slots.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use super::job::Job;
use super::piece_being_filled::{OpenPiece, PieceRead, SlotBuf};
use super::read_scheduler::{NextSlot, PieceTransfer, WorkStep};
use super::source_file::{ALIGN_BYTES, ReadMode};
use super::stats::thread_cpu_time;
use crate::{LoadError, LoadErrorKind, Piece, PieceCopy, PiecePart, panic};
use pinlane_core::TransferError;
use pinlane_core::internal::{keep_stray_error, lock, pinned_store};
use pinlane_kernels::convert::floats;

/// A message from a reader thread: parts that are on the device, or why the load failed.
pub(super) type WorkerEvent = Result<Vec<PiecePart>, LoadError>;

struct Worker<'j> {
    job: &'j Job,
    events: &'j Sender<WorkerEvent>,
}

/// Works until nothing is left, or the load is cancelled.
pub(super) fn run(job: &Job, events: &Sender<WorkerEvent>) {
    let worker = Worker { job, events };
    let worked = catch_unwind(AssertUnwindSafe(|| worker.work())).unwrap_or_else(|panic| {
        let message = panic::text(panic);
        Err(LoadErrorKind::Panicked { message }.into())
    });
    if let Err(error) = worked {
        job.scheduler.cancel();
        // Fails only if the stream was dropped.
        let _ = events.send(Err(error));
    }
}

impl Worker<'_> {
    fn work(&self) -> Result<(), LoadError> {
        let job = self.job;
        // Holds a piece before it is converted.
        let mut scratch = Vec::new();
        while let Some(step) = job.scheduler.next_step(&job.plan) {
            match step {
                WorkStep::Open(piece, mode) => {
                    let choose = || job.files[&piece.file].mode(&piece.bytes);
                    let mode = mode.unwrap_or_else(choose);
                    if let Some(piece) = job.scheduler.may_open(piece, mode) {
                        self.open(piece, mode)?;
                    }
                }
                WorkStep::Read(read) => self.read(read, &mut scratch)?,
                WorkStep::Wait(transfer) => job.scheduler.free_slot(self.wait(transfer)?),
            }
        }
        while let Some(transfer) = job.scheduler.pop_in_flight() {
            job.scheduler.free_slot(self.wait(transfer)?);
        }
        Ok(())
    }

    /// Opens a piece: finds a slot for it.
    fn open(&self, piece: Piece, mode: ReadMode) -> Result<(), LoadError> {
        let job = self.job;
        let slot = match job.scheduler.next_slot(&job.device) {
            NextSlot::Free(slot) => slot,
            NextSlot::InFlight(transfer) => {
                let began = Instant::now();
                let slot = self.wait(transfer)?;
                let waited = job.scheduler.total_wait(began.elapsed());
                lock(&job.stats).waiting += waited;
                slot
            }
            NextSlot::Cancelled => return Ok(()),
            NextSlot::Allocate => match pinned_store(&job.device).take(job.sizes.slot_bytes) {
                Ok(slot) => slot,
                Err(error) if job.scheduler.slot_failed(piece, mode) => {
                    return Err(LoadErrorKind::device(error).into());
                }
                Err(error) => {
                    keep_stray_error(&job.device, error);
                    return Ok(());
                }
            },
        };
        let piece = OpenPiece::new(piece, mode, job.sizes.read_bytes, slot);
        job.scheduler.piece_opened(piece);
        Ok(())
    }

    /// Reads a part of a piece, and submits the slot if it is full.
    fn read(&self, mut read: PieceRead, scratch: &mut Vec<u8>) -> Result<(), LoadError> {
        let open = Arc::clone(&read.open);
        let piece = &open.piece;
        if piece.converts() {
            let (align, piece_bytes) = (ALIGN_BYTES as usize, self.job.sizes.piece_bytes);
            scratch.resize(piece_bytes + align, 0);
            let page = scratch.as_ptr().align_offset(align);
            let target = &mut scratch[page..page + piece_bytes];
            self.fetch(&open, &piece.bytes, target)?;
            let slot = read.claim.finish();
            let mut slot = slot.expect("one read covers a converted piece");
            let copies = fill_converted(self.job, piece, &target[open.start()..], &mut slot);
            return self.submit(piece, slot, &copies);
        }
        self.fetch(&open, &read.bytes(), read.target())?;
        let Some(slot) = read.claim.finish() else {
            return Ok(());
        };
        let mut copies = piece.copies();
        for copy in &mut copies {
            copy.from_bytes += open.start() as u64;
        }
        self.submit(piece, slot, &copies)
    }

    fn fetch(&self, open: &OpenPiece, range: &Range<u64>, to: &mut [u8]) -> Result<(), LoadError> {
        let (job, piece) = (self.job, &open.piece);
        let (began, cpu_time) = (Instant::now(), thread_cpu_time());
        let read = job.files[&piece.file].read(range, open.mode, to);
        let took = began.elapsed();
        let cpu_time = thread_cpu_time().saturating_sub(cpu_time);
        job.scheduler.read_done(open.mode);
        let mut stats = lock(&job.stats);
        stats.reading += took;
        stats.blocked += took.saturating_sub(cpu_time);
        match read {
            Ok(ReadMode::Buffered) => stats.buffered_bytes += range.end - range.start,
            Ok(ReadMode::Direct) => stats.direct_bytes += range.end - range.start,
            Err(error) => {
                let in_range = |part: &&PiecePart| {
                    piece.bytes.start + part.copy.from_bytes + part.copy.len_bytes > range.start
                };
                return Err(match piece.parts.iter().find(in_range) {
                    Some(part) => error.with_tensor(job.tensors[part.tensor].name()),
                    None => error,
                });
            }
        }
        Ok(())
    }

    fn submit(&self, piece: &Piece, slot: SlotBuf, copies: &[PieceCopy]) -> Result<(), LoadError> {
        let job = self.job;
        match job.memory.upload(&job.stream, slot, copies) {
            Ok(transfer) => {
                job.scheduler.submitted((transfer, piece.parts.clone()));
                Ok(())
            }
            Err((failure, at)) => {
                let part = piece.parts.iter().find(|part| {
                    copies.get(at).is_some_and(|copy| {
                        let to_bytes = copy.to_bytes..copy.to_bytes + copy.len_bytes;
                        part.copy.allocation == copy.allocation
                            && to_bytes.contains(&part.copy.to_bytes)
                    })
                });
                Err(self.failed(failure, part.or(piece.parts.first())))
            }
        }
    }

    /// Waits for a copy. Returns its slot.
    fn wait(&self, (transfer, parts): PieceTransfer) -> Result<SlotBuf, LoadError> {
        let waited = transfer.wait();
        let slot = waited.map_err(|failure| self.failed(failure, parts.first()))?;
        let elapsed = self.job.began.elapsed();
        let mut stats = lock(&self.job.stats);
        stats.elapsed = stats.elapsed.max(elapsed);
        drop(stats);
        // Fails only if the stream was dropped.
        let _ = self.events.send(Ok(parts));
        Ok(slot)
    }

    /// Frees the slot of a failed copy. Returns the error of the part.
    fn failed(&self, failure: TransferError<SlotBuf>, part: Option<&PiecePart>) -> LoadError {
        if let Some(slot) = failure.buffer {
            self.job.scheduler.free_slot(slot);
        }
        let tensor = part.map(|part| part.tensor);
        self.job.error(LoadErrorKind::device(failure.error), tensor)
    }
}

/// Fills a slot with the parts of a piece. Returns the copies from the slot to the device.
fn fill_converted(job: &Job, piece: &Piece, read: &[u8], slot: &mut [u8]) -> Vec<PieceCopy> {
    let began = Instant::now();
    let mut copies = Vec::with_capacity(piece.parts.len());
    // Contiguous bytes of the piece. Overlapping rows are one run, so they are converted only once.
    let (mut run_start, mut run_end, mut run_in_slot) = (0, 0, 0);
    let mut filled = 0;
    for part in &piece.parts {
        let start = part.copy.from_bytes as usize;
        let end = start + part.copy.len_bytes as usize;
        let dtype = job.tensors[part.tensor].dtype();
        let kinds = job.convert.and_then(|to| dtype.conversion_to(to));
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
                Some((from, to)) => floats(from, to, source, target),
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
