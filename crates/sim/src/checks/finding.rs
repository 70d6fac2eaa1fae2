//! Misuse that the checks found.

use std::fmt;

use crate::memory::host::Origin;
use crate::state::State;
use crate::stream::Role;

/// A kind of misuse.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum FindingKind {
    /// The host memory of a copy changed between submission and completion.
    HostChangedInFlight,
    /// Pinned host memory was freed while work in flight used it.
    HostFreedInFlight,
    /// Registered memory was unregistered while work in flight used it.
    HostUnregisteredInFlight,
    /// Device memory was freed while work in flight used it.
    DeviceFreedInUse,
    /// Device or pinned memory was used after it was freed.
    UseAfterFree,
    /// Stream-ordered memory was used before its allocation in stream order.
    UseBeforeAlloc,
    /// Memory was freed twice.
    DoubleFree,
    /// Memory was freed by the wrong function.
    WrongFree,
    /// Memory was freed by an address other than its base.
    WrongBase,
    /// Memory was registered that overlaps page-locked memory.
    OverlappingRegistration,
    /// Device memory was not released.
    LeakedDeviceMemory,
    /// Pinned memory was not released.
    LeakedPinnedMemory,
    /// A registration was not released.
    LeakedRegistration,
    /// A stream was not released.
    LeakedStream,
    /// An event was not released.
    LeakedEvent,
    /// A module was not released.
    LeakedModule,
}

impl FindingKind {
    /// Whether it is a leak.
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
            Self::WrongBase => "freed by an address that is not the base",
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

impl State {
    /// Everything that was created and not released.
    pub(crate) fn leaks(&self) -> Vec<Finding> {
        let mut leaks = Vec::new();
        let mut leak = |kind, operation: &str, detail: String| {
            leaks.push(Finding {
                kind,
                operation: operation.to_owned(),
                detail,
            });
        };
        for (ordinal, device) in self.devices.iter().enumerate() {
            for (base, block) in device.memory.iter() {
                let detail = format!("{} bytes at {base:#x} of device {ordinal}", block.bytes);
                leak(FindingKind::LeakedDeviceMemory, "device_alloc", detail);
            }
        }
        for pin in self.host.iter() {
            let (kind, call) = match pin.origin {
                Origin::Allocated(_) => (FindingKind::LeakedPinnedMemory, "host_alloc"),
                Origin::Registered => (FindingKind::LeakedRegistration, "host_register"),
            };
            let detail = format!("range {}, {} bytes", pin.id, pin.range.len());
            leak(kind, call, detail);
        }
        for (id, stream) in self.streams.iter() {
            if stream.role != Role::Default && !stream.destroyed {
                let detail = format!("stream {:#x} of device {}", id.handle(), stream.device);
                leak(FindingKind::LeakedStream, "stream_create", detail);
            }
        }
        for (id, event) in self.events.iter() {
            let detail = format!("event {:#x} of device {}", id.handle(), event.device);
            leak(FindingKind::LeakedEvent, "event_create", detail);
        }
        for (id, module) in self.modules.iter() {
            let detail = format!("module {:#x} of device {}", id.handle(), module.device);
            leak(FindingKind::LeakedModule, "module_load", detail);
        }
        leaks
    }
}
