//! Misuse that the checks saw.

use std::fmt;

/// What kind of misuse.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum FindingKind {
    /// Host memory of a copy changed between its submission and its completion.
    HostChangedInFlight,
    /// Pinned host memory was freed while work in flight used it.
    HostFreedInFlight,
    /// Registered memory was unregistered while work in flight used it.
    HostUnregisteredInFlight,
    /// Device memory was freed while work in flight used it.
    DeviceFreedInUse,
    /// Device memory, or pinned memory, was used after it was freed.
    UseAfterFree,
    /// Stream-ordered memory was used before its allocation, in stream order.
    UseBeforeAlloc,
    /// Memory was freed twice.
    DoubleFree,
    /// Memory was given back by a function that does not belong to how it was made.
    WrongFree,
    /// Memory was given back by an address inside of it instead of its base.
    WrongBase,
    /// Memory was registered that is page-locked already, in whole or in part.
    OverlappingRegistration,
    /// Device memory was still there at the end.
    LeakedDeviceMemory,
    /// Pinned memory was still there at the end.
    LeakedPinnedMemory,
    /// A registration was still there at the end.
    LeakedRegistration,
    /// A stream was still there at the end.
    LeakedStream,
    /// An event was still there at the end.
    LeakedEvent,
    /// A module was still there at the end.
    LeakedModule,
}

impl FindingKind {
    /// Whether something was merely left behind.
    #[must_use]
    pub fn is_leak(self) -> bool {
        matches!(
            self,
            Self::LeakedDeviceMemory
                | Self::LeakedPinnedMemory
                | Self::LeakedRegistration
                | Self::LeakedStream
                | Self::LeakedEvent
                | Self::LeakedModule
        )
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HostChangedInFlight => "host memory changed while in flight",
            Self::HostFreedInFlight => "host memory freed while in flight",
            Self::HostUnregisteredInFlight => "host memory unregistered while in flight",
            Self::DeviceFreedInUse => "device memory freed while in use",
            Self::UseAfterFree => "memory used after free",
            Self::UseBeforeAlloc => "device memory used before its allocation in stream order",
            Self::DoubleFree => "double free",
            Self::WrongFree => "wrong free function",
            Self::WrongBase => "given back by an address that is not the base",
            Self::OverlappingRegistration => "overlapping registration",
            Self::LeakedDeviceMemory => "device memory leaked",
            Self::LeakedPinnedMemory => "pinned memory leaked",
            Self::LeakedRegistration => "registration leaked",
            Self::LeakedStream => "stream leaked",
            Self::LeakedEvent => "event leaked",
            Self::LeakedModule => "module leaked",
        })
    }
}

/// One misuse, with the operation that caused it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What kind of misuse.
    pub kind: FindingKind,
    /// The operation, such as `copy_async #7 (4096 bytes, host to device)`.
    pub operation: String,
    /// What was expected and found.
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
