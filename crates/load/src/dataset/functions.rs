//! Datasets whose samples a function computes.

use super::{Dataset, Field, Result, SampleMut};

/// A dataset whose samples a function writes. Made by [`from_fn`].
#[derive(Clone, Debug)]
pub struct FnDataset<F> {
    len: usize,
    fields: Vec<Field>,
    read: F,
}

/// A dataset of `len` samples. `read` writes the sample of a given index.
///
/// ```
/// use pinlane::load::dataset::{Dataset, Field, SampleMut, from_fn};
/// use pinlane::load::Dtype;
///
/// let fields = [Field::fixed("square", Dtype::U64, [])];
/// let squares = from_fn(100, fields, |index, sample| {
///     sample.write("square", &[(index * index) as u64])
/// });
///
/// let mut square = [0; 8];
/// let mut sample = SampleMut::new();
/// sample.push(&squares.fields()[0], &mut square);
/// squares.read(9, &mut sample)?;
/// assert_eq!(u64::from_le_bytes(square), 81);
/// # Ok::<(), pinlane::load::SampleError>(())
/// ```
pub fn from_fn<F>(len: usize, fields: impl Into<Vec<Field>>, read: F) -> FnDataset<F>
where
    F: Fn(usize, &mut SampleMut<'_>) -> Result<()> + Send + Sync + 'static,
{
    let fields = fields.into();
    FnDataset { len, fields, read }
}

impl<F> Dataset for FnDataset<F>
where
    F: Fn(usize, &mut SampleMut<'_>) -> Result<()> + Send + Sync + 'static,
{
    fn len(&self) -> usize {
        self.len
    }

    fn fields(&self) -> &[Field] {
        &self.fields
    }

    fn read(&self, index: usize, sample: &mut SampleMut<'_>) -> Result<()> {
        (self.read)(index, sample)
    }
}
