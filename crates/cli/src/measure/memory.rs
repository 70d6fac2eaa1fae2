//! The host's end of copies: one kind of memory.

use anyhow::Context;
use pinlane_report::{MemoryKind, Route};

use super::mapped::MappedMemory;
use super::page_locked::PageLockedMemory;
use super::pageable::PageableMemory;
use super::rig::{Rig, touched};
use crate::copier::Copier;

/// Host memory that takes part in copies.
pub(super) trait HostMemory {
    /// Copies once. Returns the time on the device's clock.
    fn copy(&mut self, rig: &mut Rig<'_>, route: Route, bytes: usize) -> anyhow::Result<u64>;

    /// Clears the target on the host.
    fn clear(&mut self, rig: &mut Rig<'_>, route: Route, bytes: usize) -> anyhow::Result<()>;

    /// Whether the target on the host holds the bytes of the device.
    fn arrived(&mut self, rig: &mut Rig<'_>, route: Route, bytes: usize) -> anyhow::Result<bool>;
}

/// Allocated memory with all pages touched, not yet filled.
pub(super) enum Allocated {
    Pageable(PageableMemory),
    Pinned(pinlane::PinnedBuf<u8>),
    Registered(pinlane::Registered<Vec<u8>>),
    WriteCombined(pinlane::WriteCombinedBuf<u8>),
    Mapped(pinlane::MappedBuf<u8>),
}

impl Allocated {
    /// Allocates memory for the largest copy.
    pub(super) fn new(kind: MemoryKind, rig: &Rig<'_>) -> anyhow::Result<Self> {
        let (device, bytes) = (rig.device, rig.data.len());
        let too_large = || format!("cannot allocate {} memory; use smaller copies", kind.name());
        Ok(match kind {
            MemoryKind::Pageable => {
                Self::Pageable(PageableMemory::new(Copier::Driver, touched(bytes)?))
            }
            MemoryKind::Express => {
                Self::Pageable(PageableMemory::new(Copier::Express, touched(bytes)?))
            }
            MemoryKind::Pinned => Self::Pinned(device.pinned(bytes).with_context(too_large)?),
            MemoryKind::WriteCombined => {
                Self::WriteCombined(device.write_combined(bytes).with_context(too_large)?)
            }
            MemoryKind::Mapped => Self::Mapped(device.mapped(bytes).with_context(too_large)?),
            MemoryKind::Registered => {
                let registered = device.register(touched(bytes)?);
                let registered = registered.map_err(pinlane::Error::from);
                Self::Registered(registered.with_context(too_large)?)
            }
        })
    }

    /// Fills the memory, and adds what copies need besides it.
    pub(super) fn prepare(self, rig: &Rig<'_>) -> anyhow::Result<Box<dyn HostMemory>> {
        Ok(match self {
            Self::Pageable(memory) => Box::new(memory),
            Self::Pinned(memory) => Box::new(PageLockedMemory::new(memory, rig)),
            Self::Registered(memory) => Box::new(PageLockedMemory::new(memory, rig)),
            Self::WriteCombined(memory) => Box::new(PageLockedMemory::new(memory.into_sink(), rig)),
            Self::Mapped(memory) => Box::new(MappedMemory::new(memory, rig)?),
        })
    }
}

/// A buffer for copies in one direction, and a second one for copies in both. A slot is empty while its
/// buffer is in flight.
pub(super) struct BufferPair<B> {
    /// Holds the bytes to send. Copies back in one direction bring the same bytes, and land here too.
    first: Option<B>,
    /// The target of copies in both directions, allocated on first use.
    second: Option<B>,
}

impl<B> BufferPair<B> {
    pub(super) fn new(first: B) -> Self {
        Self {
            first: Some(first),
            second: None,
        }
    }

    /// Allocates the second buffer if the route needs it.
    pub(super) fn allocate_for(
        &mut self,
        route: Route,
        allocate: impl FnOnce() -> anyhow::Result<B>,
    ) -> anyhow::Result<()> {
        if route == Route::Both && self.second.is_none() {
            self.second = Some(allocate()?);
        }
        Ok(())
    }

    pub(super) fn source(&mut self) -> &mut Option<B> {
        &mut self.first
    }

    pub(super) fn target(&mut self, route: Route) -> &mut Option<B> {
        match route {
            Route::Both => &mut self.second,
            Route::H2d | Route::D2h => &mut self.first,
        }
    }
}

/// Takes a buffer out of its slot.
pub(super) fn take<B>(slot: &mut Option<B>) -> anyhow::Result<B> {
    slot.take().context("a failed copy lost its buffer")
}
