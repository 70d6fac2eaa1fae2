//! One batch while its samples are read.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Sample;
use crate::dataset::{SampleError, SampleMut};

use super::layout::{Layout, Places, elements};
use super::pack::{Packed, pack};
use super::shared_slot::{SharedSlot, Stride};
use super::slot::Slot;

/// A batch under way: its samples, where they are written, and what came of each.
pub(super) struct Sheet {
    /// Which batch of the epoch.
    pub(super) number: u64,
    pub(super) samples: Vec<Sample>,
    pub(super) slot: SharedSlot,
    places: Places,
    /// Samples that were read.
    kept: Box<[AtomicBool]>,
    /// What each sample has of each field, in bytes.
    lengths: Box<[AtomicUsize]>,
    fields: usize,
    /// The first sample that ends the epoch.
    failed_at: AtomicUsize,
    troubles: Mutex<Troubles>,
}

/// Samples that could not be had.
#[derive(Default)]
struct Troubles {
    failure: Option<(usize, Trouble)>,
    skipped: Vec<(usize, SampleError)>,
}

/// Why a sample cannot be had.
pub(super) enum Trouble {
    Failed(SampleError),
    Panicked(String),
}

impl Sheet {
    pub(super) fn new(
        layout: &Layout,
        number: u64,
        samples: Vec<Sample>,
        slot: Slot,
        places: Places,
    ) -> Self {
        let fields = layout.fields().len();
        let stride = |field| Stride {
            start: places.starts[field],
            bytes: layout.stride(field),
        };
        let strides = (0..fields).map(stride).collect();
        Self {
            number,
            slot: SharedSlot::new(slot, strides, samples.len()),
            places,
            kept: samples.iter().map(|_| AtomicBool::new(false)).collect(),
            lengths: (0..samples.len() * fields)
                .map(|_| AtomicUsize::new(0))
                .collect(),
            fields,
            failed_at: AtomicUsize::new(usize::MAX),
            troubles: Mutex::default(),
            samples,
        }
    }

    /// Whether a sample before this one ends the epoch, so that this one is not needed.
    pub(super) fn failed_before(&self, sample: usize) -> bool {
        self.failed_at.load(Ordering::Relaxed) < sample
    }

    /// A sample was read: note what it has of each variable field, once all fields are there.
    pub(super) fn keep(
        &self,
        layout: &Layout,
        sample: usize,
        read: &SampleMut<'_>,
    ) -> Result<(), SampleError> {
        read.check()?;
        for field in layout.of_kind(true) {
            let kind = &layout.fields()[field];
            let bytes = read.written(field).expect("checked above");
            if elements(kind.dtype(), bytes).is_none() {
                let (name, dtype) = (kind.name(), kind.dtype());
                let says = format!("field `{name}` has {bytes} bytes, no whole number of {dtype}");
                return Err(says.into());
            }
            // Seen by whoever ends the batch, as all that was written.
            self.lengths[sample * self.fields + field].store(bytes, Ordering::Relaxed);
        }
        self.kept[sample].store(true, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn skip(&self, sample: usize, why: SampleError) {
        self.troubles().skipped.push((sample, why));
    }

    /// The epoch ends with this sample, if it is the first of those that fail.
    pub(super) fn fail(&self, sample: usize, trouble: Trouble) {
        let mut troubles = self.troubles();
        if troubles.failure.as_ref().is_none_or(|(at, _)| sample < *at) {
            troubles.failure = Some((sample, trouble));
            self.failed_at.store(sample, Ordering::Relaxed);
        }
    }

    /// The sample that ends the epoch, and why.
    pub(super) fn take_failure(&self) -> Option<(Sample, Trouble)> {
        let (sample, trouble) = self.troubles().failure.take()?;
        Some((self.samples[sample], trouble))
    }

    /// Samples that were left out, in their order.
    pub(super) fn take_skipped(&self) -> Vec<(Sample, SampleError)> {
        let mut skipped = std::mem::take(&mut self.troubles().skipped);
        skipped.sort_by_key(|(sample, _)| *sample);
        let named = |(sample, why): (usize, _)| (self.samples[sample], why);
        skipped.into_iter().map(named).collect()
    }

    /// Move what was read together, once all samples are done. Also which samples these are.
    pub(super) fn pack(&self, layout: &Layout, memory: &mut [u8]) -> (Packed, Vec<Sample>) {
        let is_kept = |sample: &usize| self.kept[*sample].load(Ordering::Relaxed);
        let kept: Vec<_> = (0..self.samples.len()).filter(is_kept).collect();
        let packed = pack(layout, &self.places, memory, &kept, |field, sample| {
            self.lengths[sample * self.fields + field].load(Ordering::Relaxed)
        });
        let samples = kept.iter().map(|&sample| self.samples[sample]).collect();
        (packed, samples)
    }

    fn troubles(&self) -> MutexGuard<'_, Troubles> {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
