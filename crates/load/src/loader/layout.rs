//! Where the fields of a batch lie.
//!
//! ```text
//!   fixed fields │ offsets of variable fields │ variable fields
//! ```
//!
//! While samples are written, each has its own place in every field, in variable fields with room for the
//! longest value. After that, the batch is packed in place, so that one copy moves no more than necessary.

use std::sync::Arc;

use crate::dataset::{Field, FieldShape};
use crate::{Dtype, LoadErrorKind, SampleOrder};

use super::LoaderError;

/// Every field starts at a multiple of this.
const ALIGN_BYTES: usize = 256;

/// The fields of a batch, and the bytes that a sample reserves in each.
#[derive(Debug)]
pub(super) struct BatchLayout {
    fields: Arc<[Field]>,
    strides: Vec<usize>,
}

/// Where the fields of a batch start while its samples are written.
#[derive(Debug)]
pub(super) struct FieldPlaces {
    pub(super) starts: Vec<usize>,
    /// Bytes in total.
    pub(super) bytes: usize,
}

/// A packed batch.
#[derive(Debug)]
pub(super) struct PackedBatch {
    pub(super) spans: Vec<FieldSpan>,
    /// Bytes in total.
    pub(super) bytes: usize,
}

/// Where a field of a packed batch lies.
#[derive(Debug)]
pub(super) struct FieldSpan {
    pub(super) dtype: Dtype,
    /// Whether it is in the memory for transformed fields.
    pub(super) transformed: bool,
    pub(super) start: usize,
    pub(super) bytes: usize,
    /// For a variable field: where its offsets start, and the offsets in elements.
    pub(super) offsets: Option<(usize, Vec<u64>)>,
}

impl BatchLayout {
    pub(super) fn new(fields: &[Field]) -> Result<Self, LoaderError> {
        let mut strides = Vec::with_capacity(fields.len());
        for (at, field) in fields.iter().enumerate() {
            let name = field.name();
            if fields[..at].iter().any(|other| other.name() == name) {
                let reason = "another field has the same name";
                return Err(LoaderError::field("dataset", name, reason));
            }
            let stride = field.room_bytes().map_err(|error| match error {
                LoadErrorKind::SizeOverflow { .. } => {
                    let reason = "a sample of it does not fit into the address space";
                    LoaderError::field("dataset", name, reason)
                }
                error => LoaderError::field("dataset", name, error),
            });
            strides.push(stride?);
        }
        Ok(Self {
            strides,
            fields: fields.into(),
        })
    }

    pub(super) fn fields(&self) -> &Arc<[Field]> {
        &self.fields
    }

    /// Bytes that a sample reserves in a field.
    pub(super) fn stride(&self, field: usize) -> usize {
        self.strides[field]
    }

    /// Bytes that a sample reserves in all fields.
    pub(super) fn sample_bytes(&self) -> usize {
        let add = |sum: usize, bytes: &usize| sum.saturating_add(*bytes);
        self.strides.iter().fold(0, add)
    }

