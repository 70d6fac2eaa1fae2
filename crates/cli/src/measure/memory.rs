//! The host's end of copies.

use anyhow::Context;
use pinlane_report::{MemoryKind, Route};

use super::mapped::Mapped;
use super::ordinary::Ordinary;
use super::page_locked::PageLocked;
use super::wires::{Wires, room};

/// Memory of one kind that takes part in copies.
pub(super) trait Host {
    /// One copy, and what it took on the device's clock.
    fn copy(&mut self, wires: &mut Wires<'_>, route: Route, bytes: usize) -> anyhow::Result<u64>;

    /// Nothing of what comes back is there yet, and what is sent is.
    fn forget(&mut self, wires: &mut Wires<'_>, route: Route, bytes: usize) -> anyhow::Result<()>;

    /// Whether what came back is what was on the device.
    fn came_back(
        &mut self,
        wires: &mut Wires<'_>,
        route: Route,
        bytes: usize,
    ) -> anyhow::Result<bool>;
}

/// Memory of one kind, all pages in place, with nothing in it yet.
pub(super) enum Fresh {
    Ordinary(Ordinary),
    Pinned(pinlane::PinnedBuf<u8>),
    Registered(pinlane::Registered<Vec<u8>>),
    WriteCombined(pinlane::WriteCombinedBuf<u8>),
    Mapped(pinlane::MappedBuf<u8>),
}

/// Get memory for the largest copy.
pub(super) fn get(kind: MemoryKind, wires: &Wires<'_>) -> anyhow::Result<Fresh> {
    let (device, bytes) = (wires.device, wires.data.len());
    let fresh = match kind {
        MemoryKind::Pageable => Fresh::Ordinary(Ordinary::new(false, room(bytes)?)),
        MemoryKind::Express => Fresh::Ordinary(Ordinary::new(true, room(bytes)?)),
        MemoryKind::Pinned => Fresh::Pinned(device.pinned(bytes).context(too_large(kind))?),
        MemoryKind::WriteCombined => {
            Fresh::WriteCombined(device.write_combined(bytes).context(too_large(kind))?)
        }
        MemoryKind::Mapped => Fresh::Mapped(device.mapped(bytes).context(too_large(kind))?),
        MemoryKind::Registered => {
            let registered = device.register(room(bytes)?).map_err(pinlane::Error::from);
            Fresh::Registered(registered.context(too_large(kind))?)
        }
    };
    Ok(fresh)
}

fn too_large(kind: MemoryKind) -> String {
    format!("no {} memory; choose smaller copies", kind.name())
}

impl Fresh {
    /// The memory with all that copies need beside it.
    pub(super) fn ready(self, wires: &Wires<'_>) -> anyhow::Result<Box<dyn Host>> {
        Ok(match self {
            Self::Ordinary(memory) => Box::new(memory),
            Self::Pinned(memory) => Box::new(PageLocked::new(memory, wires)),
            Self::Registered(memory) => Box::new(PageLocked::new(memory, wires)),
            Self::WriteCombined(memory) => Box::new(PageLocked::new(memory.into_sink(), wires)),
            Self::Mapped(memory) => Box::new(Mapped::new(memory, wires)?),
        })
    }
}
