//! Weights and datasets from files to the device.
//!
//! ```text
//!   Weights ── load, start: tensors on the device, all together or as they land
//!      │  Catalog      opens files, a folder or an index; reads headers, never data
//!      │  TensorInfo   name, dtype, shape, bytes in the file; rows and shards of it
//!      │  Selection    names and patterns (Glob)
//!      │  Plan         few device allocations with aligned places in them, and
//!      │               Pieces: ranges of files that fit a pinned slot, with the place of every byte
//!      └─ Landing, Tensor, Tensors
//!
//!   Loader ── epoch: batches of a dataset on the device, ahead of whoever uses them
//!      │  Dataset      Arrays, Tar, FnDataset, Map, or your own
//!      │  SampleOrder  which samples a rank sees in an epoch: seed, epoch, Shard
//!      └─ Epoch, Batch, BatchField
//! ```
//!
//! Catalogs, plans, orders and datasets are free of any GPU. Files are untrusted: whatever is in them
//! gives a [`LoadError`] that names the file and the tensor, or a catalog in which every tensor is inside
//! of its file. [`Weights`] and [`Loader`] have examples of their own; what lies below them:
//!
//! ```
//! use pinlane::load::{Catalog, Dtype, Plan, PlanOptions, Selection};
//!
//! # let path = std::env::temp_dir().join(format!("pinlane-doc-load-{}.safetensors", std::process::id()));
//! # let header = br#"{"h.0.w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"h.1.w":{"dtype":"F32","shape":[2,2],"data_offsets":[16,32]},"bias":{"dtype":"U8","shape":[3],"data_offsets":[32,35]}}"#;
//! # let mut file = (header.len() as u64).to_le_bytes().to_vec();
//! # file.extend(header);
//! # file.extend([0; 35]);
//! # std::fs::write(&path, file)?;
//! let catalog = Catalog::open(&path)?;
//! assert_eq!(catalog.tensor("h.0.w")?.dtype(), Dtype::F32);
//!
//! let wanted = catalog.select(&Selection::new().glob("h.*.w")?)?;
//! assert_eq!(wanted.len(), 2);
//!
//! let plan = Plan::new(&wanted, PlanOptions::default())?;
//! assert_eq!(plan.allocations(), [256 + 16]); // one allocation, places aligned to 256 bytes
//! let pieces: Vec<_> = plan.pieces().collect();
//! assert_eq!(pieces.len(), 1); // both tensors in one read
//! assert_eq!(pieces[0].len_bytes(), 32);
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod catalog;
pub mod dataset;
mod dtype;
mod error;
mod fault;
mod file;
mod format;
mod glob;
mod loader;
mod open;
pub mod order;
mod panic;
mod plan;
mod select;
mod setters;
mod tensor;
mod weights;

pub use catalog::Catalog;
pub use dataset::{
    Arrays, Dataset, Field, FieldShape, FnDataset, Map, SampleError, SampleMut, SampleRef, Tar,
    TarConfig, TarFault, TarField,
};
pub use dtype::Dtype;
pub use error::LoadError;
pub use fault::Fault;
pub use file::{FileInfo, Format};
pub use format::{HeaderFault, NpyFault, OtherFormat};
pub use glob::Glob;
pub use loader::{
    Batch, BatchField, DeviceTransform, Epoch, Loader, LoaderConfig, LoaderError, LoaderStats,
    NextBatch, OnError, SkippedSample,
};
pub use order::{EpochState, OrderConfig, OrderError, Sample, SampleOrder, Shard, Tail};
pub use plan::{Piece, PieceCopy, PiecePart, Pieces, Placement, Plan, PlanOptions};
pub use select::Selection;
pub use tensor::TensorInfo;
pub use weights::{
    Io, Landing, LoadConfig, LoadLimit, LoadProgress, LoadStats, OnProgress, Tensor, Tensors,
    Weights,
};
