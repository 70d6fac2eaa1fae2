//! What calls cost: measured on a GPU, computed for a simulated one.

use pinlane_boost_files::trace::{Event, HostMemory, Operation, Route, Site};
use pinlane_model::{Direction, HostKind, Profile};

/// How times are found.
pub(super) struct Costs<'a> {
    /// The machine, if it is known.
    pub(super) profile: Option<&'a Profile>,
    /// Whether the times of calls are those of a GPU.
    pub(super) is_measured: bool,
}

/// One call, or the mean of several.
#[derive(Clone, Copy)]
struct Call {
    operation: Operation,
    route: Route,
    memory: HostMemory,
    is_async: bool,
    bytes: u64,
}

impl Costs<'_> {
    /// How long the program waited for a call.
    pub(super) fn event_ns(&self, event: &Event) -> Option<u64> {
        match self.is_measured {
            true => Some(event.ns),
            false => self.computed_ns(Call {
                operation: event.operation,
                route: event.route,
                memory: event.memory,
                is_async: event.is_async,
                bytes: event.bytes,
            }),
        }
    }

    /// How long the program waited for all calls of a site.
    pub(super) fn site_ns(&self, site: &Site) -> Option<u64> {
        let totals = site.totals;
        let call = Call {
            operation: site.operation,
            route: site.route,
            memory: site.memory,
            is_async: site.is_async,
            bytes: totals.bytes / totals.calls.max(1),
        };
        match self.is_measured {
            true => Some(totals.ns),
            // A call that fails does nothing.
            false => Some(
                self.computed_ns(call)?
                    .saturating_mul(totals.calls - totals.failures.min(totals.calls)),
            ),
        }
    }

    /// The copies of a site from pinned memory.
    pub(super) fn pinned_ns(&self, site: &Site) -> Option<u64> {
        self.per_copy(site, |profile, direction, bytes| {
            Some(profile.copy_ns(direction, HostKind::Pinned, bytes))
        })
    }

    /// The copies of a site over the express lane, which leaves to the driver what that is faster at.
    pub(super) fn express_ns(&self, site: &Site) -> Option<u64> {
        self.per_copy(site, |profile, direction, bytes| {
            let driver_ns = profile.copy_ns(direction, HostKind::Pageable, bytes);
            Some(
                profile
                    .express
                    .as_ref()?
                    .ns(direction, bytes)
                    .min(driver_ns),
            )
        })
    }

    /// What a site would save with the better of both.
    pub(super) fn lost_ns(&self, site: &Site) -> Option<u64> {
        let pinned_ns = self.pinned_ns(site)?;
        let best_ns = self
            .express_ns(site)
            .map_or(pinned_ns, |express_ns| express_ns.min(pinned_ns));
        // Waits for kernels are not lost by the copy, but are in its measured time.
        let driver_ns = self.per_copy(site, |profile, direction, bytes| {
            Some(profile.copy_ns(direction, HostKind::Pageable, bytes))
        })?;
        Some(self.site_ns(site)?.min(driver_ns).saturating_sub(best_ns))
    }

    /// One copy between page-locked memory and the device.
    pub(super) fn page_locked_copy_ns(&self, route: Route, bytes: u64) -> Option<u64> {
        Some(
            self.profile?
                .copy_ns(direction(route)?, HostKind::Pinned, bytes),
        )
    }

    fn per_copy(
        &self,
        site: &Site,
        cost: impl Fn(&Profile, Direction, u64) -> Option<u64>,
    ) -> Option<u64> {
        let is_pageable = site.operation.is_copy() && site.memory == HostMemory::Pageable;
        let direction = direction(site.route).filter(|_| is_pageable)?;
        let totals = site.totals;
        let mean_bytes = totals.bytes / totals.calls.max(1);
        Some(cost(self.profile?, direction, mean_bytes)?.saturating_mul(totals.calls))
    }

    fn computed_ns(&self, call: Call) -> Option<u64> {
        let profile = self.profile?;
        let is_pageable = call.memory == HostMemory::Pageable;
        Some(match call.operation {
            operation if operation.is_copy() => match direction(call.route) {
                Some(direction) if is_pageable => {
                    profile.copy_ns(direction, HostKind::Pageable, call.bytes)
                }
                _ if call.is_async => profile.calls.submit_ns,
                Some(direction) => profile.copy_ns(direction, HostKind::Pinned, call.bytes),
                None => profile.device_copy_ns(call.bytes),
            },
            Operation::Allocate => profile.host_memory.alloc.ns(call.bytes),
            Operation::Free => profile.host_memory.free.ns(call.bytes),
            Operation::Register => profile.host_memory.register.ns(call.bytes),
            Operation::Unregister => profile.host_memory.unregister.ns(call.bytes),
            _ => return None,
        })
    }
}

fn direction(route: Route) -> Option<Direction> {
    match route {
        Route::Upload => Some(Direction::HostToDevice),
        Route::Download => Some(Direction::DeviceToHost),
        _ => None,
    }
}
