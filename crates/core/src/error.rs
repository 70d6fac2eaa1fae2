//! Errors of the library.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use pinlane_driver as driver;
use pinlane_nvrtc::NvrtcError;

/// Result of a library call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of a library call. Unless a variant says otherwise, a failed call changed nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A driver call failed, or work on the device did.
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
    #[error("{len} elements of {element_bytes} bytes exceed the address space")]
    TooLarge {
        /// Elements requested.
        len: usize,
        /// Size of one element in bytes.
        element_bytes: usize,
    },
    /// The element type needs more alignment than a page has.
    #[error("elements need an alignment of {align} bytes, but pinned memory is aligned to 4096")]
    TooAligned {
        /// Alignment of an element.
        align: usize,
    },
    /// The driver could neither record a fence behind earlier work on the memory nor wait for that work.
    #[error("earlier work on this memory can no longer be waited for")]
    Stranded,
    /// Memory of one device was used on a stream of another.
    #[error("the buffer and the stream belong to different devices")]
    WrongDevice,
    /// The default stream of one thread was used on another, where the same handle is another stream.
    #[error(
        "the stream is the default stream of another thread; use it on the thread that it is of"
    )]
    WrongThread,
    /// Memory that is page-locked for one device only was used on a stream of another.
    #[error("the pinned buffer is not portable, and the stream belongs to another device")]
    NotPortable,
    /// Memory that cudarc did not allocate cannot be returned to it.
    #[error("the device memory was not allocated by cudarc")]
    #[cfg(feature = "cudarc")]
    NotFromCudarc,
    /// A configuration value is invalid.
    #[error("{field}: {reason}")]
    InvalidConfig {
        /// The field of the configuration.
        field: &'static str,
        /// What it must be.
        reason: &'static str,
    },
    /// The measurements do not yield a valid profile.
    #[error("the measurements do not yield a valid profile: {0}")]
    Calibration(String),
    /// A batch is larger than a pipeline chunk.
    #[error(
        "a batch of {batch_bytes} bytes does not fit a chunk of {chunk_bytes}; set a larger chunk"
    )]
    BatchTooLarge {
        /// Size of the batch in bytes.
        batch_bytes: usize,
        /// Size of a chunk in bytes.
        chunk_bytes: usize,
    },
    /// Inputs of a pipeline differ in length.
    #[error("one input has {items} items, another {other_items}")]
    InputsDiffer {
        /// Items of one input, or of the current chunk.
        items: usize,
        /// Items of another input.
        other_items: usize,
    },
    /// Kernels on this device cannot access host memory.
    #[error("kernels on this device cannot access host memory; copy it instead")]
    NotMapped,
    /// Pinning this much would exceed the [`Budget`](crate::Budget). The driver was not called.
    #[error(
        "pinning {} goes over the budget: {} of {} are in use; free pinned memory, ask for less, or {remedy}",
        Size(*requested_bytes), Size(*in_use_bytes), Size(*limit_bytes)
    )]
    OverBudget {
        /// Bytes the call would page-lock, in whole pages.
        requested_bytes: u64,
        /// Bytes currently page-locked under the budget.
        in_use_bytes: u64,
        /// The current limit.
        limit_bytes: u64,
        /// How to raise the limit.
        remedy: &'static str,
    },
    /// CUDA C could not be compiled.
    #[error(transparent)]
    Compile(#[from] NvrtcError),
    /// No device has this name.
    #[error("unknown device {name:?}: {reason}")]
    UnknownDevice {
        /// The name.
        name: String,
        /// Why it was rejected, and which names are valid.
        reason: String,
    },
    /// A pipeline, a weight load or a data loader failed. [`Error::downcast_ref`] returns the underlying
    /// error.
    #[error(transparent)]
    Other(OtherError),
    /// An environment variable has an invalid value.
    #[error("invalid {variable}={value:?}: expected {expected}")]
    BadSetting {
        /// Name of the variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// What a valid value looks like.
        expected: &'static str,
    },
}

/// Category of an [`Error`], independent of the call that returned it.
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
    /// No such device, or no driver for it.
    NoDevice,
    /// Not enough device memory, or not enough memory to pin.
    OutOfMemory,
    /// The budget does not allow more pinned memory.
    OverBudget,
    /// The device is lost or its context is unusable. Restart the process.
    DeviceLost,
    /// An argument or a setting is invalid.
    InvalidInput,
    /// The driver or the device does not support it.
    NotSupported,
    /// A file could not be read or written.
    Io,
    /// A file, a tensor or a sample is corrupt, or not what was expected.
    InvalidData,
    /// Anything else.
    Other,
}

impl Error {
    /// The category of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Driver(error) => driver_kind(&error.kind),
            Self::OverBudget { .. } => ErrorKind::OverBudget,
            Self::UnknownDevice { .. } => ErrorKind::NoDevice,
            Self::NotMapped | Self::Compile(NvrtcError::NotFound { .. }) => ErrorKind::NotSupported,
            Self::Stranded | Self::Calibration(_) => ErrorKind::Other,
            Self::Other(other) => other.kind,
            _ => ErrorKind::InvalidInput,
        }
    }

    /// Wraps an error of a higher layer or of another library, such as one that a callback returns.
    /// [`downcast_ref`](Self::downcast_ref) gets it back.
    #[must_use]
    pub fn other(kind: ErrorKind, error: impl StdError + Send + Sync + 'static) -> Self {
        Self::Other(OtherError {
            kind,
            error: Arc::new(error),
        })
    }

    /// The error of a higher layer, if it is an `E`: a `PipelineError`, a `LoadError`, a `LoaderError`, or what was
    /// given to [`other`](Self::other).
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

/// An error of a higher layer, with its kind.
#[derive(Clone)]
pub struct OtherError {
    kind: ErrorKind,
    error: Arc<dyn StdError + Send + Sync>,
}

impl PartialEq for OtherError {
    /// Two errors are equal if their kinds and messages are.
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

/// A byte count, formatted for humans.
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

/// A transfer that could not be submitted or that failed, with its buffer.
pub struct TransferError<B> {
    /// What went wrong.
    pub error: Error,
    /// The buffer. `None` only if the device may still be using it and there is no way to find out: it then
    /// stays parked with the device and is never freed early.
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

impl<B> StdError for TransferError<B> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
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
    /// The reason.
    pub error: Error,
    /// The memory, unchanged.
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

impl<M> StdError for RegisterError<M> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.error.source()
    }
}

impl<M> From<RegisterError<M>> for Error {
    fn from(failed: RegisterError<M>) -> Self {
        failed.error
    }
}
