//! A batch while its samples are read.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pinlane_core::internal::{SharedSlot, Stride, lock};

use crate::dataset::{SampleError, SampleMut};
use crate::{Sample, SampleOrder};

use super::batch_layout::{BatchLayout, PackedBatch};
use super::buffers::BatchSlot;
use super::{LoaderError, SkippedSample};

/// A batch whose samples are being read: where they are written, and the outcome of each.
pub(super) struct PendingBatch {
    pub(super) number: u64,
    pub(super) samples: Vec<Sample>,
    pub(super) slot: SharedSlot<BatchSlot>,
    /// Where each field starts in the slot.
    starts: Vec<usize>,
    /// Samples that were read.
    kept: Box<[AtomicBool]>,
    /// Bytes of each field in each sample.
    lengths: Box<[AtomicUsize]>,
    /// The first sample that ends the epoch.
    failed_at: AtomicUsize,
    /// Its error.
    pub(super) failure: Mutex<Option<LoaderError>>,
    skipped: Mutex<Vec<(usize, SkippedSample)>>,
}

impl PendingBatch {
    pub(super) fn new(
        layout: &BatchLayout,
        order: &SampleOrder,
        number: u64,
        slot: BatchSlot,
    ) -> Self {
        let samples: Vec<Sample> = order.batch(number as usize).collect();
        let places = layout.places(samples.len());
        let (starts, _) = places.expect("the largest batch has places");
        let fields = starts.iter().zip(&layout.strides);
        let stride = |(&start, &unit_bytes): (&usize, &usize)| Stride {
            range: start..start + samples.len() * unit_bytes,
            unit_bytes,
        };
        let strides: Vec<_> = fields.map(stride).collect();
        let lengths = 0..samples.len() * strides.len();
        Self {
            number,
            slot: SharedSlot::new(slot, samples.len(), strides),
            starts,
            kept: samples.iter().map(|_| AtomicBool::new(false)).collect(),
            lengths: lengths.map(|_| AtomicUsize::new(0)).collect(),
            failed_at: AtomicUsize::new(usize::MAX),
            failure: Mutex::default(),
            skipped: Mutex::default(),
            samples,
        }
    }

    /// Whether an earlier sample ends the epoch, so that this one is not needed.
    pub(super) fn failed_before(&self, sample: usize) -> bool {
        self.failed_at.load(Ordering::Relaxed) < sample
    }

    /// A sample was read: check that it is complete, and remember the lengths of its variable fields.
    pub(super) fn keep(
        &self,
        layout: &BatchLayout,
        sample: usize,
        read: &SampleMut<'_>,
    ) -> Result<(), SampleError> {
        read.check()?;
        for &field in &layout.variable {
            let kind = &layout.fields[field];
            let bytes = read.written(field).expect("checked above");
            if kind.elements_in(bytes).is_none() {
                let (name, dtype) = (kind.name(), kind.dtype());
                let reason =
                    format!("field `{name}` has {bytes} bytes, not a whole number of {dtype}");
                return Err(reason.into());
            }
            // Finishing the slot publishes this to the thread that packs the batch.
            self.length(sample, field).store(bytes, Ordering::Relaxed);
        }
        self.kept[sample].store(true, Ordering::Relaxed);
        Ok(())
    }

    fn length(&self, sample: usize, field: usize) -> &AtomicUsize {
        &self.lengths[sample * self.starts.len() + field]
    }

    pub(super) fn skip(&self, sample: usize, skipped: SkippedSample) {
        lock(&self.skipped).push((sample, skipped));
    }

    /// The epoch ends with this sample, unless an earlier one fails too.
    pub(super) fn fail(&self, sample: usize, error: LoaderError) {
        let mut failure = lock(&self.failure);
        if sample < self.failed_at.fetch_min(sample, Ordering::Relaxed) {
            *failure = Some(error);
        }
    }

    /// Samples that were left out, in their order.
    pub(super) fn take_skipped(&self) -> Vec<SkippedSample> {
        let mut skipped = std::mem::take(&mut *lock(&self.skipped));
        skipped.sort_by_key(|(sample, _)| *sample);
        skipped.into_iter().map(|(_, skipped)| skipped).collect()
    }

    /// Pack the samples that were read, after all are finished. Also returns which ones these are.
    pub(super) fn pack(
        &self,
        layout: &BatchLayout,
        memory: &mut [u8],
    ) -> (PackedBatch, Vec<Sample>) {
        let is_kept = |sample: &usize| self.kept[*sample].load(Ordering::Relaxed);
        let kept: Vec<_> = (0..self.samples.len()).filter(is_kept).collect();
        let packed = layout.pack(&self.starts, memory, &kept, |field, sample| {
            self.length(sample, field).load(Ordering::Relaxed)
        });
        let samples = kept.iter().map(|&sample| self.samples[sample]).collect();
        (packed, samples)
    }
}
