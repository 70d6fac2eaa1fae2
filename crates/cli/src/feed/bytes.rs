//! Bytes of samples, without what the loader puts between them.

use pinlane::load::{Batch, Field, FieldShape, LoaderStats};

/// Counts them, batch by batch.
pub(super) struct SampleBytes {
    /// As the dataset has them: a batch tells what the device made of them.
    fields: Vec<Field>,
    taken_batches: u64,
    taken_bytes: u64,
}

impl SampleBytes {
    pub(super) fn new(fields: &[Field]) -> Self {
        Self {
            fields: fields.to_vec(),
            taken_batches: 0,
            taken_bytes: 0,
        }
    }

    /// A batch was taken.
    pub(super) fn take(&mut self, batch: &Batch) {
        self.taken_batches += 1;
        for (field, had) in batch.fields().zip(&self.fields) {
            let ends = field.offsets().and_then(|offsets| offsets.last());
            self.taken_bytes += match ends {
                Some(elements) => bytes(*elements, had),
                None => at_most(had) * batch.len() as u64,
            };
        }
    }

    /// Bytes of samples, and in how many batches: in all where samples are alike, else in those that
    /// were taken, since nobody has seen the others.
    pub(super) fn of(&self, stats: &LoaderStats) -> (u64, u64) {
        let is_fixed = |field: &Field| matches!(field.shape(), FieldShape::Fixed(_));
        match self.fields.iter().all(is_fixed) {
            true => {
                let a_sample: u64 = self.fields.iter().map(at_most).sum();
                (stats.samples * a_sample, stats.batches)
            }
            false => (self.taken_bytes, self.taken_batches),
        }
    }
}

/// Bytes of a sample in a field, at most.
pub(super) fn at_most(field: &Field) -> u64 {
    let elements = match field.shape() {
        FieldShape::Fixed(shape) => {
            let dims = shape.iter().map(|dim| *dim as u64);
            dims.fold(1, u64::saturating_mul)
        }
        FieldShape::Variable { at_most } => *at_most as u64,
    };
    bytes(elements, field)
}

fn bytes(elements: u64, field: &Field) -> u64 {
    elements.saturating_mul(field.dtype().bits()).div_ceil(8)
}
