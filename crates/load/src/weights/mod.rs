//! Loads weights: several threads read files straight into pinned memory, which is copied to the device.
//!
//! ```text
//!   Weights         a catalog, and which of its tensors to load
//!     Job           files, device memory, the plan, statistics                  (job, buffer_sizes)
//!     ReadScheduler opens pieces one at a time; all threads read parts of them   (scheduler, open_piece)
//!     Worker        a thread: reads a part; the last reader submits the slot     (worker, convert)
//!       SourceFile  buffered or direct reads, depending on the page cache        (source_file, page_cache)
//!     LoadStream    tensors in the order in which they complete                  (load_stream)
//! ```

mod buffer_sizes;
mod config;
mod convert;
mod job;
mod load_stream;
mod open_piece;
mod page_cache;
mod scheduler;
mod source_file;
mod stats;
mod tensors;
mod verify;
mod worker;

use std::collections::HashSet;
use std::path::Path;

pub use config::{Io, LoadConfig, LoadProgress, ProgressCallback};
pub use load_stream::LoadStream;
pub use stats::{LoadLimit, LoadStats};
pub use tensors::{Tensor, Tensors};

use super::{Catalog, LoadError, Selection, TensorInfo};
use job::Job;
use pinlane_core::Device;

/// Weights in files, and which of them to load.
///
/// ```
/// use pinlane::load::{LoadConfig, Weights};
///
/// # let path = "tests/data/load/sharded";
/// # let device = pinlane::Device::sim("pcie3-x16")?;
/// let weights = Weights::open(path)?; // headers only
/// let tensors = weights.load(&device, &LoadConfig::default())?;
/// let layer = &tensors["model.layers.0.weight"];
/// assert_eq!(layer.shape(), [4, 2]);
/// let elements = layer.elements::<f32>().unwrap(); // device memory
///
/// let mut on_host = [0.0; 8];
/// device.stream()?.copy_to_host(elements, &mut on_host)?;
/// weights.verify(&device, layer)?; // compares it with the file
/// # Ok::<(), pinlane::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Weights {
    catalog: Catalog,
    tensors: Vec<TensorInfo>,
}

impl Weights {
    /// Opens a file, a folder or an index, as [`Catalog::open`] does. Selects all tensors.
    ///
    /// # Errors
    /// As [`Catalog::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        Ok(Self::of(Catalog::open(path)?))
    }

    /// Opens several files, folders or indexes. Selects all tensors.
    ///
    /// # Errors
    /// As [`Catalog::open_all`].
    pub fn open_all(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Self, LoadError> {
        Ok(Self::of(Catalog::open_all(paths)?))
    }

    /// Selects all tensors of a catalog.
    #[must_use]
    pub fn of(catalog: Catalog) -> Self {
        let tensors = catalog.tensors().to_vec();
        Self { catalog, tensors }
    }

    /// Narrows the tensors to a selection. Rows chosen before stay chosen.
    ///
    /// # Errors
    /// As [`Catalog::select`].
    pub fn select(mut self, selection: &Selection) -> Result<Self, LoadError> {
        let selected = self.catalog.select(selection)?;
        let names: HashSet<&str> = selected.iter().map(TensorInfo::name).collect();
        self.tensors.retain(|tensor| names.contains(tensor.name()));
        Ok(self)
    }

    /// Selects exactly these tensors, or rows of tensors, of this catalog. Starting the load refuses
    /// others.
    #[must_use]
    pub fn only(mut self, tensors: Vec<TensorInfo>) -> Self {
        self.tensors = tensors;
        self
    }

    /// Selects the rows of one of `world` ranks of each tensor. Every rank gets all scalars.
    ///
    /// # Errors
    /// As [`TensorInfo::shard`].
    pub fn shard(mut self, rank: u64, world: u64) -> Result<Self, LoadError> {
        for tensor in &mut self.tensors {
            if !tensor.shape().is_empty() {
                *tensor = tensor.shard(rank, world)?;
            }
        }
        Ok(self)
    }

    /// The catalog.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The selected tensors.
    #[must_use]
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// Loads the selected tensors, and returns when all are on the device.
    ///
    /// # Errors
    /// [`LoadError`], with the file and the tensor. Nothing stays on the device.
    pub fn load(&self, device: &Device, config: &LoadConfig) -> Result<Tensors, LoadError> {
        self.start(device, config)?.all()
    }

    /// Starts to load the selected tensors. The stream yields them as they complete.
    ///
    /// # Errors
    /// Invalid settings, [`LoadErrorKind::OtherCatalog`](super::LoadErrorKind::OtherCatalog), files that
    /// cannot be opened, and lack of device memory. The stream returns later errors.
    pub fn start(&self, device: &Device, config: &LoadConfig) -> Result<LoadStream, LoadError> {
        let job = Job::new(device, &self.catalog, &self.tensors, config)?;
        LoadStream::start(job, config)
    }
}
