//! What worker threads do: read samples into the slots of open batches, and submit full ones.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use pinlane_core::internal::lock;

use crate::dataset::SampleMut;
use crate::panic;

use super::buffers::{BatchSlot, CopyInFlight};
use super::pending_batch::PendingBatch;
use super::scheduler::EpochScheduler;
use super::{Batch, LoaderError, OnError, Result, SkippedSample, elapsed_ns};

impl EpochScheduler {
    /// Work until nothing is left to do; without `wait`, only until it would have to wait.
    pub(super) fn work(&self, wait: bool) {
        let (core, mut sample) = (&*self.core, SampleMut::new());
        while let Some(batch) = self.next_batch(wait) {
            while let Some(mut claim) = batch.slot.claim(core.claim_len) {
                let start = Instant::now();
                for unit in claim.units() {
                    // Samples that are no longer needed count as finished, unread.
                    if self.is_cancelled(batch.number) || batch.failed_before(unit) {
                        continue;
                    }
                    let mut filled = sample.recycled();
                    for (field, room) in core.layout.fields.iter().zip(claim.slices_mut(unit)) {
                        filled.push(field, room);
                    }
                    self.read(&batch, unit, &mut filled);
                    sample = filled.recycled();
                }
                lock(&core.buffers.stats).read_ns += elapsed_ns(start);
                // One claim of a batch has its middle.
                let middle = batch.samples.len() / 2;
                let open_next = core.workers > 1 && claim.units().contains(&middle);
                if let Some(slot) = claim.finish() {
                    self.submit(&batch, slot);
                }
                if open_next {
                    self.open_ahead();
                }
            }
        }
    }

    fn read(&self, pending: &PendingBatch, number: usize, sample: &mut SampleMut<'_>) {
        let (core, batch) = (&*self.core, pending.number);
        let index = pending.samples[number].index;
        sample.seal();
        let read = catch_unwind(AssertUnwindSafe(|| core.dataset.read(index, sample)));
        let read = read.map(|read| read.and_then(|()| pending.keep(&core.layout, number, sample)));
        let origin = || {
            let origin = catch_unwind(AssertUnwindSafe(|| core.dataset.origin(index)));
            origin.unwrap_or_else(|panic| format!("of unknown origin: {}", panic::text(panic)))
        };
        let failure = match read {
            Ok(Ok(())) => return,
            Ok(Err(error)) if core.on_error == OnError::Skip => {
                let skipped = SkippedSample {
                    index,
                    origin: origin(),
                    reason: error.chain(),
                };
                return pending.skip(number, skipped);
            }
            Ok(Err(cause)) => LoaderError::Sample {
                batch,
                index,
                origin: origin(),
                cause,
            },
            Err(panic) => LoaderError::DatasetPanicked {
                batch,
                index,
                origin: origin(),
                text: panic::text(panic),
            },
        };
        pending.fail(number, failure);
    }

    /// `None` if the batch is no longer needed, or if it would have to wait without `wait`.
    pub(super) fn open(&self, number: u64, wait: bool) -> Result<Option<PendingBatch>> {
        let core = &*self.core;
        let slot = match wait {
            true => core.buffers.slot(|| self.is_cancelled(number)),
            false => core.buffers.try_slot(),
        };
        let slot = slot.map_err(|failure| self.device_error(number, failure))?;
        Ok(slot.map(|slot| PendingBatch::new(&core.layout, &self.order, number, slot)))
    }

    /// All samples of a batch are finished: submit it.
    fn submit(&self, pending: &PendingBatch, slot: BatchSlot) {
        let (number, buffers) = (pending.number, &self.core.buffers);
        if self.is_cancelled(number) {
            return buffers.return_slot(slot);
        }
        if let Some(error) = lock(&pending.failure).take() {
            buffers.return_slot(slot);
            return self.put(number, Err(error));
        }
        let submitted = self.submit_copy(pending, slot);
        self.put(
            number,
            submitted.map_err(|error| self.device_error(number, error.into())),
        );
    }

    /// Pack a batch, and submit its copy and its device transforms.
    fn submit_copy(&self, pending: &PendingBatch, slot: BatchSlot) -> pinlane_core::Result<Batch> {
        let (core, (mut buffer, timer)) = (&*self.core, slot);
        let (buffers, stream) = (&core.buffers, &core.buffers.stream);
        let (mut packed, samples) = pending.pack(&core.layout, &mut buffer);
        let mut memory = match buffers.device_batch() {
            Ok(memory) => memory,
            Err(error) => {
                buffers.return_slot((buffer, timer));
                return Err(error);
            }
        };
        let target = memory.raw.range_mut(..packed.bytes);
        let timed = stream.timed(&timer.stopwatch);
        match timed.upload(buffer.part(..packed.bytes), target) {
            Ok(transfer) => buffers.add_copy(CopyInFlight {
                transfer,
                timer,
                batch: pending.number,
                bytes: packed.bytes as u64,
                stale: false,
            }),
            Err(failed) => {
                if let Some(part) = failed.buffer {
                    buffers.return_slot((part.into_whole(), timer));
                }
                // The device memory is not used again after an error.
                return Err(failed.error);
            }
        }
        core.transforms
            .run(stream, &mut packed.spans, &mut memory)?;
        let skipped = pending.take_skipped();
        let mut stats = lock(&buffers.stats);
        stats.batches += 1;
        stats.samples += samples.len() as u64;
        stats.skipped += skipped.len() as u64;
        stats.bytes += packed.bytes as u64;
        drop(stats);
        Ok(Batch {
            number: pending.number,
            indices: samples.iter().map(|sample| sample.index).collect(),
            padding: samples.iter().filter(|sample| sample.padding).count(),
            skipped,
            fields: Arc::clone(&core.layout.fields),
            spans: packed.spans,
            memory: Some(memory),
            buffers: Arc::downgrade(buffers),
        })
    }
}
