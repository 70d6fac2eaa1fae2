//! Samples, and where they come from.
//!
//! | dataset | its samples |
//! |---|---|
//! | [`Arrays`] | rows of arrays in npy and safetensors files, or in memory |
//! | [`Tar`] | groups of files in tar archives, laid out as WebDataset does |
//! | [`FnDataset`] | whatever a function writes |
//! | [`Map`] | those of another dataset, transformed by a function |
//!
//! Anything else that implements [`Dataset`] is one, too.

mod arrays;
mod error;
mod field;
mod function;
mod map;
mod sample;
mod sample_ref;
mod scratch;
mod shared;
mod size;
mod tar;

pub use arrays::Arrays;
pub use error::SampleError;
pub use field::{Extent, Field};
pub use function::{FnDataset, from_fn};
pub use map::Map;
pub use sample::SampleMut;
pub use sample_ref::SampleRef;
pub use tar::{Tar, TarConfig, TarError, TarField};

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
    /// call of [`SampleMut::variable`] for every other one. A field that is left out is an error of the
    /// sample, and so is a `sample` that another was put in the place of.
    ///
    /// # Errors
    /// Whatever keeps this sample from being had. Other samples are not concerned.
    fn read(&self, index: usize, sample: &mut SampleMut<'_>) -> Result<(), SampleError>;

    /// Where a sample comes from, for errors: a file, an entry of an archive.
    fn source(&self, index: usize) -> String {
        format!("sample {index}")
    }

    /// The same samples, transformed: each is read into memory of its own, and `transform` writes
    /// what it makes of it, as samples with `fields`.
    ///
    /// ```
    /// use pinlane::load::Dtype;
    /// use pinlane::load::dataset::{Arrays, Dataset, Field, SampleMut};
    ///
    /// let pixels = vec![10_u8, 20, 30, 40];
    /// let arrays = Arrays::from_memory(2, [(Field::fixed("pixels", Dtype::U8, [2]), pixels)])?;
    /// let sums = arrays.map([Field::fixed("sum", Dtype::U8, [])], |_index, input, output| {
    ///     output.fixed(0)[0] = input.field(0).iter().sum();
    ///     Ok(())
    /// });
    ///
    /// let mut place = [0];
    /// let mut sample = SampleMut::new();
    /// sample.push_fixed(&mut place);
    /// sums.read(1, &mut sample)?;
    /// assert_eq!(place, [70]);
    /// # Ok::<(), pinlane::load::SampleError>(())
    /// ```
    fn map<F>(self, fields: impl Into<Vec<Field>>, transform: F) -> Map<Self, F>
    where
        Self: Sized,
        F: Fn(usize, SampleRef<'_>, &mut SampleMut<'_>) -> Result<(), SampleError>
            + Send
            + Sync
            + 'static,
    {
        Map::new(self, fields.into(), transform)
    }
}
