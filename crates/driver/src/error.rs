//! Errors that a caller can match.

use crate::Version;

/// Result of a driver call.
pub type Result<T> = std::result::Result<T, Error>;

/// A driver call that failed: what went wrong, in which call, and what is known beside it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{call}: {kind}{}{detail}", if detail.is_empty() { "" } else { ": " })]
pub struct Error {
    /// What went wrong.
    pub kind: ErrorKind,
    /// The call that said so: the driver's own name of it.
    pub call: &'static str,
    /// Values, names and paths that help to find the cause. May be empty.
    pub detail: String,
}

/// What went wrong, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no driver library.
    #[error("no CUDA driver library found; install the NVIDIA driver, or use a simulated device")]
    NoDriver,
    /// The driver sees no GPU.
    #[error(
        "no GPU found; check that the driver is loaded (nvidia-smi) and that CUDA_VISIBLE_DEVICES does not hide it"
    )]
    NoDevice,
    /// The device number is not there.
    #[error("device {ordinal} does not exist, there are {count}")]
    NoSuchDevice {
        /// The number that was asked for.
        ordinal: u32,
        /// How many devices there are.
        count: u32,
    },
    /// The driver is older than what is needed.
    #[error(
        "the driver offers CUDA {found}, at least {needed} is needed; update the NVIDIA driver"
    )]
    DriverTooOld {
        /// What the driver offers.
        found: Version,
        /// What is needed.
        needed: Version,
    },
    /// The driver library lacks a call.
    #[error("the driver library has no {symbol}; update the NVIDIA driver")]
    MissingSymbol {
        /// Name of the call.
        symbol: &'static str,
    },
    /// Another process has the GPU for itself.
    #[error(
        "the GPU is held by another process (exclusive mode); wait for it, or choose another GPU"
    )]
    DeviceBusy,
    /// The GPU or its context is gone. Nothing on it works any more in this process.
    #[error("the GPU is lost; restart the process, and see the kernel log for the cause (Xid)")]
    DeviceLost,
    /// A kernel or copy failed on the device; the context is unusable from here on.
    #[error("work on the GPU failed; its context is unusable, restart the process")]
    DeviceFault,
    /// No memory left: on the device, or to be pinned.
    #[error("out of memory")]
    OutOfMemory,
    /// Memory cannot be page-locked here.
    #[error("the memory cannot be registered")]
    RegistrationRefused,
    /// Some of the memory is registered already.
    #[error("the memory is registered already")]
    AlreadyRegistered,
    /// The address is not the base of a registered range.
    #[error("the address is not the base of a registered range")]
    NotRegistered,
    /// An argument is wrong.
    #[error("invalid argument")]
    InvalidValue,
    /// A handle is unknown or destroyed.
    #[error("invalid handle")]
    InvalidHandle,
    /// The module holds no kernel of that name.
    #[error("not found")]
    NotFound,
    /// The PTX could not be loaded.
    #[error("the PTX was refused")]
    InvalidPtx,
    /// An event of the pair has not fired yet.
    #[error("not ready")]
    NotReady,
    /// This driver or device does not offer the call.
    #[error("not supported")]
    NotSupported,
    /// The stream is being captured into a graph, where this call is not allowed.
    #[error("not allowed while the stream is captured")]
    Capturing,
    /// The process is a forked child of the one that opened the device.
    #[error("a forked child cannot use its parent's GPU; start a new process instead of forking")]
    Forked,
    /// Any other code of the driver.
    #[error("driver error {code}")]
    Other {
        /// The driver's number.
        code: u32,
    },
}

impl Error {
    /// An error of this kind in this call.
    #[must_use]
    pub fn new(kind: ErrorKind, call: &'static str) -> Self {
        Self {
            kind,
            call,
            detail: String::new(),
        }
    }

    /// The same with something more to say.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Whether the context is gone for good: no engine of the device touches memory of this
    /// process any more, and every later call fails.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(self.kind, ErrorKind::DeviceLost | ErrorKind::DeviceFault)
    }
}
