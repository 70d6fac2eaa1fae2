//! What was created and not released.

use super::{Finding, FindingKind};
use crate::memory::host::Origin;
use crate::state::State;
use crate::stream::Role;

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
