//! Weights and datasets from files to the device.
//!
//! ```text
//!   Weights ── load, start: tensors on the device, all at once or one by one; start_into: in given memory
//!      │  Catalog      opens files, folders and index files; reads headers, never data
//!      │  TensorInfo   name, dtype, shape, bytes in the file; rows and shards of it
//!      │  Selection    names and patterns (Glob)
//!      │  Plan         a few device allocations with aligned tensors in them, and
//!      │               Pieces: file ranges that fit a pinned slot, with the target of every byte
//!      └─ LoadStream, Tensor, Tensors; TargetStream, DeviceTarget
//!
//!   Loader ── epoch: batches of a dataset on the device, read ahead of the consumer
//!      │  Dataset      Arrays, Tar, FnDataset, Map, or your own
//!      │  SampleOrder  which samples a rank sees in an epoch: seed, epoch, Shard
//!      └─ Epoch, Batch, BatchField
//! ```
//!
//! Catalogs, plans, orders and datasets need no GPU. Files are untrusted: opening one gives either a
//! [`LoadError`] that names the file and the tensor, or a catalog in which every tensor lies inside its
//! file. [`Weights`] and [`Loader`] have their own examples. The layer below them:
//!
//! ```
//! use pinlane::load::{Catalog, Dtype, Plan, PlanOptions, Selection};
//!
//! # let path = "tests/data/load/sharded";
//! let catalog = Catalog::open(path)?;
//! assert_eq!(catalog.tensor("lm_head.weight")?.dtype(), Dtype::F16);
//!
//! let layers = catalog.select(&Selection::new().glob("model.layers.*")?)?;
//! assert_eq!(layers.len(), 2);
//!
//! let plan = Plan::new(&layers, PlanOptions::default())?;
//! assert_eq!(plan.allocations(), [256 + 32]); // one allocation, tensors aligned to 256 bytes
//! let pieces: Vec<_> = plan.pieces().collect();
//! assert_eq!(pieces.len(), 1); // both tensors in one read
//! assert_eq!(pieces[0].len_bytes(), 64);
//! # Ok::<(), pinlane::load::LoadError>(())
//! ```

mod catalog;
pub mod dataset;
mod dtype;
mod error;
mod file_info;
mod format;
mod loader;
mod panic;
mod plan;
mod sample_field;
#[doc(hidden)]
pub mod sample_order;
mod selection;
mod setters;
mod tensor_info;
mod weights;

pub use catalog::Catalog;
pub use dataset::{
    Arrays, Dataset, FnDataset, Map, SampleError, SampleMut, SampleRef, Tar, TarConfig, TarField,
};
pub use dtype::Dtype;
pub use error::{HeaderError, LoadError, LoadErrorKind, NpyError, OtherFormat, TarError};
pub use file_info::{FileInfo, Format};
pub use loader::{
    Batch, BatchField, DeviceTransform, Epoch, Loader, LoaderConfig, LoaderError, LoaderStats,
    NextBatch, OnError, SkippedSample,
};
pub use plan::{Piece, PieceCopy, PiecePart, Pieces, Placement, Plan, PlanOptions};
pub use sample_field::{Field, FieldShape};
#[doc(inline)]
pub use sample_order as order;
pub use sample_order::{EpochState, OrderConfig, OrderError, Sample, SampleOrder, Shard, Tail};
pub use selection::{Glob, Selection};
pub use tensor_info::TensorInfo;
pub use weights::{
    DeviceTarget, FilledTensor, Io, LoadConfig, LoadLimit, LoadProgress, LoadStats, LoadStream,
    ProgressCallback, RankSharing, TargetRequest, TargetStream, Tensor, Tensors, Weights,
};
