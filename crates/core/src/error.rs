//! Errors of the library.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

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
    /// There is no device of this name.
    #[error("no device is called {name:?}: {reason}")]
    UnknownDevice {
        /// The name.
        name: String,
        /// Why, and which names there are.
        reason: String,
    },
    /// A pipeline, a load of weights or a loader failed. [`Error::downcast_ref`] gives its own error.
    #[error(transparent)]
    Other(OtherError),
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

/// The kind of an [`Error`], whichever call it comes from.
///
/// ```
/// # fn main() -> pinlane::Result<()> {
/// use pinlane::{Device, ErrorKind};
///
/// let device = Device::sim("pcie3-x16")?;
/// let error = device.alloc::<u8>(1 << 50).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::OutOfMemory);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no such device, or no driver for it.
    NoDevice,
    /// Too little memory on the device, or to be pinned.
    OutOfMemory,
    /// The budget does not allow more pinned memory.
    OverBudget,
    /// The device is lost, or its context unusable. Restart the process.
    DeviceLost,
    /// An argument or a setting is invalid.
    InvalidInput,
    /// The driver or the device does not offer it.
    NotSupported,
    /// A file could not be read or written.
    Io,
    /// A file, a tensor or a sample is damaged, or not what was expected.
    InvalidData,
    /// Anything else.
    Other,
}

impl Error {
    /// What kind of error it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Driver(error) => driver_kind(&error.kind),
            Self::OverBudget { .. } => ErrorKind::OverBudget,
            Self::UnknownDevice { .. } => ErrorKind::NoDevice,
            Self::NotMapped => ErrorKind::NotSupported,
            Self::Stranded | Self::Calibration(_) => ErrorKind::Other,
            Self::Other(other) => other.kind,
            _ => ErrorKind::InvalidInput,
        }
    }

    /// An error of a higher layer.
    #[doc(hidden)]
    pub fn other(kind: ErrorKind, error: impl StdError + Send + Sync + 'static) -> Self {
        Self::Other(OtherError {
            kind,
            error: Arc::new(error),
        })
    }

    /// The error of a higher layer, if it is an `E`: a `PipelineError`, a `LoadError`, a `LoaderError`.
    #[must_use]
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        match self {
            Self::Other(other) => other.error.downcast_ref(),
            _ => None,
        }
    }
}

fn driver_kind(kind: &driver::ErrorKind) -> ErrorKind {
    use driver::ErrorKind as Driver;
    match kind {
        Driver::NoDriver
        | Driver::NoDevice
        | Driver::NoSuchDevice { .. }
        | Driver::DriverTooOld { .. }
        | Driver::MissingSymbol { .. }
        | Driver::DeviceBusy => ErrorKind::NoDevice,
        Driver::OutOfMemory => ErrorKind::OutOfMemory,
        Driver::DeviceLost | Driver::DeviceFault => ErrorKind::DeviceLost,
        Driver::InvalidValue
        | Driver::InvalidHandle
        | Driver::InvalidPtx
        | Driver::NotFound
        | Driver::AlreadyRegistered
        | Driver::NotRegistered
        | Driver::Capturing => ErrorKind::InvalidInput,
        Driver::NotSupported | Driver::RegistrationRefused | Driver::Forked => {
            ErrorKind::NotSupported
        }
        _ => ErrorKind::Other,
    }
}

/// An error of a layer above this one, with its kind.
#[derive(Clone)]
pub struct OtherError {
    kind: ErrorKind,
    error: Arc<dyn StdError + Send + Sync>,
}

impl PartialEq for OtherError {
    /// Errors are equal if their kinds and texts are.
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.error.to_string() == other.error.to_string()
    }
}

impl Eq for OtherError {}

impl fmt::Debug for OtherError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl fmt::Display for OtherError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl StdError for OtherError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.error.source()
    }
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
