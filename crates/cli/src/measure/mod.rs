//! Timed copies, for `compare` and `bench`.
//!
//! ```text
//!   Meter        one copy of a kind of memory, a direction and a size     (this file)
//!     Rig        the device's end: streams, events, device memory         (rig)
//!     HostMemory the host's end, one implementation per kind of memory    (memory)
//!       PageLockedMemory   pinned, registered, write-combined             (page_locked)
//!       MappedMemory       a kernel reads or writes host memory           (page_locked)
//!       PageableMemory     pageable and express                           (pageable)
//!     times that a simulated clock does not show; limits of links         (model)
//! ```
//!
//! Times are the device's own, taken by events. That is the right clock for a GPU, and the only one of a
//! simulated device.
//!
//! - Page-locked memory: one copy between two events on an idle stream, as a program would time its own
//!   copy. A kernel in front would hide the submission, but the switch from the compute engine to the copy
//!   engine takes longer and varies more.
//! - Mapped memory: the same with a kernel, after another kernel that keeps the stream busy until
//!   everything is submitted.
//! - Pageable memory: the host copies, so its work is part of the time. Start event on an idle stream, the
//!   copy call, end event.
//! - Both directions: one stream each. Both wait for the start event; the end event is recorded when both
//!   are done. Pageable memory needs two host threads for this.

mod memory;
mod model;
mod page_locked;
mod pageable;
mod rig;

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use pinlane::Device;
use pinlane_model::Profile;
use pinlane_report::{MemoryKind, Route};

use crate::clock::HostClock;
use crate::system;
use memory::HostMemory;
pub(crate) use model::link_limit;
use pageable::PageableMemory;
use rig::Rig;

/// Fails if the measurement would exhaust the host's memory: source, target, and memory for pageable and
/// express copies. Everything else is pinned, which the budget limits.
fn check_host_memory(bytes: usize, simulated: bool) -> anyhow::Result<()> {
    // The memory of a simulated device is host memory too.
    let buffers = if simulated { 6 } else { 4 };
    let needed_bytes = (bytes as u64).saturating_mul(buffers);
    let free_bytes = system::available_bytes();
    if needed_bytes > system::usable_bytes(free_bytes) {
        let gb = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
        bail!(
            "not enough host memory: {} needed, {} available; use smaller copies",
            gb(needed_bytes),
            gb(free_bytes)
        );
    }
    Ok(())
}

/// Whether the device or the budget refused the memory, so that other kinds can still be measured.
pub(crate) fn is_refusal(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<pinlane::Error>() {
        Some(pinlane::Error::Driver(error)) => !error.is_fatal(),
        other => other.is_some(),
    }
}

/// Measures copies of up to some size.
pub(crate) struct Meter<'a> {
    clock: HostClock<'a>,
    rig: Rig<'a>,
    memories: BTreeMap<MemoryKind, Box<dyn HostMemory>>,
    /// Of a simulated device, if known.
    profile: Option<Profile>,
    simulated: bool,
}

impl<'a> Meter<'a> {
    /// For copies of at most `bytes`. `profile` is that of a simulated device, if known.
    pub(crate) fn new(
        device: &'a Device,
        clock: HostClock<'a>,
        profile: Option<&Profile>,
        bytes: usize,
    ) -> anyhow::Result<Self> {
        let name = device.info().simulated.as_deref();
        check_host_memory(bytes, name.is_some())?;
        // A simulated libcuda reports only the name of its profile.
        let profile = name.and_then(|name| profile.cloned().or_else(|| Profile::builtin(name)));
        Ok(Self {
            clock,
            rig: Rig::new(device, bytes)?,
            memories: BTreeMap::new(),
            profile,
            simulated: name.is_some(),
        })
    }

