//! Loads weights: several threads read files straight into pinned memory, which is copied to the device.
//!
//! ```text
//!   Weights         a catalog, and which of its tensors to load
//!     Job           files, device memory, the plan, statistics                  (job, buffer_sizes)
//!     ReadScheduler opens pieces one at a time; all threads read parts of them   (read_scheduler, piece_being_filled)
//!     Worker        a thread: reads a part; the last reader submits the slot     (worker)
//!       SourceFile  buffered or direct reads, depending on the page cache        (source_file, page_cache)
//!     RankSharing   how ranks of one machine read the disk once                  (rank_sharing)
//!     RunningLoad   the threads, and which tensors are complete                  (running_load)
//!     LoadStream    tensors in the order in which they complete                  (loaded_tensor_iterator)
//!     TargetStream  the same, in memory that a callback gives                    (load_into_given_memory)
//!       DeviceTarget  that memory, one target per tensor                         (given_device_memory)
//!     HostRead      reads into host memory, without a device                     (host_read)
//! ```

mod buffer_sizes;
mod config;
mod device_tensors;
mod given_device_memory;
mod host_read;
mod job;
mod load_into_given_memory;
mod loaded_tensor_iterator;
mod page_cache;
mod piece_being_filled;
mod rank_sharing;
mod read_scheduler;
mod running_load;
mod source_file;
mod stats;
mod worker;

use std::collections::HashSet;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

pub use config::{Io, LoadConfig, LoadProgress, ProgressCallback};
pub use device_tensors::{Tensor, Tensors};
pub use given_device_memory::{DeviceTarget, FilledTensor, TargetRequest};
pub use load_into_given_memory::TargetStream;
pub use loaded_tensor_iterator::LoadStream;
pub use rank_sharing::RankSharing;
pub use stats::{LoadLimit, LoadStats};

use crate::dtype::element_bytes;
use crate::{Catalog, LoadError, LoadErrorKind, Selection, TensorInfo};
use job::Job;
use pinlane_core::internal::device_of;
use pinlane_core::{Device, Stream};
use pinlane_kernels::convert::floats;

/// Bytes that [`Weights::verify`] compares at once, in the file or on the device.
const CHUNK_BYTES: u64 = 32 << 20;

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
    /// Shared, so that a clone costs little.
    catalog: Arc<Catalog>,
    tensors: Vec<TensorInfo>,
}

