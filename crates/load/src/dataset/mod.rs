//! Datasets: where samples come from.
//!
//! | dataset | its samples |
//! |---|---|
//! | [`Arrays`] | rows of arrays in npy and safetensors files, or in memory |
//! | [`Tar`] | groups of files in tar archives, in WebDataset layout |
//! | [`FnDataset`] | computed by a function |
//! | [`Map`] | samples of another dataset, transformed by a function |
//!
//! Implement [`Dataset`] for anything else.

mod arrays;
mod functions;
mod map;
mod sample;
mod tar;

use std::sync::Arc;

pub use arrays::Arrays;
pub use functions::{FnDataset, from_fn};
pub use map::Map;
pub use sample::{SampleError, SampleMut, SampleRef};
pub use tar::{Tar, TarConfig, TarField};

pub use crate::error::TarError;
pub use crate::sample_field::{Field, FieldShape};

type Result<T, E = SampleError> = std::result::Result<T, E>;

/// Samples with random access, readable from several threads at once.
///
/// A sample has one value for each of the [`fields`](Self::fields), written directly into pinned memory.
pub trait Dataset: Send + Sync + 'static {
    /// Number of samples.
    fn len(&self) -> usize;

    /// Whether there are no samples.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The fields of every sample. Always the same.
    fn fields(&self) -> &[Field];

    /// Write all fields of sample `index`, which is less than [`len`](Self::len), into `sample`: with
    /// [`SampleMut::write`], or by filling all bytes that [`SampleMut::fixed`] or [`SampleMut::variable`]
    /// returns. Leaving out a field is an error, and so is replacing `sample` by another one.
    ///
    /// # Errors
    /// Anything that prevents this sample from being read. Other samples are not affected.
    fn read(&self, index: usize, sample: &mut SampleMut<'_>) -> Result<()>;

    /// Where a sample comes from, for error messages: a file, or an entry of an archive.
    fn origin(&self, index: usize) -> String {
        format!("sample {index}")
    }

    /// Transform the samples with a function, which gets each sample and writes another one with `fields`.
    ///
    /// ```
    /// use pinlane::load::Dtype;
    /// use pinlane::load::dataset::{Arrays, Dataset, Field, SampleMut};
    ///
    /// let pixels = vec![10_u8, 20, 30, 40];
    /// let arrays = Arrays::from_memory(2, [(Field::fixed("pixels", Dtype::U8, [2]), pixels)])?;
    /// let means = arrays.map([Field::fixed("mean", Dtype::F32, [])], |_index, input, output| {
    ///     let pixels = input.values::<u8>("pixels")?;
    ///     let sum: f32 = pixels.iter().copied().map(f32::from).sum();
    ///     output.write("mean", &[sum / pixels.len() as f32])
    /// });
    ///
    /// let mut mean = [0; 4];
    /// let mut sample = SampleMut::new();
    /// sample.push(&means.fields()[0], &mut mean);
    /// means.read(1, &mut sample)?;
    /// assert_eq!(f32::from_le_bytes(mean), 35.0);
    /// # Ok::<(), pinlane::load::SampleError>(())
    /// ```
    fn map<F>(self, fields: impl Into<Vec<Field>>, transform: F) -> Map<Self, F>
    where
        Self: Sized,
        F: Fn(usize, SampleRef<'_>, &mut SampleMut<'_>) -> Result<()> + Send + Sync + 'static,
    {
        Map::new(self, fields.into(), transform)
    }
}

macro_rules! pointer_to_dataset {
    ($pointer:ident) => {
        impl<D: Dataset + ?Sized> Dataset for $pointer<D> {
            fn len(&self) -> usize {
                (**self).len()
            }

            fn is_empty(&self) -> bool {
                (**self).is_empty()
            }

            fn fields(&self) -> &[Field] {
                (**self).fields()
            }

            fn read(&self, index: usize, sample: &mut SampleMut<'_>) -> Result<()> {
                (**self).read(index, sample)
            }

            fn origin(&self, index: usize) -> String {
                (**self).origin(index)
            }
        }
    };
}

pointer_to_dataset!(Arc);
pointer_to_dataset!(Box);