    /// Why this device cannot measure a kind of memory; `None` if it can.
    pub(crate) fn refusal(&self, kind: MemoryKind) -> Option<&'static str> {
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
    pub(crate) fn route_refusal(
        &self,
        kind: MemoryKind,
        route: Route,
        bytes: usize,
    ) -> Option<&'static str> {
        let by_driver = match (&self.profile, kind) {
            (_, MemoryKind::Pageable) => self.simulated,
            (Some(profile), MemoryKind::Express) => model::uses_driver(profile, bytes as u64),
            _ => false,
        };
        (by_driver && route == Route::Both)
            .then_some("the driver's copies need two host threads, and a simulated clock has one")
    }

    /// How the times of a kind are obtained, if not from the device's clock.
    pub(crate) fn remark(&self, kind: MemoryKind) -> Option<&'static str> {
        match kind {
            _ if !self.simulated => None,
            MemoryKind::Mapped => Some("modelled as a kernel launch plus a copy of pinned memory"),
            MemoryKind::Express => Some(
                "modelled from the profile's [express] section, or the driver's copy if faster",
            ),
            _ => None,
        }
    }

    /// Allocates memory of a kind. Returns the time on the host's clock.
    pub(crate) fn open(&mut self, kind: MemoryKind) -> anyhow::Result<u64> {
        let start_ns = self.clock.now_ns();
        let mut memory = memory::allocate(kind, &self.rig)?;
        let elapsed_ns = self.clock.now_ns().saturating_sub(start_ns);
        memory.fill(&self.rig)?;
        self.memories.insert(kind, memory);
        Ok(elapsed_ns)
    }

    /// Allocates all memory of a kind that these routes need, and tries it.
    pub(crate) fn prepare(&mut self, kind: MemoryKind, routes: &[Route]) -> anyhow::Result<()> {
        self.open(kind)?;
        // The express lane pins its ring with the first large copy.
        let bytes = match kind {
            MemoryKind::Express => self.rig.data.len(),
            _ => 1,
        };
        for &route in routes {
            if self.route_refusal(kind, route, bytes).is_none() {
                self.check(kind, route, bytes)?;
            }
        }
        Ok(())
    }

    /// Frees memory of a kind.
    pub(crate) fn close(&mut self, kind: MemoryKind) {
        self.memories.remove(&kind);
    }

    /// Copies once and checks the result. Returns the time as [`sample`](Self::sample) does.
    pub(crate) fn check(
        &mut self,
        kind: MemoryKind,
        route: Route,
        bytes: usize,
    ) -> anyhow::Result<u64> {
        let Self { memories, rig, .. } = self;
        let memory = memories.get_mut(&kind).context("memory is not open")?;
        rig.clear(bytes)?;
        if route != Route::H2d {
            memory.clear(rig, route, bytes)?;
        }
        let measured_ns = memory.copy(rig, route, bytes)?;
        // The device first: checking the host may overwrite the target on the device.
        let good_on_device = route == Route::D2h || rig.arrived(bytes)?;
        let good_on_host = route == Route::H2d || memory.arrived(rig, route, bytes)?;
        if !good_on_device || !good_on_host {
            bail!(
                "{} memory, {}: the copy delivered wrong bytes",
                kind.name(),
                route.words()
            );
        }
        Ok(self.modelled_ns(kind, route, bytes)?.unwrap_or(measured_ns))
    }

    /// Copies once. Returns the time in nanoseconds.
    pub(crate) fn sample(
        &mut self,
        kind: MemoryKind,
        route: Route,
        bytes: usize,
    ) -> anyhow::Result<u64> {
        if let Some(ns) = self.modelled_ns(kind, route, bytes)? {
            return Ok(ns);
        }
        let Self { memories, rig, .. } = self;
        let memory = memories.get_mut(&kind).context("memory is not open")?;
        memory.copy(rig, route, bytes)
    }

    /// The time by the model, where a simulated clock would be wrong.
    fn modelled_ns(
        &mut self,
        kind: MemoryKind,
        route: Route,
        bytes: usize,
    ) -> anyhow::Result<Option<u64>> {
        let Some(profile) = &self.profile else {
            return Ok(None);
        };
        Ok(match kind {
            MemoryKind::Mapped => Some(model::mapped_ns(profile, route, bytes as u64)),
            MemoryKind::Express => {
                let driver_ns = match route {
                    Route::Both => None,
                    _ => Some(PageableMemory::driver_copy(&mut self.rig, route, bytes)?),
                };
                Some(model::express_ns(profile, route, bytes as u64, driver_ns))
            }
            _ => None,
        })
    }
}
