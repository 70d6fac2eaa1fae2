//! Weights to the device: read straight into pinned memory by several threads, and copied from there.
//!
//! ```text
//!   Weights    a catalog, and which of its tensors are wanted
//!     Job      files, room on the device, what is left to read                   (job)
//!     Team     pieces are opened one by one; all threads read slices of them      (team, filling, slots)
//!     worker   a thread: read a slice; the last one sends the slot on its way     (worker)
//!       Source   through the page cache or past it, as the system says            (files, resident)
//!     Landing  tensors in the order in which they are complete                    (landing)
//! ```

mod config;
mod convert;
mod files;
mod filling;
mod job;
mod landing;
mod resident;
mod sizes;
mod slots;
mod stats;
mod team;
mod tensor;
mod verify;
mod worker;

use std::collections::HashSet;
use std::path::Path;

pub use config::{Io, LoadConfig, LoadProgress, OnProgress};
pub use landing::Landing;
pub use stats::{LoadLimit, LoadStats};
pub use tensor::{Tensor, Tensors};

use super::{Catalog, LoadError, Selection, TensorInfo};
use job::Job;
use pinlane_core::Device;

/// Weights in files, and which of them are wanted.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use pinlane::load::{Dtype, LoadConfig, Weights};
/// # use pinlane::Device;
///
/// # let path = std::env::temp_dir().join(format!("pinlane-doc-weights-{}.safetensors", std::process::id()));
/// # let header = br#"{"h.0.w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"bias":{"dtype":"U8","shape":[3],"data_offsets":[16,19]}}"#;
/// # let mut file = (header.len() as u64).to_le_bytes().to_vec();
/// # file.extend(header);
/// # file.extend([1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_le_bytes()));
/// # file.extend([7, 8, 9]);
/// # std::fs::write(&path, file)?;
/// # let device = pinlane::Device::sim("pcie3-x16")?;
/// let weights = Weights::open(&path)?; // headers only
/// let tensors = weights.load(&device, &LoadConfig::default())?;
/// let matrix = tensors["h.0.w"].elements::<f32>().unwrap(); // device memory
///
/// let mut here = [0.0; 4];
/// device.stream()?.copy_to_host(matrix, &mut here)?;
/// assert_eq!(here, [1.0, 2.0, 3.0, 4.0]);
/// # std::fs::remove_file(&path)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Weights {
    catalog: Catalog,
    tensors: Vec<TensorInfo>,
}

impl Weights {
    /// Open a file, a folder or an index, as [`Catalog::open`] does. All tensors are wanted.
    ///
    /// # Errors
    /// As [`Catalog::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        Ok(Self::of(Catalog::open(path)?))
    }

    /// Open several.
    ///
    /// # Errors
    /// As [`Catalog::open_all`].
    pub fn open_all(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Self, LoadError> {
        Ok(Self::of(Catalog::open_all(paths)?))
    }

    /// All tensors of a catalog.
    #[must_use]
    pub fn of(catalog: Catalog) -> Self {
        let tensors = catalog.tensors().to_vec();
        Self { catalog, tensors }
    }

    /// Of what is wanted so far, only tensors of a selection: rows of a rank stay rows of a rank.
    ///
    /// # Errors
    /// As [`Catalog::select`].
    pub fn select(mut self, selection: &Selection) -> Result<Self, LoadError> {
        let selected = self.catalog.select(selection)?;
        let names: HashSet<&str> = selected.iter().map(TensorInfo::name).collect();
        self.tensors.retain(|tensor| names.contains(tensor.name()));
        Ok(self)
    }

    /// Only these tensors, or rows of them. They belong to the catalog of these weights; others are
    /// refused when the load starts.
    #[must_use]
    pub fn only(mut self, tensors: Vec<TensorInfo>) -> Self {
        self.tensors = tensors;
        self
    }

    /// Only the rows of one rank of each tensor, where `world` ranks share all of them. Tensors of
    /// no dimension are whole on every rank.
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

    /// What is in the files.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// What is wanted.
    #[must_use]
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// Load them, and return when all are on the device.
    ///
    /// # Errors
    /// What is wrong, with which file and tensor; nothing stays on the device.
    pub fn load(&self, device: &Device, config: &LoadConfig) -> Result<Tensors, LoadError> {
        self.start(device, config)?.all()
    }

    /// Begin to load them; they come one by one, in the order in which they are complete.
    ///
    /// # Errors
    /// Settings that are not possible, [`Fault::OtherCatalog`](super::Fault::OtherCatalog), files
    /// that cannot be opened, and a device that has no room. What goes wrong later comes from the
    /// iterator.
    pub fn start(&self, device: &Device, config: &LoadConfig) -> Result<Landing, LoadError> {
        let job = Job::new(device, &self.catalog, &self.tensors, config)?;
        Landing::start(job, config)
    }
}
