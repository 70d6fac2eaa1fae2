//! Errors of a loader, and samples that it left out.

use std::fmt;

use crate::dataset::SampleError;
use crate::{Dtype, OrderError};
use pinlane_core::{Error, ErrorKind};

pub(super) type Result<T, E = LoaderError> = std::result::Result<T, E>;

/// A loader could not be made, or an epoch ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoaderError {
    /// A setting or a field of the dataset is invalid.
    #[error("{field}: {reason}")]
    Config {
        /// The setting.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The order is invalid, or a state belongs to another one.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// Another epoch of this loader is running.
    #[error("another epoch of this loader is running; finish or drop it first")]
    Busy,
    /// A sample could not be read.
    #[error("batch {batch}, {}: {cause}", describe_sample(*index, origin))]
    Sample {
        /// Its batch, counted from the start of the epoch.
        batch: u64,
        /// Its index in the dataset.
        index: usize,
        /// Where it comes from, as reported by the dataset.
        origin: String,
        /// Why it could not be read.
        #[source]
        cause: SampleError,
    },
    /// The dataset panicked.
    #[error("batch {batch}, {}: the dataset panicked: {text}", describe_sample(*index, origin))]
    DatasetPanicked {
        /// The batch, counted from the start of the epoch.
        batch: u64,
        /// Index of the sample that was being read.
        index: usize,
        /// Where it comes from, as reported by the dataset.
        origin: String,
        /// Message of the panic.
        text: String,
    },
    /// Memory could not be allocated, or a batch could not be copied.
    #[error("batch {batch}: {error}{}", hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default())]
    Device {
        /// The batch, counted from the start of the epoch.
        batch: u64,
        /// If memory ran out: the variable field that takes most of it, and its limit.
        hint: Option<String>,
        /// The error of the device.
        #[source]
        error: Error,
    },
    /// A device call failed while the loader was made.
    #[error(transparent)]
    Setup(#[from] Error),
    /// No worker thread could be started.
    #[error("no thread to read samples could be started: {0}")]
    Threads(#[source] std::io::Error),
    /// The loader panicked outside the dataset, most likely in the driver.
    #[error("the loader panicked in batch {batch}: {text}")]
    LoaderPanicked {
        /// The first batch that is lost, counted from the start of the epoch.
        batch: u64,
        /// Message of the panic.
        text: String,
    },
    /// The elements of a field have another size than the requested type.
    #[error("field `{field}` holds {dtype}, not elements of {element_bytes} bytes")]
    ElementSize {
        /// The field.
        field: String,
        /// Type of its elements.
        dtype: Dtype,
        /// Size of the requested type.
        element_bytes: usize,
    },
}

impl LoaderError {
    /// An invalid field of the dataset, in a setting.
    pub(super) fn field(field: &'static str, name: &str, reason: &str) -> Self {
        let reason = format!("field `{name}`: {reason}");
        Self::Config { field, reason }
    }
}

impl From<LoaderError> for Error {
    fn from(error: LoaderError) -> Self {
        let kind = match &error {
            LoaderError::Device { error, .. } | LoaderError::Setup(error) => error.kind(),
            LoaderError::Sample { .. } => ErrorKind::InvalidData,
            LoaderError::Threads(_)
            | LoaderError::DatasetPanicked { .. }
            | LoaderError::LoaderPanicked { .. } => ErrorKind::Other,
            _ => ErrorKind::InvalidInput,
        };
        Self::other(kind, error)
    }
}

/// A sample that was left out of its batch.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SkippedSample {
    /// Its index in the dataset.
    pub index: usize,
    /// Where it comes from, as reported by the dataset.
    pub origin: String,
    /// Why it could not be read: the error and its sources.
    pub reason: String,
}

impl fmt::Display for SkippedSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sample = describe_sample(self.index, &self.origin);
        write!(f, "{sample}: {}", self.reason)
    }
}

/// The index of a sample, and its origin if that says more.
fn describe_sample(index: usize, origin: &str) -> String {
    let plain = format!("sample {index}");
    match origin == plain {
        true => plain,
        false => format!("{plain} ({origin})"),
    }
}
