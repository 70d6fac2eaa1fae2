//! Misuse that the checks found.

use std::fmt;

/// A kind of misuse; leaks come last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindingKind {
    /// The host memory of a copy changed between submission and completion.
    #[error("host memory changed while in flight")]
    HostChangedInFlight,
    /// Pinned host memory was freed while work in flight used it.
    #[error("host memory freed while in flight")]
    HostFreedInFlight,
    /// Registered memory was unregistered while work in flight used it.
    #[error("host memory unregistered while in flight")]
    HostUnregisteredInFlight,
    /// Device memory was freed while work in flight used it.
    #[error("device memory freed while in use")]
    DeviceFreedInUse,
    /// Device or pinned memory was used after it was freed.
    #[error("memory used after free")]
    UseAfterFree,
    /// Stream-ordered memory was used before its allocation in stream order.
    #[error("device memory used before its allocation in stream order")]
    UseBeforeAlloc,
    /// Memory was freed twice.
    #[error("double free")]
    DoubleFree,
    /// Memory was freed by the wrong function.
    #[error("wrong free function")]
    WrongFree,
    /// Memory was freed by an address other than its base.
    #[error("freed by an address that is not the base")]
    WrongBase,
    /// Memory was registered that overlaps page-locked memory.
    #[error("overlapping registration")]
    OverlappingRegistration,
    /// Device memory was not released.
    #[error("device memory leaked")]
    LeakedDeviceMemory,
    /// Pinned memory was not released.
    #[error("pinned memory leaked")]
    LeakedPinnedMemory,
    /// A registration was not released.
    #[error("registration leaked")]
    LeakedRegistration,
    /// A stream was not released.
    #[error("stream leaked")]
    LeakedStream,
    /// An event was not released.
    #[error("event leaked")]
    LeakedEvent,
    /// A module was not released.
    #[error("module leaked")]
    LeakedModule,
}

impl FindingKind {
    /// Whether it is a leak.
    #[must_use]
    pub fn is_leak(self) -> bool {
        self >= Self::LeakedDeviceMemory
    }
}

/// One misuse, with the operation that caused it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The kind of misuse.
    pub kind: FindingKind,
    /// The operation, such as `copy_async #7 (4096 bytes, host to device)`.
    pub operation: String,
    /// Details; may be empty.
    pub detail: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.operation)?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}
