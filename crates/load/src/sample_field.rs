//! A field: one part of every sample of a dataset.

use crate::Dtype;

/// One part of every sample, such as an image or a label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    name: String,
    dtype: Dtype,
    shape: FieldShape,
}

/// Shape of a field in one sample.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FieldShape {
    /// The same in every sample.
    Fixed(Vec<usize>),
    /// One dimension, with a different length in each sample.
    Variable {
        /// The most elements that a sample may have.
        at_most: usize,
    },
}

impl Field {
    /// An array with the same shape in every sample. Without dimensions it is a single value.
    #[must_use]
    pub fn fixed(name: impl Into<String>, dtype: Dtype, shape: impl Into<Vec<usize>>) -> Self {
        let (name, shape) = (name.into(), FieldShape::Fixed(shape.into()));
        Self { name, dtype, shape }
    }

    /// Up to `at_most` elements in each sample.
    ///
    /// Choose the smallest limit that fits: while a batch is read, every sample reserves `at_most` elements
    /// in pinned and in device memory. Only the actual elements are copied.
    #[must_use]
    pub fn variable(name: impl Into<String>, dtype: Dtype, at_most: usize) -> Self {
        let (name, shape) = (name.into(), FieldShape::Variable { at_most });
        Self { name, dtype, shape }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Type of its elements.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Its shape in one sample.
    #[must_use]
    pub fn shape(&self) -> &FieldShape {
        &self.shape
    }

    pub(crate) fn is_fixed(&self) -> bool {
        matches!(self.shape, FieldShape::Fixed(_))
    }

    /// The number of elements in `bytes` bytes, if it is whole.
    pub(crate) fn elements_in(&self, bytes: usize) -> Option<u64> {
        let (bits, size) = (bytes as u64 * 8, self.dtype.bits());
        bits.is_multiple_of(size).then(|| bits / size)
    }
}
