//! Counts the bytes of samples, without the loader's padding.

use pinlane::load::{Batch, Field, FieldShape, LoaderStats};

pub(super) struct SampleBytes {
    /// The fields of the dataset: those of a batch may be converted.
    fields: Vec<Field>,
    batches: u64,
    bytes: u64,
}

impl SampleBytes {
    pub(super) fn new(fields: &[Field]) -> Self {
        Self {
            fields: fields.to_vec(),
            batches: 0,
            bytes: 0,
        }
    }

    /// Counts a batch.
    pub(super) fn add(&mut self, batch: &Batch) {
        self.batches += 1;
        for (field, original) in batch.fields().zip(&self.fields) {
            let last = field.offsets().and_then(|offsets| offsets.last());
            self.bytes += match last {
                Some(elements) => bytes(*elements, original),
                None => max_bytes(original) * batch.len() as u64,
            };
        }
    }

    /// The bytes, and the batches that they are in: all batches if samples have a fixed size, otherwise only
    /// those counted, because the sizes of the others are unknown.
    pub(super) fn total(&self, stats: &LoaderStats) -> (u64, u64) {
        let is_fixed = |field: &Field| matches!(field.shape(), FieldShape::Fixed(_));
        match self.fields.iter().all(is_fixed) {
            true => {
                let sample_bytes: u64 = self.fields.iter().map(max_bytes).sum();
                (stats.samples * sample_bytes, stats.batches)
            }
            false => (self.bytes, self.batches),
        }
    }
}

/// The most bytes that a field of one sample takes.
pub(super) fn max_bytes(field: &Field) -> u64 {
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
