//! What can go wrong while a dataset is loaded.

use crate::dataset::SampleError;
use crate::{Dtype, OrderError};
use pinlane_core::{Error, ErrorKind};

/// Why there is no loader, or why an epoch ends early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoaderError {
    /// A setting is not possible, or a field of the dataset.
    #[error("{field}: {reason}")]
    Config {
        /// The setting.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no such order of samples, or a state is not of this one.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// An epoch of this loader is under way.
    #[error("an epoch of this loader is under way; end it or drop it first")]
    Busy,
    /// A sample cannot be had.
    #[error("batch {batch}, {}: {cause}", told(*index, origin))]
    Sample {
        /// Its batch, counted from the first of the epoch.
        batch: u64,
        /// Its number in the dataset.
        index: usize,
        /// Where it comes from, as the dataset says.
        origin: String,
        /// Why it cannot be had.
        #[source]
        cause: SampleError,
    },
    /// The dataset panicked.
    #[error("batch {batch}, {}: the dataset panicked: {text}", told(*index, origin))]
    Panicked {
        /// The batch, counted from the first of the epoch.
        batch: u64,
        /// The sample that was read, by its number in the dataset.
        index: usize,
        /// Where it comes from, as the dataset says.
        origin: String,
        /// What the panic says.
        text: String,
    },
    /// Memory cannot be had, or a batch cannot be copied.
    #[error("batch {batch}: {error}{}", behind(room.as_deref()))]
    Device {
        /// The batch, counted from the first of its epoch.
        batch: u64,
        /// Where there is too little memory: the variable field that takes most of it, and its limit.
        room: Option<String>,
        /// Why.
        #[source]
        error: Error,
    },
    /// A call of the library failed while the loader was made.
    #[error(transparent)]
    Setup(#[from] Error),
    /// No thread could be started.
    #[error("no thread to read samples could be started: {0}")]
    Threads(#[source] std::io::Error),
    /// The loader panicked outside of the dataset: in the driver, most likely.
    #[error("the loader panicked in batch {batch}: {text}")]
    Died {
        /// The first batch that is lost, counted from the first of the epoch.
        batch: u64,
        /// What the panic says.
        text: String,
    },
    /// A field holds elements of another size.
    #[error("field `{field}` holds {dtype}, which is not {element_bytes} bytes an element")]
    ElementSize {
        /// The field.
        field: String,
        /// What it holds.
        dtype: Dtype,
        /// Bytes of what was asked for.
        element_bytes: usize,
    },
}

impl From<LoaderError> for Error {
    fn from(error: LoaderError) -> Self {
        let kind = match &error {
            LoaderError::Device { error, .. } | LoaderError::Setup(error) => error.kind(),
            LoaderError::Sample { .. } => ErrorKind::InvalidData,
            LoaderError::Threads(_) | LoaderError::Panicked { .. } | LoaderError::Died { .. } => {
                ErrorKind::Other
            }
            _ => ErrorKind::InvalidInput,
        };
        Self::other(kind, error)
    }
}

/// The sample, by number and, where that says more, by its origin.
pub(super) fn told(index: usize, origin: &str) -> String {
    let plain = format!("sample {index}");
    match origin == plain {
        true => plain,
        false => format!("{plain} ({origin})"),
    }
}

/// What is said behind an error.
fn behind(more: Option<&str>) -> String {
    more.map(|more| format!("; {more}")).unwrap_or_default()
}
