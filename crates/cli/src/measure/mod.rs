//! Measuring copies, for `compare` and `bench`.
//!
//! ```text
//!   Meter        one copy of a kind of memory, a direction and a size     (this file)
//!     Wires      the device's end, streams, events, what is sent          (wires)
//!     Host       the host's end, one for each kind of memory              (host)
//!       PageLocked   pinned, registered, write-combined                   (page_locked)
//!       Mapped       a kernel reads or writes host memory                 (mapped)
//!       Ordinary     pageable and express                                 (ordinary)
//!     Modelled   what a simulated clock does not see                      (modelled)
//!   link         what the link can carry
//! ```
//!
//! The clock is the device's own, read through events: it is the right one for a GPU, and the only
//! one that a simulated device has.
//!
//! - Page-locked memory: one copy between two events on an idle stream, as a program sees it that
//!   puts events around a copy of its own. A kernel before it would keep the host out of the time,
//!   but the way from the compute engine to the copy engine takes longer, and varies more.
//! - Mapped memory: the same with a kernel, behind another one that keeps the stream busy until all
//!   is submitted.
//! - Ordinary memory is copied by the host, which is part of the time: the stream is idle, the
//!   first event is recorded, the call is made, and the second event is recorded behind it.
//! - Both ways: a stream for each direction, both wait for the first event, and the second one
//!   comes when both are done. Ordinary memory takes two host threads for that.

mod clock;
mod host;
pub(crate) mod link;
mod mapped;
mod modelled;
mod ordinary;
mod page_locked;
mod pair;
mod wires;

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use pinlane::Device;
use pinlane_model::Profile;
use pinlane_report::{MemoryKind, Route};

use crate::doctor::facts;
pub(crate) use clock::Clock;
use host::Host;
use modelled::Modelled;
use ordinary::Ordinary;
use wires::Wires;

/// Refuses what would have the system end processes for want of memory: what is sent, what comes
/// back, and memory for pageable and express copies. The rest is pinned, and in the budget.
fn has_room(bytes: usize, simulated: bool) -> anyhow::Result<()> {
    // A simulated device has its memory here, too.
    let times = if simulated { 6 } else { 4 };
    let needed_bytes = (bytes as u64).saturating_mul(times);
    let free_bytes = facts::available_bytes().unwrap_or(u64::MAX);
    if needed_bytes > free_bytes / 16 * 15 {
        let gb = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
        bail!(
            "no room in the host's memory, which has {} of the {} needed; choose smaller copies",
            gb(free_bytes),
            gb(needed_bytes)
        );
    }
    Ok(())
}

/// Measures copies of up to some size.
pub(crate) struct Meter<'a> {
    clock: Clock<'a>,
    wires: Wires<'a>,
    hosts: BTreeMap<MemoryKind, Box<dyn Host>>,
    /// On a simulated device.
    modelled: Option<Modelled>,
    simulated: bool,
}

impl<'a> Meter<'a> {
    /// For copies of at most `bytes`. `profile` is that of a simulated device, where known.
    pub(crate) fn new(
        device: &'a Device,
        clock: Clock<'a>,
        profile: Option<Profile>,
        bytes: usize,
    ) -> anyhow::Result<Self> {
        let name = device.info().simulated.as_deref();
        has_room(bytes, name.is_some())?;
        // A simulated GPU behind libcuda tells its profile's name only.
        let profile = name.and_then(|name| profile.or_else(|| Profile::builtin(name)));
        Ok(Self {
            clock,
            wires: Wires::new(device, bytes)?,
            hosts: BTreeMap::new(),
            modelled: profile.map(Modelled::new),
            simulated: name.is_some(),
        })
    }

