//! Errors of the library.

use std::fmt;

use pinlane_driver as driver;

/// Result of a library call.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong. Nothing was changed by a call that returns one, unless it says so.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The driver refused a call, or work on the device failed.
    #[error(transparent)]
    Driver(#[from] driver::Error),
    /// Source and target of a copy differ in length.
    #[error("source holds {source_len} elements, target {target_len}")]
    LengthMismatch {
        /// Elements of the source.
        source_len: usize,
        /// Elements of the target.
        target_len: usize,
    },
    /// The size in bytes does not fit the address space.
    #[error("{len} elements of {element_bytes} bytes are more than the address space holds")]
    TooLarge {
        /// Elements asked for.
        len: usize,
        /// Bytes of one.
        element_bytes: usize,
    },
    /// Elements that need more than a page's alignment cannot lie in pinned memory.
    #[error(
        "elements aligned to {align} bytes cannot lie in pinned memory, which is aligned to 4096"
    )]
    TooAligned {
        /// Alignment of an element.
        align: usize,
    },
    /// Earlier work on the memory could neither be marked nor waited for.
    #[error("earlier work that uses this memory cannot be waited for any more")]
    Stranded,
    /// Memory of one device was used on a stream of another.
    #[error("the buffer belongs to another device than the stream")]
    WrongDevice,
    /// Memory that is page-locked for one device only was used on a stream of another.
    #[error("the pinned buffer is not portable and belongs to another device than the stream")]
    NotPortable,
    /// Memory that did not come from cudarc cannot go back there.
    #[error("the device memory did not come from cudarc")]
    #[cfg(feature = "cudarc")]
    NotFromCudarc,
    /// A setting is not possible.
    #[error("{field}: {reason}")]
    InvalidConfig {
        /// The field of the configuration.
        field: &'static str,
        /// What it must be.
        reason: &'static str,
    },
    /// What was measured makes no profile.
    #[error("the measurements make no sense: {0}")]
    Calibration(String),
    /// A batch holds more than a chunk of the pipeline.
    #[error(
        "a batch of {batch_bytes} bytes, where a chunk holds {chunk_bytes}; set a larger chunk"
    )]
    BatchTooLarge {
        /// Bytes of the batch.
        batch_bytes: usize,
        /// Bytes of a chunk.
        chunk_bytes: usize,
    },
    /// Inputs of a pipeline differ in length.
    #[error("one input has {items} items, another {other_items}")]
    InputsDiffer {
        /// Items of one, or of the chunk at hand.
        items: usize,
        /// Items of another.
        other_items: usize,
    },
    /// Kernels of this device cannot see host memory.
    #[error("kernels of this device cannot see host memory; copy it instead")]
    NotMapped,
    /// Pinning that much would go over the [`Budget`](crate::Budget). The driver was not asked.
    #[error(
        "pinning {} goes over the budget: {} of {} are in use; free pinned memory, ask for less, or set PINLANE_PINNED_LIMIT (bytes, or such as 8GiB)",
        Size(*requested_bytes), Size(*in_use_bytes), Size(*limit_bytes)
    )]
    OverBudget {
        /// Bytes that would be page-locked: whole pages.
        requested_bytes: u64,
        /// Bytes that are page-locked under the budget now.
        in_use_bytes: u64,
        /// The most that may be page-locked now.
        limit_bytes: u64,
    },
    /// A variable of the environment holds what cannot be understood.
    #[error("{variable}={value:?} cannot be understood: {expected}")]
    BadSetting {
        /// Its name.
        variable: &'static str,
        /// What it holds.
        value: String,
        /// What it should hold.
        expected: &'static str,
    },
}

/// Bytes, for people.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] = [
            (1 << 40, "TiB"),
            (1 << 30, "GiB"),
            (1 << 20, "MiB"),
            (1 << 10, "KiB"),
        ];
        match UNITS.iter().find(|(unit, _)| self.0 >= *unit) {
            Some((unit, name)) => write!(f, "{:.1} {name}", self.0 as f64 / *unit as f64),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

/// A transfer that could not be submitted or that failed, with the buffer that it had.
pub struct TransferError<B> {
    /// What went wrong.
    pub error: Error,
    /// The buffer. `None` only when nobody could tell whether the device has let go of it: it
    /// then stays parked with the device, and is never freed too early.
    pub buffer: Option<B>,
}

impl<B> TransferError<B> {
    pub(crate) fn new(error: impl Into<Error>, buffer: B) -> Self {
        Self {
            error: error.into(),
            buffer: Some(buffer),
        }
    }
}

impl<B> fmt::Debug for TransferError<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransferError")
            .field("error", &self.error)
            .field("buffer_returned", &self.buffer.is_some())
            .finish()
    }
}

impl<B> fmt::Display for TransferError<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<B> std::error::Error for TransferError<B> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

impl<B> From<TransferError<B>> for Error {
    fn from(failed: TransferError<B>) -> Self {
        failed.error
    }
}

/// Memory that could not be registered or unregistered, with the reason.
pub struct RegisterError<M> {
    /// Why.
    pub error: Error,
    /// The memory, as it was.
    pub memory: M,
}

impl<M> fmt::Debug for RegisterError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisterError")
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

impl<M> fmt::Display for RegisterError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<M> std::error::Error for RegisterError<M> {}

impl<M> From<RegisterError<M>> for Error {
    fn from(failed: RegisterError<M>) -> Self {
        failed.error
    }
}
