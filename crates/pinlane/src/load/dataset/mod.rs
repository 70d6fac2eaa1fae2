//! Samples, and where they come from.

mod error;
mod field;
mod sample;

pub use error::SampleError;
pub use field::{Extent, Field};
pub use sample::SampleMut;

/// Samples that are had by number, from several threads at once.
///
/// A sample has one part for each of the [`fields`](Self::fields). Parts are written where they are
/// needed, in pinned memory: nothing is copied in between.
pub trait Dataset: Send + Sync + 'static {
    /// How many samples there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What a sample is made of. The same for all, at any time.
    fn fields(&self) -> &[Field];

    /// Write sample `index`, which is less than [`len`](Self::len): all of every fixed field, and a
    /// call of [`SampleMut::variable`] for every other one.
    ///
    /// # Errors
    /// Whatever keeps this sample from being had. Other samples are not concerned.
    fn read(&self, index: usize, sample: &mut SampleMut<'_>) -> Result<(), SampleError>;

    /// Where a sample comes from, for errors: a file, an entry of an archive.
    fn source(&self, index: usize) -> String {
        format!("sample {index}")
    }
}
