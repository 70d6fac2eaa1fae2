//! Errors of driver calls.

use crate::Version;

/// Result of a driver call.
pub type Result<T> = std::result::Result<T, Error>;

/// A driver call that failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{call}: {kind}{}{detail}", if detail.is_empty() { "" } else { ": " })]
pub struct Error {
    /// What went wrong.
    pub kind: ErrorKind,
    /// The driver's name of the call.
    pub call: &'static str,
    /// Values, names and paths that help to find the cause; may be empty.
    pub detail: String,
}

/// What went wrong. The message also says what to do about it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No driver library was found.
    #[error("no CUDA driver library found; install the NVIDIA driver, or use a simulated device")]
    NoDriver,
    /// The driver sees no GPU.
    #[error(
        "no GPU found; check that the driver is loaded (nvidia-smi) and that CUDA_VISIBLE_DEVICES does not hide it"
    )]
    NoDevice,
    /// No device has this ordinal.
    #[error("device {ordinal} does not exist: found {count}")]
    NoSuchDevice {
        /// The requested ordinal.
        ordinal: u32,
        /// Number of devices.
        count: u32,
    },
    /// The driver is too old.
    #[error("the driver supports CUDA {found}, but {needed} is required; update the NVIDIA driver")]
    DriverTooOld {
        /// The version that the driver supports.
        found: Version,
        /// The version that is required.
        needed: Version,
    },
    /// The driver library lacks a call.
    #[error("the driver library has no {symbol}; update the NVIDIA driver")]
    MissingSymbol {
        /// Name of the call.
        symbol: &'static str,
    },
    /// Another process uses the GPU exclusively.
    #[error("another process holds the GPU in exclusive mode; wait for it, or choose another GPU")]
    DeviceBusy,
    /// The GPU or its context is gone. No call on it can succeed in this process.
    #[error("the GPU is lost; restart the process, and look for an Xid error in the kernel log")]
    DeviceLost,
    /// A kernel or copy failed on the device, which makes the context unusable.
    #[error("work on the GPU failed and made its context unusable; restart the process")]
    DeviceFault,
    /// Not enough memory, on the device or to pin.
    #[error("out of memory")]
    OutOfMemory,
    /// This platform cannot page-lock the memory.
    #[error("the memory cannot be registered")]
    RegistrationRefused,
    /// Part of the memory is already registered.
    #[error("the memory is already registered")]
    AlreadyRegistered,
    /// The address is not the base of a registered range.
    #[error("the address is not the base of a registered range")]
    NotRegistered,
    /// An argument is invalid.
    #[error("invalid argument")]
    InvalidValue,
    /// A handle is unknown or was destroyed.
    #[error("invalid handle")]
    InvalidHandle,
    /// The module has no kernel with this name.
    #[error("not found")]
    NotFound,
    /// The driver could not load the PTX.
    #[error("invalid PTX")]
    InvalidPtx,
    /// One of the two events has not fired.
    #[error("not ready")]
    NotReady,
    /// The driver or the device does not support the call.
    #[error("not supported")]
    NotSupported,
    /// The call is not allowed while the stream is captured into a graph.
    #[error("not allowed while the stream is captured")]
    Capturing,
    /// The process is a forked child of the one that opened the device.
    #[error("a forked child cannot use its parent's GPU; start a new process instead of forking")]
    Forked,
    /// Any other error code.
    #[error("driver error {code}")]
    Other {
        /// The driver's error code.
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

    /// Adds details.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Whether the context is dead: the device no longer accesses memory of this process, and every
    /// later call fails.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(self.kind, ErrorKind::DeviceLost | ErrorKind::DeviceFault)
    }
}
