//! Where the fields of a batch lie.
//!
//! ```text
//!   fixed fields │ offsets of variable fields │ variable fields
//! ```
//!
//! While samples are written, each has its place in every field: a variable one has room for the most
//! that it may be. After that everything is moved together, so that one copy takes no more than there is.

use std::sync::Arc;

use crate::dataset::{Field, FieldShape};
use crate::{Dtype, SampleOrder};

use super::LoaderError;

/// Every field starts at a multiple of this.
const ALIGN_BYTES: usize = 256;

/// What a sample takes.
#[derive(Debug)]
pub(super) struct Layout {
    fields: Arc<[Field]>,
    /// Bytes of a sample in each field: the most for a variable one.
    strides: Vec<usize>,
}

/// The places of samples that are yet to be written.
#[derive(Debug)]
pub(super) struct Places {
    /// Where each field starts.
    pub(super) starts: Vec<usize>,
    /// Bytes in all.
    pub(super) bytes: usize,
}

impl Layout {
    pub(super) fn new(fields: &[Field]) -> Result<Self, LoaderError> {
        for (at, field) in fields.iter().enumerate() {
            if fields[..at]
                .iter()
                .any(|other| other.name() == field.name())
            {
                return Err(wrong(field, "another field has the same name"));
            }
        }
        let strides: Result<_, _> = fields.iter().map(stride).collect();
        Ok(Self {
            strides: strides?,
            fields: fields.into(),
        })
    }

    pub(super) fn fields(&self) -> &Arc<[Field]> {
        &self.fields
    }

    /// Bytes of a sample in a field.
    pub(super) fn stride(&self, field: usize) -> usize {
        self.strides[field]
    }

    /// Bytes of a sample, at most.
    pub(super) fn sample_bytes(&self) -> usize {
        let sum = |sum: usize, bytes: &usize| sum.saturating_add(*bytes);
        self.strides.iter().fold(0, sum)
    }

    pub(super) fn is_variable(&self, field: usize) -> bool {
        matches!(self.fields[field].shape(), FieldShape::Variable { .. })
    }

    /// Fields of one kind, in their order.
    pub(super) fn of_kind(&self, variable: bool) -> impl Iterator<Item = usize> + '_ {
        (0..self.fields.len()).filter(move |&field| self.is_variable(field) == variable)
    }

    /// Places for so many samples.
    pub(super) fn places(&self, samples: usize) -> Result<Places, LoaderError> {
        self.places_or_none(samples).ok_or(LoaderError::Config {
            field: "batch",
            reason: format!("{samples} samples are more than the address space holds"),
        })
    }

    /// The variable field that takes most of a batch, and why, in words. `None` if there is none.
    pub(super) fn largest_room(&self, order: &SampleOrder) -> Option<String> {
        let field = self
            .of_kind(true)
            .max_by_key(|&field| self.strides[field])?;
        let FieldShape::Variable { at_most } = self.fields[field].shape() else {
            return None;
        };
        let (name, dtype) = (self.fields[field].name(), self.fields[field].dtype());
        let samples = order.batch_len(0); // the most that a batch has
        Some(format!(
            "field `{name}` takes its limit of {at_most} {dtype} for each of {samples} samples"
        ))
    }

    fn places_or_none(&self, samples: usize) -> Option<Places> {
        let mut end = 0usize;
        let mut starts = vec![0; self.fields.len()];
        for field in self.of_kind(false) {
            starts[field] = aligned(end)?;
            end = starts[field].checked_add(samples.checked_mul(self.strides[field])?)?;
        }
        for _ in self.of_kind(true) {
            end = aligned(end)?.checked_add(offsets_bytes(samples)?)?;
        }
        for field in self.of_kind(true) {
            starts[field] = aligned(end)?;
            end = starts[field].checked_add(samples.checked_mul(self.strides[field])?)?;
        }
        isize::try_from(end).ok()?;
        Some(Places { starts, bytes: end })
    }
}

/// The next place where a field may start.
pub(super) fn aligned(end: usize) -> Option<usize> {
    end.checked_next_multiple_of(ALIGN_BYTES)
}

/// Bytes of the offsets of so many samples: where each begins, and the end.
pub(super) fn offsets_bytes(samples: usize) -> Option<usize> {
    samples.checked_add(1)?.checked_mul(size_of::<u64>())
}

/// Elements in so many bytes, if it is a whole number.
pub(super) fn elements(dtype: Dtype, bytes: usize) -> Option<u64> {
    let bits = bytes as u64 * 8;
    bits.is_multiple_of(dtype.bits())
        .then(|| bits / dtype.bits())
}

fn stride(field: &Field) -> Result<usize, LoaderError> {
    let bytes = match field.shape() {
        FieldShape::Fixed(shape) => {
            let shape: Vec<_> = shape.iter().map(|&dim| dim as u64).collect();
            let bytes = field.dtype().bytes_of(&shape);
            bytes.map_err(|fault| wrong(field, &fault.to_string()))?
        }
        FieldShape::Variable { at_most } => {
            let bits = *at_most as u128 * u128::from(field.dtype().bits());
            u64::try_from(bits.div_ceil(8)).unwrap_or(u64::MAX)
        }
    };
    usize::try_from(bytes)
        .ok()
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or_else(|| wrong(field, "a sample of it is more than the address space holds"))
}

fn wrong(field: &Field, reason: &str) -> LoaderError {
    LoaderError::Config {
        field: "dataset",
        reason: format!("field `{}`: {reason}", field.name()),
    }
}
