//! What a sample is made of.

use crate::Dtype;

/// One part of every sample, such as an image or a label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    name: String,
    dtype: Dtype,
    extent: Extent,
}

/// How much of a field a sample has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Extent {
    /// An array of this shape, in every sample.
    Fixed(Vec<usize>),
    /// Elements in a row, in each sample another number.
    Variable {
        /// The most that a sample may have.
        at_most: usize,
    },
}

impl Field {
    /// An array of this shape in every sample; a single value if there is no dimension.
    #[must_use]
    pub fn fixed(name: impl Into<String>, dtype: Dtype, shape: impl Into<Vec<usize>>) -> Self {
        Self {
            name: name.into(),
            dtype,
            extent: Extent::Fixed(shape.into()),
        }
    }

    /// Up to `at_most` elements in each sample.
    ///
    /// While a batch is read each of its samples has room for `at_most` elements, in page-locked memory
    /// and on the device, whatever they have: 256 images of at most 1 MiB take 256 MiB a batch in
    /// flight. What is copied is only what there is. So choose the least that all samples fit.
    #[must_use]
    pub fn variable(name: impl Into<String>, dtype: Dtype, at_most: usize) -> Self {
        Self {
            name: name.into(),
            dtype,
            extent: Extent::Variable { at_most },
        }
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

    /// How much of it a sample has.
    #[must_use]
    pub fn extent(&self) -> &Extent {
        &self.extent
    }
}