impl Weights {
    /// Opens a file, a folder or an index, as [`Catalog::open`] does. Selects all tensors.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        Ok(Self::of(Catalog::open(path)?))
    }

    /// Opens several files, folders or indexes, as [`Catalog::open_all`] does. Selects all tensors.
    pub fn open_all(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Self, LoadError> {
        Ok(Self::of(Catalog::open_all(paths)?))
    }

    /// Selects all tensors of a catalog.
    #[must_use]
    pub fn of(catalog: Catalog) -> Self {
        let tensors = catalog.tensors().to_vec();
        let catalog = Arc::new(catalog);
        Self { catalog, tensors }
    }

    /// Narrows the tensors to a selection, as [`Catalog::select`] does. Rows chosen before stay chosen.
    pub fn select(mut self, selection: &Selection) -> Result<Self, LoadError> {
        let selected = self.catalog.select(selection)?;
        let names: HashSet<&str> = selected.iter().map(TensorInfo::name).collect();
        self.tensors.retain(|tensor| names.contains(tensor.name()));
        Ok(self)
    }

    /// Selects exactly these tensors, or rows of them. They must be of this catalog, or the load fails.
    #[must_use]
    pub fn only(mut self, tensors: Vec<TensorInfo>) -> Self {
        self.tensors = tensors;
        self
    }

    /// Selects [the rows of one of `world` ranks](TensorInfo::shard) of each tensor. Every rank gets all
    /// scalars.
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
    /// Invalid settings, [`LoadErrorKind::OtherCatalog`], files that cannot be opened, and lack of device
    /// memory. The stream returns later errors.
    pub fn start(&self, device: &Device, config: &LoadConfig) -> Result<LoadStream, LoadError> {
        let job = Job::new(device, &self.catalog, &self.tensors, config)?;
        LoadStream::start(job, config)
    }

    /// Starts to load the selected tensors into memory that `allocate` gives: device buffers, or memory of another
    /// library such as PyTorch. The stream yields them as they complete, with what `allocate` gave.
    ///
    /// `allocate` is called once per tensor, here and while tensors are taken, on the calling thread only: as far
    /// ahead as [`device_bytes`](LoadConfig::device_bytes) allows, in the order of the files; one of several ranks of a
    /// machine begins with [another tensor](LoadConfig::local_rank) and wraps. What `stream` was given
    /// before it returns is done before its memory is written. Tensors come when they are complete, so their
    /// users need no wait.
    ///
    /// ```
    /// use pinlane::load::{DeviceTarget, LoadConfig, Weights};
    ///
    /// # let path = "tests/data/load/sharded";
    /// # let device = pinlane::Device::sim("pcie3-x16")?;
    /// let stream = device.stream()?;
    /// let config = LoadConfig::default().device_bytes(2 << 30);
    /// let tensors = Weights::open(path)?.start_into(&stream, &config, |tensor| {
    ///     let memory = stream.alloc::<u8>(tensor.len_bytes())?;
    ///     Ok(DeviceTarget::buffer(memory)) // `DeviceTarget::from_raw` for memory of others
    /// })?;
    /// for tensor in tensors {
    ///     let tensor = tensor?;
    ///     println!("{} {:?}: {:?}", tensor.info.name(), tensor.dtype, tensor.owner);
    /// }
    /// # Ok::<(), pinlane::Error>(())
    /// ```
    ///
    /// # Errors
    /// Invalid settings, [`LoadErrorKind::OtherCatalog`], and files that cannot be opened. Here or from the stream: the
    /// error of `allocate`, as [`LoadErrorKind::Device`] with the tensor, and memory of another
    /// [size](LoadErrorKind::TargetSize), [stream](LoadErrorKind::TargetStream) or device. An error ends the load.
    pub fn start_into<O, A>(
        &self,
        stream: &Stream,
        config: &LoadConfig,
        allocate: A,
    ) -> Result<TargetStream<O, A>, LoadError>
    where
        A: FnMut(&TargetRequest<'_>) -> pinlane_core::Result<DeviceTarget<O>>,
    {
        let device = device_of(stream);
        let job = Job::into_targets(&device, &self.catalog, &self.tensors, config)?;
        TargetStream::start(job, config, stream, allocate)
    }

    /// Reads a tensor back and compares every byte with its file, after the same conversion.
    ///
    /// # Errors
    /// [`LoadErrorKind::Mismatch`] for the first different byte, [`LoadErrorKind::OtherCatalog`] for a
    /// tensor of other weights; errors of the file and the device.
    pub fn verify(&self, device: &Device, tensor: &Tensor) -> Result<(), LoadError> {
        let info = tensor.info();
        if !self.catalog.contains(info) {
            return Err(info.error(LoadErrorKind::OtherCatalog));
        }
        let file_info = &self.catalog.files()[info.file()];
        let file = file_info.open()?;
        let compare = || -> Result<(), LoadErrorKind> {
            let stream = device.stream().map_err(LoadErrorKind::device)?;
            let kinds = info.dtype().conversion_to(tensor.dtype());
            let (from_bytes, to_bytes) = element_bytes(kinds);
            let elements_at_once = CHUNK_BYTES / from_bytes.max(to_bytes);
            let elements = info.len_bytes() / from_bytes;
            let (mut stored, mut converted, mut found) = (Vec::new(), Vec::new(), Vec::new());
            for first in (0..elements).step_by(elements_at_once as usize) {
                let count = elements_at_once.min(elements - first);
                stored.resize((count * from_bytes) as usize, 0);
                file.read_exact_at(&mut stored, info.bytes().start + first * from_bytes)
                    .map_err(|error| LoadErrorKind::io("read", &error))?;
                found.resize((count * to_bytes) as usize, 0);
                let start = (first * to_bytes) as usize;
                let on_device = tensor.bytes().range(start..start + found.len());
                stream
                    .copy_to_host(on_device, &mut found)
                    .map_err(LoadErrorKind::device)?;
                let expected = match kinds {
                    None => &stored,
                    Some((from, to)) => {
                        converted.resize(found.len(), 0);
                        floats(from, to, &stored, &mut converted);
                        &converted
                    }
                };
                if let Some(at) = found.iter().zip(expected).position(|(a, b)| a != b) {
                    return Err(LoadErrorKind::Mismatch {
                        at: (start + at) as u64,
                        found: found[at],
                        expected: expected[at],
                    });
                }
            }
            Ok(())
        };
        compare().map_err(|kind| info.error(kind).with_file(file_info.path()))?;
        file_info.check(&file)
    }
}
