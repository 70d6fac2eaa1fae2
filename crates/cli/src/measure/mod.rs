//! Timed copies, for `compare` and `bench`.
//!
//! ```text
//!   Meter        one copy of a kind of memory, a direction and a size     (this file)
//!     Rig        the device's end: streams, events, device memory         (device_side)
//!     HostMemory the host's end, one implementation per kind of memory    (this file)
//!       PageLockedMemory   pinned, registered, write-combined             (page_locked)
//!       MappedMemory       a kernel reads or writes host memory           (page_locked)
//!       PageableMemory     pageable and express                           (pageable)
//!     times that a simulated clock does not show                          (modelled_times)
//! ```
//!
//! Times are the device's own, taken by events. That is the right clock for a GPU, and the only one of a
//! simulated device.
//!
//! - Page-locked memory: one copy between two events on an idle stream. A kernel in front would hide the
//!   submission, but the switch to the copy engine takes longer and varies more.
//! - Mapped memory: a kernel, after another one that keeps the stream busy until everything is submitted.
//! - Pageable memory: the host copies, so its work is part of the time.
//! - Both directions: one stream each, and for pageable memory one host thread each. Both wait for the start
//!   event; the end event is recorded when both are done.

mod device_side;
mod modelled_times;
mod page_locked;
mod pageable;

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use pinlane::{Device, PinnedBuf, Registered, WriteCombinedSink};
use pinlane_model::Profile;
use pinlane_report::{MemoryKind, Route};

use crate::clock::HostClock;
use crate::device::Backend;
use crate::driver_or_express_copy::Copier;
use crate::system;
use device_side::Rig;
use page_locked::{MappedMemory, PageLockedMemory};
use pageable::PageableMemory;

const NOT_OPEN: &str = "memory is not open";

/// Fails if copies of this size would exhaust the host's memory: source, target, and memory for pageable and
/// express copies. Everything else is pinned, which the budget limits. Fails too if they would never fit the
/// device.
pub(crate) fn check_memory(device: &Device, bytes: usize) -> anyhow::Result<()> {
    let info = device.info();
    if bytes as u64 > info.memory_bytes / 2 {
        bail!(device_side::TOO_LARGE);
    }
    // The memory of a simulated device is host memory too.
    let buffers = if info.simulated.is_some() { 6 } else { 4 };
    let needed_bytes = (bytes as u64).saturating_mul(buffers);
    let free_bytes = system::available_bytes();
    if needed_bytes > system::usable_bytes(free_bytes) {
        let gb = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
        let (needed, free) = (gb(needed_bytes), gb(free_bytes));
        bail!("not enough host memory: {needed} needed, {free} available; use smaller copies");
    }
    Ok(())
}

#[derive(Clone, Copy)]
pub(crate) struct CopyCase {
    pub(crate) memory: MemoryKind,
    pub(crate) route: Route,
    pub(crate) bytes: usize,
}

/// The host's end of copies: one kind of memory.
trait HostMemory {
    /// Fills new memory, and adds what copies need besides it.
    fn fill(&mut self, _rig: &Rig<'_>) -> anyhow::Result<()> {
        Ok(())
    }

