//! Samples that are transformed on their way.

use super::scratch::{Layout, Pool};
use super::{Dataset, Field, SampleError, SampleMut, SampleRef};
use crate::LoadError;

/// A dataset whose samples go through a function; [`Dataset::map`] makes one.
///
/// A sample is read into memory that is kept for the next one, and the function writes what it
/// makes of it where it is needed.
#[derive(Debug)]
pub struct Map<D, F> {
    source: D,
    fields: Vec<Field>,
    transform: F,
    layout: Result<Layout, LoadError>,
    pool: Pool,
}

impl<D: Dataset, F> Map<D, F> {
    pub(super) fn new(source: D, fields: Vec<Field>, transform: F) -> Self {
        Self {
            layout: Layout::of(source.fields()),
            source,
            fields,
            transform,
            pool: Pool::default(),
        }
    }

    /// The dataset that samples come from.
    pub fn inner(&self) -> &D {
        &self.source
    }
}

impl<D, F> Dataset for Map<D, F>
where
    D: Dataset,
    F: Fn(usize, SampleRef<'_>, &mut SampleMut<'_>) -> Result<(), SampleError>
        + Send
        + Sync
        + 'static,
{
    fn len(&self) -> usize {
        self.source.len()
    }

    fn fields(&self) -> &[Field] {
        &self.fields
    }

    fn read(&self, index: usize, sample: &mut SampleMut<'_>) -> Result<(), SampleError> {
        let layout = self.layout.as_ref().map_err(Clone::clone)?;
        self.pool.with(&self.source, layout, index, |input| {
            (self.transform)(index, input, sample)
        })
    }

    fn source(&self, index: usize) -> String {
        self.source.source(index)
    }
}
