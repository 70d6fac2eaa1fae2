//! Where the fields of a batch lie.
//!
//! ```text
//!   fixed fields │ offsets of variable fields │ variable fields
//! ```
//!
//! While samples are written, each has its own place in every field, with room for the longest value. Then
//! the batch is packed in place, so that one copy moves no more than necessary.

use std::ops::Range;
use std::sync::Arc;

use crate::dataset::{Field, FieldShape};
use crate::{Dtype, LoadErrorKind, SampleOrder};

use super::{LoaderError, Result};

/// Every field starts at a multiple of this.
const ALIGN_BYTES: usize = 256;

pub(super) struct BatchLayout {
    pub(super) fields: Arc<[Field]>,
    /// Bytes that a sample reserves in each field.
    pub(super) strides: Vec<usize>,
    /// Indices of fixed fields.
    fixed: Vec<usize>,
    /// Indices of variable fields.
    pub(super) variable: Vec<usize>,
}

pub(super) struct PackedBatch {
    pub(super) spans: Vec<FieldSpan>,
    /// Bytes in total.
    pub(super) bytes: usize,
}

/// Where a field of a packed batch lies.
#[derive(Default)]
pub(super) struct FieldSpan {
    /// The type of its elements in the memory for transformed fields, if it is there.
    pub(super) transformed: Option<Dtype>,
    pub(super) bytes: Range<usize>,
    /// For a variable field: where its offsets start, and the offsets in elements.
    pub(super) offsets: Option<(usize, Vec<u64>)>,
}

impl BatchLayout {
    pub(super) fn new(fields: &[Field]) -> Result<Self> {
        let mut strides = Vec::with_capacity(fields.len());
        for (at, field) in fields.iter().enumerate() {
            let invalid = |reason: &str| LoaderError::field("dataset", field.name(), reason);
            let same = |other: &Field| other.name() == field.name();
            if fields[..at].iter().any(same) {
                return Err(invalid("another field has the same name"));
            }
            let stride = field.room_bytes().map_err(|error| match error {
                LoadErrorKind::SizeOverflow { .. } => {
                    invalid("a sample of it does not fit into the address space")
                }
                error => invalid(&error.to_string()),
            });
            strides.push(stride?);
        }
        let (fixed, variable) = (0..fields.len()).partition(|&field| fields[field].is_fixed());
        Ok(Self {
            fields: fields.into(),
            strides,
            fixed,
            variable,
        })
    }

    /// Where each field starts while samples are written, and the bytes of all; `None` if there are too many.
    pub(super) fn places(&self, samples: usize) -> Option<(Vec<usize>, usize)> {
        let mut starts = vec![0; self.fields.len()];
        let mut place = |end: usize, &field: &usize| {
            starts[field] = aligned(end)?;
            starts[field].checked_add(samples.checked_mul(self.strides[field])?)
        };
        let end = self.fixed.iter().try_fold(0, &mut place)?;
        let end = self.offsets_end(end, samples)?;
        let bytes = self.variable.iter().try_fold(end, &mut place)?;
        isize::try_from(bytes).ok()?;
        Some((starts, bytes))
    }

    /// Where the offsets of all variable fields end, after fixed fields that end at `end`.
    fn offsets_end(&self, end: usize, samples: usize) -> Option<usize> {
        let add = |end, _: &usize| aligned(end)?.checked_add(offsets_bytes(samples)?);
        self.variable.iter().try_fold(end, add)
    }

    /// Which variable field reserves the most memory, for an error message.
    pub(super) fn largest_field_hint(&self, order: &SampleOrder) -> Option<String> {
        let variable = self.variable.iter();
        let field = &self.fields[*variable.max_by_key(|&&field| self.strides[field])?];
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
    /// Everything moves down or stays, in memory order, so nothing is overwritten before it has moved.
    pub(super) fn pack(
        &self,
        starts: &[usize],
        memory: &mut [u8],
        kept: &[usize],
        length: impl Fn(usize, usize) -> usize,
    ) -> PackedBatch {
        const FITS: &str = "a packed batch is no larger than its places";
        fn shift(memory: &mut [u8], from: usize, to: usize, bytes: usize) {
            if from != to {
                memory.copy_within(from..from + bytes, to);
            }
        }
        let mut spans: Vec<_> = self.fields.iter().map(|_| FieldSpan::default()).collect();
        let mut end = 0;
        for &field in &self.fixed {
            let stride = self.strides[field];
            let start = aligned(end).expect(FITS);
            for (to, &sample) in kept.iter().enumerate() {
                let from = starts[field] + sample * stride;
                shift(memory, from, start + to * stride, stride);
            }
            end = start + kept.len() * stride;
            spans[field].bytes = start..end;
        }
        let mut offsets_start = end;
        end = self.offsets_end(end, kept.len()).expect(FITS);
        for &field in &self.variable {
            let start = aligned(end).expect(FITS);
            end = start;
            let mut offsets = Vec::with_capacity(kept.len() + 1);
            offsets.push(0);
            for &sample in kept {
                let from = starts[field] + sample * self.strides[field];
                let bytes = length(field, sample);
                shift(memory, from, end, bytes);
                end += bytes;
                let elements = self.fields[field].elements_in(end - start);
                offsets.push(elements.expect("whole elements were written"));
            }
            spans[field].bytes = start..end;
            offsets_start = aligned(offsets_start).expect(FITS);
            let bytes: &[u8] = bytemuck::cast_slice(&offsets);
            memory[offsets_start..][..bytes.len()].copy_from_slice(bytes);
            spans[field].offsets = Some((offsets_start, offsets));
            offsets_start += offsets_bytes(kept.len()).expect(FITS);
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
