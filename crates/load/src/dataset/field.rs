//! Fields of a sample.

use crate::{Dtype, LoadError, LoadErrorKind};

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

    /// Bytes that a sample reserves for the field.
    pub(crate) fn room_bytes(&self) -> Result<usize, LoadErrorKind> {
        let dtype = self.dtype;
        let shape: Vec<u64> = match &self.shape {
            FieldShape::Fixed(shape) => shape.iter().map(|dim| *dim as u64).collect(),
            FieldShape::Variable { at_most } => vec![*at_most as u64],
        };
        let bytes = match self.is_fixed() {
            true => u128::from(dtype.bytes_of(&shape)?),
            // May end inside a byte: no sample has to have this many elements.
            false => (u128::from(shape[0]) * u128::from(dtype.bits())).div_ceil(8),
        };
        isize::try_from(bytes)
            .map(isize::unsigned_abs)
            .map_err(|_| LoadErrorKind::SizeOverflow { dtype, shape })
    }

    /// An error that names the field.
    pub(crate) fn error(&self, fault: LoadErrorKind) -> LoadError {
        LoadError::from(fault).with_tensor(&self.name)
    }

    /// The number of elements in `bytes` bytes, if it is whole.
    pub(crate) fn elements_in(&self, bytes: usize) -> Option<u64> {
        let (bits, size) = (bytes as u64 * 8, self.dtype.bits());
        bits.is_multiple_of(size).then(|| bits / size)
    }
}
