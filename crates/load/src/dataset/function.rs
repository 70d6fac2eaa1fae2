//! Samples that a function makes.

use super::{Dataset, Field, SampleError, SampleMut};

/// Samples that a function makes; [`from_fn`] makes one.
#[derive(Clone, Debug)]
pub struct FnDataset<F> {
    len: usize,
    fields: Vec<Field>,
    read: F,
}

/// A dataset of `len` samples, each written by a call of `read` with its number.
///
/// ```
/// use pinlane::load::dataset::{Dataset, Field, SampleMut, from_fn};
/// use pinlane::load::Dtype;
///
/// let fields = [Field::fixed("square", Dtype::U64, [])];
/// let squares = from_fn(100, fields, |index, sample| {
///     let square = (index * index) as u64;
///     sample.fixed(0).copy_from_slice(&square.to_le_bytes());
///     Ok(())
/// });
///
/// let mut place = [0; 8];
/// let mut sample = SampleMut::new();
/// sample.push_fixed(&mut place);
/// squares.read(9, &mut sample)?;
/// assert_eq!(u64::from_le_bytes(place), 81);
/// # Ok::<(), pinlane::load::SampleError>(())
/// ```
pub fn from_fn<F>(len: usize, fields: impl Into<Vec<Field>>, read: F) -> FnDataset<F>
where
    F: Fn(usize, &mut SampleMut<'_>) -> Result<(), SampleError> + Send + Sync + 'static,
{
    FnDataset {
        len,
        fields: fields.into(),
        read,
    }
}

impl<F> Dataset for FnDataset<F>
where
    F: Fn(usize, &mut SampleMut<'_>) -> Result<(), SampleError> + Send + Sync + 'static,
{
    fn len(&self) -> usize {
        self.len
    }

    fn fields(&self) -> &[Field] {
        &self.fields
    }

    fn read(&self, index: usize, sample: &mut SampleMut<'_>) -> Result<(), SampleError> {
        (self.read)(index, sample)
    }
}
