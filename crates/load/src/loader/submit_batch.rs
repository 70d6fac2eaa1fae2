//! Submits a batch whose samples are all read: its copy, and the transforms on the device.

use std::sync::Arc;

use pinlane_core::internal::lock;

use super::Batch;
use super::buffers::{BatchSlot, CopyInFlight};
use super::epoch_scheduler::EpochScheduler;
use super::pending_batch::PendingBatch;

impl EpochScheduler {
    /// All samples of a batch are finished: submit it.
    pub(super) fn submit(&self, pending: &PendingBatch, slot: BatchSlot) {
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