    /// Why this device has no figures of a kind; none where it has.
    pub(crate) fn refusal(&self, kind: MemoryKind) -> Option<&'static str> {
        let info = self.wires.device.info();
        let model = self.modelled.as_ref();
        match kind {
            MemoryKind::Registered if !info.can_register => {
                Some("the device does not page-lock memory in place")
            }
            MemoryKind::Mapped if !info.can_map_host => {
                Some("kernels of this device cannot reach host memory")
            }
            MemoryKind::Mapped if self.simulated && model.is_none() => {
                Some("the profile of this simulated device is not known here")
            }
            MemoryKind::Express if self.simulated && !model.is_some_and(Modelled::has_express) => {
                Some(
                    "the profile has no [express] section, and a simulated clock sees no host threads",
                )
            }
            _ => None,
        }
    }

    /// Why there are no figures of a kind in a direction and size, though there are others.
    pub(crate) fn route_refusal(
        &self,
        kind: MemoryKind,
        route: Route,
        bytes: usize,
    ) -> Option<&'static str> {
        let by_driver = match (&self.modelled, kind) {
            (_, MemoryKind::Pageable) => self.simulated,
            (Some(modelled), MemoryKind::Express) => modelled.is_drivers(bytes as u64),
            _ => false,
        };
        (by_driver && route == Route::Both).then_some(
            "the driver's copies take two host threads for that, and a simulated clock knows one",
        )
    }

    /// How figures of a kind came about, where they are not what the device's clock says.
    pub(crate) fn remark(&self, kind: MemoryKind) -> Option<&'static str> {
        if !self.simulated {
            return None;
        }
        match kind {
            MemoryKind::Mapped => Some("a kernel's launch, then the link as for pinned memory"),
            MemoryKind::Express => Some(
                "by the profile's [express] figures, or the driver's copy where that is faster",
            ),
            _ => None,
        }
    }

    /// Get memory of a kind. What that took, by the host's clock.
    pub(crate) fn open(&mut self, kind: MemoryKind) -> anyhow::Result<u64> {
        let began_ns = self.clock.now_ns();
        let memory = host::get(kind, &self.wires)?;
        let took_ns = self.clock.now_ns().saturating_sub(began_ns);
        self.hosts.insert(kind, memory.ready(&self.wires)?);
        Ok(took_ns)
    }

    /// Get all memory of a kind that copies in these directions need, and try it.
    pub(crate) fn prepare(&mut self, kind: MemoryKind, routes: &[Route]) -> anyhow::Result<()> {
        self.open(kind)?;
        // The lanes pin what they need with their first large copy.
        let bytes = match kind {
            MemoryKind::Express => self.wires.data.len(),
            _ => 1,
        };
        for &route in routes {
            if self.route_refusal(kind, route, bytes).is_none() {
                self.check(kind, route, bytes)?;
            }
        }
        Ok(())
    }

    /// Give memory of a kind back.
    pub(crate) fn close(&mut self, kind: MemoryKind) {
        self.hosts.remove(&kind);
    }

    /// Copy once and check what arrived. What it took, as [`sample`](Self::sample) tells it.
    pub(crate) fn check(
        &mut self,
        kind: MemoryKind,
        route: Route,
        bytes: usize,
    ) -> anyhow::Result<u64> {
        let Self { hosts, wires, .. } = self;
        let host = hosts.get_mut(&kind).context("memory that was not got")?;
        wires.forget(bytes)?;
        host.forget(wires, route, bytes)?;
        let seen_ns = host.copy(wires, route, bytes)?;
        // In this order: the second may go through the same device memory.
        let good_there = route == Route::D2h || wires.arrived(bytes)?;
        let good_back = route == Route::H2d || host.came_back(wires, route, bytes)?;
        if !good_there || !good_back {
            bail!(
                "{} memory, {}: the bytes that arrived are not those that were sent",
                kind.name(),
                route.words()
            );
        }
        Ok(self.modelled_ns(kind, route, bytes)?.unwrap_or(seen_ns))
    }

    /// Nanoseconds of one copy.
    pub(crate) fn sample(
        &mut self,
        kind: MemoryKind,
        route: Route,
        bytes: usize,
    ) -> anyhow::Result<u64> {
        if let Some(ns) = self.modelled_ns(kind, route, bytes)? {
            return Ok(ns);
        }
        let Self { hosts, wires, .. } = self;
        let host = hosts.get_mut(&kind).context("memory that was not got")?;
        host.copy(wires, route, bytes)
    }

    /// What a simulated clock would not tell right.
    fn modelled_ns(
        &mut self,
        kind: MemoryKind,
        route: Route,
        bytes: usize,
    ) -> anyhow::Result<Option<u64>> {
        let Self {
            modelled, wires, ..
        } = self;
        let Some(modelled) = modelled else {
            return Ok(None);
        };
        Ok(match kind {
            MemoryKind::Mapped => Some(modelled.mapped_ns(route, bytes as u64)),
            MemoryKind::Express => {
                let driver_ns = match route {
                    Route::Both => None,
                    Route::H2d | Route::D2h => Some(Ordinary::driver_copy(wires, route, bytes)?),
                };
                Some(modelled.express_ns(route, bytes as u64, driver_ns))
            }
            _ => None,
        })
    }
}