    /// Copies once. Returns the time on the device's clock.
    fn copy(&mut self, rig: &mut Rig<'_>, route: Route, bytes: usize) -> anyhow::Result<u64>;

    fn clear(&mut self, rig: &mut Rig<'_>, route: Route, bytes: usize) -> anyhow::Result<()>;

    /// Whether the target on the host holds the bytes of the device.
    fn arrived(&mut self, rig: &mut Rig<'_>, route: Route, bytes: usize) -> anyhow::Result<bool>;
}

/// Allocates memory for the largest copy, with all pages touched.
fn allocate(kind: MemoryKind, rig: &Rig<'_>) -> anyhow::Result<Box<dyn HostMemory>> {
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

/// Whether the device or the budget refused the memory, so that other kinds can still be measured.
pub(crate) fn is_refusal(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<pinlane::Error>() {
        Some(pinlane::Error::Driver(error)) => !error.is_fatal(),
        other => other.is_some(),
    }
}

pub(crate) struct Meter<'a> {
    clock: HostClock<'a>,
    rig: Rig<'a>,
    memories: BTreeMap<MemoryKind, Box<dyn HostMemory>>,
    /// Of a simulated device, if known.
    profile: Option<Profile>,
    simulated: bool,
}

impl<'a> Meter<'a> {
    /// For copies of at most `bytes`.
    pub(crate) fn new(
        backend: &'a Backend,
        device: &'a Device,
        bytes: usize,
    ) -> anyhow::Result<Self> {
        let simulated = device.info().simulated.is_some();
        check_memory(device, bytes)?;
        Ok(Self {
            clock: HostClock::of(backend),
            rig: Rig::new(device, bytes)?,
            memories: BTreeMap::new(),
            profile: backend.profile_of(device),
            simulated,
        })
    }

    /// Calls `measure` for a kind of memory. `None` if the device cannot measure it. Notes why, or how its times
    /// are obtained.
    pub(crate) fn try_kind<T>(
        &mut self,
        kind: MemoryKind,
        required: bool,
        notes: &mut Vec<String>,
        measure: impl FnOnce(&mut Self) -> anyhow::Result<T>,
    ) -> anyhow::Result<Option<T>> {
        let name = kind.name();
        if let Some(reason) = self.refusal(kind) {
            notes.push(format!("{name}: not measured: {reason}"));
            return Ok(None);
        }
        match measure(self) {
            Ok(measured) => {
                let remark = self.remark(kind);
                notes.extend(remark.map(|remark| format!("{name}: {remark}")));
                Ok(Some(measured))
            }
            Err(error) if is_refusal(&error) && !required => {
                self.close(kind);
                notes.push(format!("{name}: not measured: {error:#}"));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Why this device cannot measure a kind of memory; `None` if it can.
    fn refusal(&self, kind: MemoryKind) -> Option<&'static str> {
        let info = self.rig.device.info();
        let profile = self.profile.as_ref();
        let has_express = profile.is_some_and(|profile| profile.express.is_some());
        Some(match kind {
            MemoryKind::Registered if !info.can_register => "the device cannot register memory",
            MemoryKind::Mapped if !info.can_map_host => {
                "kernels of this device cannot access host memory"
            }
            MemoryKind::Mapped if self.simulated && profile.is_none() => {
                "the profile of this simulated device is unknown"
            }
            MemoryKind::Express if self.simulated && !has_express => {
                "the profile has no [express] section, and a simulated clock cannot time host threads"
            }
            _ => return None,
        })
    }

    /// Why this device cannot measure one direction and size of a kind that it can measure otherwise.
    pub(crate) fn route_refusal(&self, case: CopyCase) -> Option<&'static str> {
        let by_driver = match (&self.profile, case.memory) {
            (_, MemoryKind::Pageable) => self.simulated,
            (Some(profile), MemoryKind::Express) => {
                modelled_times::uses_driver(profile, case.bytes as u64)
            }
            _ => false,
        };
        (by_driver && case.route == Route::Both)
            .then_some("the driver's copies need two host threads, and a simulated clock has one")
    }

    /// How the times of a kind are obtained, if not from the device's clock.
    fn remark(&self, kind: MemoryKind) -> Option<&'static str> {
        self.simulated.then_some(match kind {
            MemoryKind::Mapped => "modelled as a kernel launch plus a copy of pinned memory",
            MemoryKind::Express => {
                "modelled from the profile's [express] section, or the driver's copy if faster"
            }
            _ => return None,
        })
    }

    /// Allocates memory of a kind. Returns the time on the host's clock.
    pub(crate) fn open(&mut self, kind: MemoryKind) -> anyhow::Result<u64> {
        let start_ns = self.clock.now_ns();
        let mut memory = allocate(kind, &self.rig)?;
        let elapsed_ns = self.clock.now_ns().saturating_sub(start_ns);
        memory.fill(&self.rig)?;
        self.memories.insert(kind, memory);
        Ok(elapsed_ns)
    }

    /// Allocates all memory of a kind that these routes need, and tries it.
    pub(crate) fn prepare(&mut self, memory: MemoryKind, routes: &[Route]) -> anyhow::Result<()> {
        self.open(memory)?;
        // The express lane pins its ring with the first large copy.
        let bytes = match memory {
            MemoryKind::Express => self.rig.data.len(),
            _ => 1,
        };
        for &route in routes {
            let case = CopyCase {
                memory,
                route,
                bytes,
            };
            if self.route_refusal(case).is_none() {
                self.check(case)?;
            }
        }
        Ok(())
    }

    pub(crate) fn close(&mut self, kind: MemoryKind) {
        self.memories.remove(&kind);
    }

    /// Copies once and checks the result. Returns the time as [`sample`](Self::sample) does.
    pub(crate) fn check(&mut self, case: CopyCase) -> anyhow::Result<u64> {
        let CopyCase { route, bytes, .. } = case;
        let Self { memories, rig, .. } = self;
        let memory = memories.get_mut(&case.memory).context(NOT_OPEN)?;
        rig.clear(bytes)?;
        if route != Route::H2d {
            memory.clear(rig, route, bytes)?;
        }
        let measured_ns = memory.copy(rig, route, bytes)?;
        // The device first: checking the host may overwrite the target on the device.
        let good_on_device = route == Route::D2h || rig.arrived(bytes)?;
        let good_on_host = route == Route::H2d || memory.arrived(rig, route, bytes)?;
        if !good_on_device || !good_on_host {
            let (kind, direction) = (case.memory.name(), route.words());
            bail!("{kind} memory, {direction}: the copy delivered wrong bytes");
        }
        Ok(self.modelled_ns(case)?.unwrap_or(measured_ns))
    }

    /// Copies once. Returns the time in nanoseconds.
    pub(crate) fn sample(&mut self, case: CopyCase) -> anyhow::Result<u64> {
        if let Some(ns) = self.modelled_ns(case)? {
            return Ok(ns);
        }
        let Self { memories, rig, .. } = self;
        let memory = memories.get_mut(&case.memory).context(NOT_OPEN)?;
        memory.copy(rig, case.route, case.bytes)
    }

    /// The time by the model, where a simulated clock would be wrong.
    fn modelled_ns(&mut self, case: CopyCase) -> anyhow::Result<Option<u64>> {
        let CopyCase { route, bytes, .. } = case;
        let Some(profile) = &self.profile else {
            return Ok(None);
        };
        Ok(match case.memory {
            MemoryKind::Mapped => Some(modelled_times::mapped_ns(profile, route, bytes as u64)),
            MemoryKind::Express => {
                let driver_ns = match route {
                    Route::Both => None,
                    _ => Some(PageableMemory::driver_copy(&mut self.rig, route, bytes)?),
                };
                Some(modelled_times::express_ns(
                    profile,
                    route,
                    bytes as u64,
                    driver_ns,
                ))
            }
            _ => None,
        })
    }
}
