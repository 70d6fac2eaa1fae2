//! What worker threads do: read samples into the slots of open batches.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use pinlane_core::internal::lock;

use crate::dataset::SampleMut;
use crate::panic;

use super::epoch_scheduler::EpochScheduler;
use super::pending_batch::PendingBatch;
use super::{LoaderError, OnError, Result, SkippedSample, elapsed_ns};

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
            Ok(Err(error)) if core.on_error == OnError::Skip && !error.ends_epoch() => {
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
}