    fn fixed_fields(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.fields.len()).filter(|&field| self.fields[field].is_fixed())
    }

    pub(super) fn variable_fields(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.fields.len()).filter(|&field| !self.fields[field].is_fixed())
    }

    /// Places for this many samples.
    pub(super) fn places(&self, samples: usize) -> Result<FieldPlaces, LoaderError> {
        self.checked_places(samples)
            .ok_or_else(|| LoaderError::Config {
                field: "batch",
                reason: format!("{samples} samples do not fit into the address space"),
            })
    }

    fn checked_places(&self, samples: usize) -> Option<FieldPlaces> {
        let mut end = 0_usize;
        let mut starts = vec![0; self.fields.len()];
        let mut place = |end: &mut usize, field: usize| {
            starts[field] = aligned(*end)?;
            *end = starts[field].checked_add(samples.checked_mul(self.strides[field])?)?;
            Some(())
        };
        for field in self.fixed_fields() {
            place(&mut end, field)?;
        }
        for _ in self.variable_fields() {
            end = aligned(end)?.checked_add(offsets_bytes(samples)?)?;
        }
        for field in self.variable_fields() {
            place(&mut end, field)?;
        }
        isize::try_from(end).ok()?;
        Some(FieldPlaces { starts, bytes: end })
    }

    /// Which variable field reserves the most memory, for an error message.
    pub(super) fn largest_field_hint(&self, order: &SampleOrder) -> Option<String> {
        let field = self
            .variable_fields()
            .max_by_key(|&field| self.strides[field])?;
        let field = &self.fields[field];
        let FieldShape::Variable { at_most } = field.shape() else {
            return None;
        };
        let (name, dtype) = (field.name(), field.dtype());
        let samples = order.batch_len(0); // no batch is larger
        Some(format!(
            "field `{name}` reserves its limit of {at_most} {dtype} for each of {samples} samples"
        ))
    }

    /// Pack the samples `kept`, in ascending order. `length` is the bytes of a variable field in a sample.
    ///
    /// Everything moves down or stays, in memory order, so nothing is overwritten before it has moved.
    pub(super) fn pack(
        &self,
        places: &FieldPlaces,
        memory: &mut [u8],
        kept: &[usize],
        length: impl Fn(usize, usize) -> usize,
    ) -> PackedBatch {
        const FITS: &str = "a packed batch is no larger than its places";
        let span = |field: &Field| FieldSpan {
            dtype: field.dtype(),
            transformed: false,
            start: 0,
            bytes: 0,
            offsets: None,
        };
        let mut spans: Vec<FieldSpan> = self.fields.iter().map(span).collect();
        let mut shift = |from: usize, to: usize, bytes: usize| {
            if from != to {
                memory.copy_within(from..from + bytes, to);
            }
        };
        let mut end = 0;
        for field in self.fixed_fields() {
            let stride = self.strides[field];
            let start = aligned(end).expect(FITS);
            for (to, &sample) in kept.iter().enumerate() {
                let from = places.starts[field] + sample * stride;
                shift(from, start + to * stride, stride);
            }
            end = start + kept.len() * stride;
            (spans[field].start, spans[field].bytes) = (start, end - start);
        }
        let mut offsets_start = end;
        for _ in self.variable_fields() {
            end = aligned(end).expect(FITS) + offsets_bytes(kept.len()).expect(FITS);
        }
        for field in self.variable_fields() {
            let start = aligned(end).expect(FITS);
            end = start;
            let mut offsets = Vec::with_capacity(kept.len() + 1);
            offsets.push(0);
            for &sample in kept {
                let from = places.starts[field] + sample * self.strides[field];
                let bytes = length(field, sample);
                shift(from, end, bytes);
                end += bytes;
                let elements = self.fields[field].elements_in(end - start);
                offsets.push(elements.expect("whole elements were written"));
            }
            (spans[field].start, spans[field].bytes) = (start, end - start);
            offsets_start = aligned(offsets_start).expect(FITS);
            spans[field].offsets = Some((offsets_start, offsets));
            offsets_start += offsets_bytes(kept.len()).expect(FITS);
        }
        for (start, offsets) in spans.iter().filter_map(|span| span.offsets.as_ref()) {
            let bytes: &[u8] = bytemuck::cast_slice(offsets);
            memory[*start..][..bytes.len()].copy_from_slice(bytes);
        }
        PackedBatch { spans, bytes: end }
    }
}

/// The next position where a field may start.
pub(super) fn aligned(end: usize) -> Option<usize> {
    end.checked_next_multiple_of(ALIGN_BYTES)
}

/// Bytes of the offsets of a variable field: the start of each sample, and the end of the last.
fn offsets_bytes(samples: usize) -> Option<usize> {
    samples.checked_add(1)?.checked_mul(size_of::<u64>())
}
