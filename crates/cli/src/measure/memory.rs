//! The host's end of copies: one kind of memory.

use anyhow::Context;
use pinlane::{PinnedBuf, Registered, WriteCombinedSink};
use pinlane_report::{MemoryKind, Route};

use super::page_locked::{MappedMemory, PageLockedMemory};
use super::pageable::PageableMemory;
use super::rig::Rig;
use crate::copier::Copier;

pub(super) trait HostMemory {
    /// Fills new memory, and adds what copies need besides it.
    fn fill(&mut self, _rig: &Rig<'_>) -> anyhow::Result<()> {
        Ok(())
    }

    /// Copies once. Returns the time on the device's clock.
    fn copy(&mut self, rig: &mut Rig<'_>, route: Route, bytes: usize) -> anyhow::Result<u64>;

    /// Clears the target on the host.
    fn clear(&mut self, rig: &mut Rig<'_>, route: Route, bytes: usize) -> anyhow::Result<()>;

    /// Whether the target on the host holds the bytes of the device.
    fn arrived(&mut self, rig: &mut Rig<'_>, route: Route, bytes: usize) -> anyhow::Result<bool>;
}

/// Allocates memory for the largest copy, with all pages touched.
pub(super) fn allocate(kind: MemoryKind, rig: &Rig<'_>) -> anyhow::Result<Box<dyn HostMemory>> {
    let memory = match kind {
        MemoryKind::Pageable => return PageableMemory::allocate(Copier::Driver, rig),
        MemoryKind::Express => return PageableMemory::allocate(Copier::Express, rig),
        MemoryKind::Pinned => PageLockedMemory::<PinnedBuf<u8>>::allocate(rig),
        MemoryKind::Registered => PageLockedMemory::<Registered<Vec<u8>>>::allocate(rig),
        MemoryKind::WriteCombined => PageLockedMemory::<WriteCombinedSink<u8>>::allocate(rig),
        MemoryKind::Mapped => MappedMemory::allocate(rig),
    };
    memory.with_context(|| format!("cannot allocate {} memory; use smaller copies", kind.name()))
}
