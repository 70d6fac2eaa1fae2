//! A reader thread: reads parts of pieces into pinned slots, and submits full slots to the device.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use super::convert::fill_converted;
use super::job::Job;
use super::open_piece::{OpenPiece, PieceRead, SlotBuf};
use super::scheduler::{NextSlot, WorkStep};
use super::source_file::{ALIGN_BYTES, ReadMode};
use super::stats::thread_cpu_time;
use crate::{LoadError, LoadErrorKind, Piece, PieceCopy, PiecePart, panic};
use pinlane_core::TransferError;
use pinlane_core::internal::{keep_stray_error, lock, pinned_store};

/// A message from a reader thread: parts that are on the device, or why the load failed.
pub(super) type WorkerEvent = Result<Vec<PiecePart>, LoadError>;

pub(super) struct Worker<'j> {
    job: &'j Job,
    events: &'j Sender<WorkerEvent>,
}

/// Works until nothing is left, or the load is cancelled.
pub(super) fn run(job: &Job, events: &Sender<WorkerEvent>) {
    let worker = Worker { job, events };
    let error = match catch_unwind(AssertUnwindSafe(|| worker.work())) {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error,
        Err(panic) => {
            let message = panic::text(panic);
            LoadErrorKind::Panicked { message }.into()
        }
    };
    job.scheduler.cancel();
    worker.send(Err(error));
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
            }
        }
        while let Some((transfer, parts)) = job.scheduler.pop_in_flight() {
            let slot = self.arrived(transfer.wait(), parts)?;
            job.scheduler.free_slot(slot);
        }
        Ok(())
    }

    /// Opens a piece: finds a slot for it.
    fn open(&self, piece: Piece, mode: ReadMode) -> Result<(), LoadError> {
        let job = self.job;
        let slot = match job.scheduler.next_slot(&job.device) {
            NextSlot::Free(slot) => slot,
            NextSlot::InFlight((transfer, parts)) => {
                let began = Instant::now();
                let result = transfer.wait();
                let waited = job.scheduler.total_wait(began.elapsed());
                lock(&job.stats).waiting += waited;
                self.arrived(result, parts)?
            }
            NextSlot::Cancelled => return Ok(()),
            NextSlot::Allocate => match pinned_store(&job.device).take(job.sizes.slot_bytes) {
                Ok(slot) => slot,
                Err(error) if job.scheduler.slot_failed(piece, mode) => return Err(error.into()),
                Err(error) => {
                    keep_stray_error(&job.device, error);
                    return Ok(());
                }
            },
        };
        let piece = OpenPiece::new(piece, mode, job.sizes.bytes_per_read, slot);
        job.scheduler.piece_opened(piece);
        Ok(())
    }

    /// Reads a part of a piece, and submits the slot if it is full.
    fn read(&self, mut read: PieceRead, scratch: &mut Vec<u8>) -> Result<(), LoadError> {
        let open = Arc::clone(&read.open);
        let piece = &open.piece;
        if piece.converts() {
            return self.read_and_convert(&open, read, scratch);
        }
        self.fetch(piece, &read.bytes(), open.mode, read.target())?;
        let Some(slot) = read.claim.finish() else {
            return Ok(());
        };
        let mut copies = piece.copies();
        for copy in &mut copies {
            copy.from_bytes += open.start() as u64;
        }
        self.submit(piece, slot, &copies)
    }

    /// Reads a whole piece, and converts it into its slot.
    fn read_and_convert(
        &self,
        open: &OpenPiece,
        read: PieceRead,
        scratch: &mut Vec<u8>,
    ) -> Result<(), LoadError> {
        let (job, piece) = (self.job, &open.piece);
        let align = ALIGN_BYTES as usize;
        scratch.resize(job.sizes.piece_bytes + align, 0);
        let page = scratch.as_ptr().align_offset(align);
        let target = &mut scratch[page..page + job.sizes.piece_bytes];
        self.fetch(piece, &piece.bytes, open.mode, target)?;
        let slot = read.claim.finish();
        let mut slot = slot.expect("one read covers a converted piece");
        let copies = fill_converted(job, piece, &target[open.start()..], &mut slot);
        self.submit(piece, slot, &copies)
    }

    /// Reads a range of a piece's file.
    fn fetch(
        &self,
        piece: &Piece,
        range: &Range<u64>,
        mode: ReadMode,
        target: &mut [u8],
    ) -> Result<(), LoadError> {
        let job = self.job;
        let (began, cpu_time) = (Instant::now(), thread_cpu_time());
        let read = job.files[&piece.file].read(range, mode, target);
        let took = began.elapsed();
        let cpu_time = thread_cpu_time().saturating_sub(cpu_time);
        job.scheduler.read_done(mode);
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

    /// Submits the copies of a full slot.
    fn submit(&self, piece: &Piece, slot: SlotBuf, copies: &[PieceCopy]) -> Result<(), LoadError> {
        let job = self.job;
        let places: Vec<_> = copies
            .iter()
            .map(|copy| {
                let [from, to] = [copy.from_bytes, copy.to_bytes].map(|offset| offset as usize);
                let len = copy.len_bytes as usize;
                let target = job.memory[copy.allocation].shared_range_mut(to..to + len);
                (from..from + len, target)
            })
            .collect();
        match job.stream.upload_pieces(slot, &places) {
            Ok(transfer) => {
                job.scheduler.submitted((transfer, piece.parts.clone()));
                Ok(())
            }
            Err((failure, at)) => {
                let in_copy = |part: &&PiecePart| {
                    copies.get(at).is_some_and(|copy| {
                        let to_bytes = copy.to_bytes..copy.to_bytes + copy.len_bytes;
                        part.copy.allocation == copy.allocation
                            && to_bytes.contains(&part.copy.to_bytes)
                    })
                };
                let part = piece.parts.iter().find(in_copy);
                Err(self.transfer_error(failure, part.or(piece.parts.first())))
            }
        }
    }

    /// Handles the end of a copy. Returns the slot.
    fn arrived(
        &self,
        result: Result<SlotBuf, TransferError<SlotBuf>>,
        parts: Vec<PiecePart>,
    ) -> Result<SlotBuf, LoadError> {
        let slot = result.map_err(|failure| self.transfer_error(failure, parts.first()))?;
        let elapsed = self.job.began.elapsed();
        let mut stats = lock(&self.job.stats);
        stats.elapsed = stats.elapsed.max(elapsed);
        drop(stats);
        self.send(Ok(parts));
        Ok(slot)
    }

    /// Frees the slot of a failed copy. Returns the error of the part.
    fn transfer_error(
        &self,
        failure: TransferError<SlotBuf>,
        part: Option<&PiecePart>,
    ) -> LoadError {
        if let Some(slot) = failure.buffer {
            self.job.scheduler.free_slot(slot);
        }
        let tensor = part.map(|part| part.tensor);
        self.job.error(failure.error.into(), tensor)
    }

    fn send(&self, event: WorkerEvent) {
        // Fails only if the stream was dropped.
        let _ = self.events.send(event);
    }
}
