//! From a batch that was read to one on its way to the device.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::{Sample, panic};

use super::batch::Span;
use super::engine::Engine;
use super::pack::Packed;
use super::sheet::{Sheet, Trouble};
use super::slot::{Berth, Flying, Slot};
use super::{Batch, LoaderError, Skipped};

impl Engine {
    /// All samples of a batch are done: send it off.
    pub(super) fn deliver(&self, sheet: &Sheet, mut slot: Slot) {
        let depot = &self.means.depot;
        if self.is_abandoned(sheet.number) {
            depot.put(slot);
            return;
        }
        if let Some((sample, trouble)) = sheet.take_failure() {
            depot.put(slot);
            self.put(sheet.number, Err(self.failure(sheet, sample, trouble)));
            return;
        }
        let (packed, samples) = sheet.pack(&self.means.layout, &mut slot.buffer);
        let outcome = match self.submit(sheet.number, slot, &packed) {
            Ok(berth) => Ok(self.batch(sheet, packed, &samples, berth)),
            Err(error) => Err(self.told(sheet.number, error.into())),
        };
        self.put(sheet.number, outcome);
    }

    /// Submit the copy and what follows it.
    fn submit(&self, batch: u64, slot: Slot, packed: &Packed) -> pinlane_core::Result<Berth> {
        let depot = &self.means.depot;
        let Slot { buffer, gear } = slot;
        let mut berth = match depot.berth() {
            Ok(berth) => berth,
            Err(error) => {
                depot.put(Slot { buffer, gear });
                return Err(error);
            }
        };
        let stream = &depot.stream;
        let target = berth.raw.range_mut(..packed.bytes);
        let timed = stream.timed(&gear.stopwatch);
        match timed.upload(buffer.part(..packed.bytes), target) {
            Ok(transfer) => depot.fly(Flying {
                transfer,
                gear,
                batch,
                bytes: packed.bytes as u64,
                stale: false,
            }),
            Err(failed) => {
                if let Some(part) = failed.buffer {
                    let buffer = part.into_whole();
                    depot.put(Slot { buffer, gear });
                }
                // Device memory that something went wrong with is not used again.
                return Err(failed.error);
            }
        }
        self.means.finisher.run(stream, packed, &mut berth)?;
        Ok(berth)
    }

    fn batch(&self, sheet: &Sheet, packed: Packed, samples: &[Sample], berth: Berth) -> Batch {
        let counters = &self.means.counters;
        let skipped = sheet.take_skipped().into_iter();
        let skipped: Vec<_> = skipped
            .map(|(sample, why)| Skipped {
                index: sample.index,
                origin: self.origin(sample.index),
                why: why.chain(),
            })
            .collect();
        counters.batches.add(1);
        counters.samples.add(packed.samples as u64);
        counters.skipped.add(skipped.len() as u64);
        counters.bytes.add(packed.bytes as u64);
        Batch {
            number: sheet.number,
            indices: samples.iter().map(|sample| sample.index).collect(),
            padding: samples.iter().filter(|sample| sample.padding).count(),
            skipped,
            kinds: Arc::clone(self.means.layout.fields()),
            spans: self.spans(packed),
            berth: Some(berth),
            depot: Arc::downgrade(&self.means.depot),
        }
    }

    /// Where each field lies, as the consumer sees it.
    fn spans(&self, packed: Packed) -> Vec<Span> {
        let fields = packed.fields.into_iter().enumerate();
        let span = |(at, field): (usize, super::pack::PackedField)| {
            let raw = self.means.layout.fields()[at].dtype();
            match self.means.finisher.step(at) {
                None => Span {
                    dtype: raw,
                    finished: false,
                    start: field.start,
                    bytes: field.bytes,
                    offsets: field.offsets,
                },
                Some(step) => Span {
                    dtype: step.dtype,
                    finished: true,
                    start: step.start,
                    bytes: step.bytes_of(field.bytes),
                    offsets: field.offsets,
                },
            }
        };
        fields.map(span).collect()
    }

    fn failure(&self, sheet: &Sheet, sample: Sample, trouble: Trouble) -> LoaderError {
        let (batch, index) = (sheet.number, sample.index);
        let origin = self.origin(index);
        match trouble {
            Trouble::Failed(cause) => LoaderError::Sample {
                batch,
                index,
                origin,
                cause,
            },
            Trouble::Panicked(text) => LoaderError::Panicked {
                batch,
                index,
                origin,
                text,
            },
        }
    }

    /// Where a sample comes from, as the dataset says.
    fn origin(&self, index: usize) -> String {
        let dataset = &self.means.dataset;
        let origin = catch_unwind(AssertUnwindSafe(|| dataset.origin(index)));
        origin.unwrap_or_else(|panic| {
            let text = panic::text(panic);
            format!("whose source cannot be told: {text}")
        })
    }
}
