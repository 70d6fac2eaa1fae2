//! From a batch in pinned memory to one on its way to the device.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::{Sample, panic};

use super::buffers::{BatchSlot, CopyInFlight, DeviceBatch};
use super::layout::PackedBatch;
use super::pending_batch::{PendingBatch, SampleFailure};
use super::scheduler::EpochScheduler;
use super::{Batch, LoaderError, SkippedSample};

impl EpochScheduler {
    /// All samples of a batch are finished: submit it.
    pub(super) fn submit(&self, pending: &PendingBatch, mut slot: BatchSlot) {
        let (number, core) = (pending.number, &*self.core);
        if self.is_cancelled(number) {
            core.buffers.return_slot(slot);
            return;
        }
        if let Some((sample, failure)) = pending.take_failure() {
            core.buffers.return_slot(slot);
            self.put(number, Err(self.sample_error(number, sample, failure)));
            return;
        }
        let (mut packed, samples) = pending.pack(&core.layout, &mut slot.0);
        let outcome = match self.submit_copy(number, slot, &packed) {
            Ok(memory) => {
                core.transforms.redirect(&mut packed.spans);
                Ok(self.batch(pending, packed, &samples, memory))
            }
            Err(error) => Err(self.device_error(number, error.into())),
        };
        self.put(number, outcome);
    }

    /// Submit the copy and the device transforms.
    fn submit_copy(
        &self,
        batch: u64,
        (buffer, timer): BatchSlot,
        packed: &PackedBatch,
    ) -> pinlane_core::Result<DeviceBatch> {
        let buffers = &self.core.buffers;
        let mut memory = match buffers.device_batch() {
            Ok(memory) => memory,
            Err(error) => {
                buffers.return_slot((buffer, timer));
                return Err(error);
            }
        };
        let stream = &buffers.stream;
        let target = memory.raw.range_mut(..packed.bytes);
        let timed = stream.timed(&timer.stopwatch);
        match timed.upload(buffer.part(..packed.bytes), target) {
            Ok(transfer) => buffers.add_copy(CopyInFlight {
                transfer,
                timer,
                batch,
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
        self.core.transforms.run(stream, packed, &mut memory)?;
        Ok(memory)
    }

    fn batch(
        &self,
        pending: &PendingBatch,
        packed: PackedBatch,
        samples: &[Sample],
        memory: DeviceBatch,
    ) -> Batch {
        let core = &*self.core;
        let skipped = pending.take_skipped().into_iter();
        let skipped: Vec<_> = skipped
            .map(|(sample, error)| SkippedSample {
                index: sample.index,
                origin: self.origin(sample.index),
                reason: error.chain(),
            })
            .collect();
        core.counters.update(|stats| {
            stats.batches += 1;
            stats.samples += samples.len() as u64;
            stats.skipped += skipped.len() as u64;
            stats.bytes += packed.bytes as u64;
        });
        Batch {
            number: pending.number,
            indices: samples.iter().map(|sample| sample.index).collect(),
            padding: samples.iter().filter(|sample| sample.padding).count(),
            skipped,
            fields: Arc::clone(core.layout.fields()),
            spans: packed.spans,
            memory: Some(memory),
            buffers: Arc::downgrade(&core.buffers),
        }
    }

    fn sample_error(&self, batch: u64, sample: Sample, failure: SampleFailure) -> LoaderError {
        let index = sample.index;
        let origin = self.origin(index);
        match failure {
            SampleFailure::Error(cause) => LoaderError::Sample {
                batch,
                index,
                origin,
                cause,
            },
            SampleFailure::Panic(text) => LoaderError::DatasetPanicked {
                batch,
                index,
                origin,
                text,
            },
        }
    }

    /// Where a sample comes from, as reported by the dataset.
    fn origin(&self, index: usize) -> String {
        let dataset = &self.core.dataset;
        catch_unwind(AssertUnwindSafe(|| dataset.origin(index))).unwrap_or_else(|panic| {
            let text = panic::text(panic);
            format!("of unknown origin: {text}")
        })
    }
}
