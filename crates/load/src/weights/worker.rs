//! A reader thread: reads parts of pieces into pinned slots, and submits full slots to the device.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use super::convert::fill_converted;
use super::job::Job;
use super::open_piece::{OpenPiece, PieceRead};
use super::scheduler::{NextSlot, WorkStep};
use super::slots::{SlotBuf, take_slot};
use super::source_file::{ALIGN_BYTES, ReadMode};
use super::stats::thread_cpu_time;
use crate::{LoadError, LoadErrorKind, Piece, PieceCopy, PiecePart, panic};
use pinlane_core::internal::{keep_stray_error, lock};
use pinlane_core::{Error, TransferError};

/// A message from a reader thread.
pub(super) enum WorkerEvent {
    /// These parts are on the device.
    Arrived(Vec<PiecePart>),
    /// The load failed.
    Failed(LoadError),
}

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
    worker.send(WorkerEvent::Failed(error));
}

impl Worker<'_> {
    fn work(&self) -> Result<(), LoadError> {
        let job = self.job;
        // Holds a piece before it is converted.
        let mut scratch = Vec::new();
        loop {
            match job.scheduler.next_step(&job.plan) {
                WorkStep::Open(piece, mode) => self.open(piece, mode)?,
                WorkStep::ChooseMode(piece) => {
                    let mode = job.file(&piece).mode(&piece.bytes);
                    if let Some(piece) = job.scheduler.may_open(piece, mode) {
                        self.open(piece, mode)?;
                    }
                }
                WorkStep::Read(read) => self.read(read, &mut scratch)?,
                WorkStep::Done => break,
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
            NextSlot::Allocate => match take_slot(&job.device, job.sizes.slot_bytes) {
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
        match read.finish() {
            Some(slot) => {
                let mut copies = piece.copies();
                for copy in &mut copies {
                    copy.from_bytes += open.start() as u64;
                }
                self.submit(piece, slot, &copies)
            }
            None => Ok(()),
        }
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
        let mut slot = read.finish().expect("one read covers a converted piece");
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
        let read = job.file(piece).read(range, mode, target);
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
                if let Some(slot) = failure.buffer {
                    job.scheduler.free_slot(slot);
                }
                let in_copy = |part: &&PiecePart| {
                    copies.get(at).is_some_and(|copy| {
                        let to_bytes = copy.to_bytes..copy.to_bytes + copy.len_bytes;
                        part.copy.allocation == copy.allocation
                            && to_bytes.contains(&part.copy.to_bytes)
                    })
                };
                let part = piece.parts.iter().find(in_copy);
                Err(self.device_error(failure.error, part.or(piece.parts.first())))
            }
        }
    }

    /// Handles the end of a copy. Returns the slot.
    fn arrived(
        &self,
        result: Result<SlotBuf, TransferError<SlotBuf>>,
        parts: Vec<PiecePart>,
    ) -> Result<SlotBuf, LoadError> {
        match result {
            Ok(slot) => {
                let elapsed = self.job.began.elapsed();
                let mut stats = lock(&self.job.stats);
                stats.elapsed = stats.elapsed.max(elapsed);
                drop(stats);
                self.send(WorkerEvent::Arrived(parts));
                Ok(slot)
            }
            Err(failure) => {
                if let Some(slot) = failure.buffer {
                    self.job.scheduler.free_slot(slot);
                }
                Err(self.device_error(failure.error, parts.first()))
            }
        }
    }

    fn device_error(&self, error: Error, part: Option<&PiecePart>) -> LoadError {
        let tensor = part.map(|part| part.tensor);
        self.job.error(LoadErrorKind::device(error), tensor)
    }

    fn send(&self, event: WorkerEvent) {
        // Fails only if the stream was dropped.
        let _ = self.events.send(event);
    }
}
