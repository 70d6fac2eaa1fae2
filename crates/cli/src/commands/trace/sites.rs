//! Call sites of all processes as rows of the report.

use std::collections::BTreeMap;

use pinlane_boost_files::trace::{HostMemory, Operation, Recording, Route, Site, Totals};
use pinlane_report::{MemoryKind, TraceAction, TraceSite};

use super::costs::Costs;
use super::place;

/// The sites, the most time lost first. Those of the same line that do the same are one.
pub(super) fn sites(recordings: &[Recording], costs: &Costs<'_>) -> Vec<TraceSite> {
    let mut merged: BTreeMap<_, Site> = BTreeMap::new();
    let all = recordings.iter().flat_map(|recording| &recording.sites);
    for site in all.filter(|site| site.totals.calls > 0) {
        let key = (
            place::place(&site.frames),
            site.operation,
            site.route,
            site.memory,
            site.is_async,
        );
        let known = merged.entry(key).or_insert_with(|| Site {
            totals: Totals::default(),
            ..site.clone()
        });
        add(&mut known.totals, &site.totals);
    }
    let mut sites: Vec<TraceSite> = merged.values().map(|site| row(site, costs)).collect();
    sites.sort_by_key(|site| std::cmp::Reverse((site.lost_ns, site.ns, site.calls)));
    sites
}

fn add(sum: &mut Totals, other: &Totals) {
    sum.calls = sum.calls.saturating_add(other.calls);
    sum.bytes = sum.bytes.saturating_add(other.bytes);
    sum.ns = sum.ns.saturating_add(other.ns);
    sum.longest_ns = sum.longest_ns.max(other.longest_ns);
    sum.failures = sum.failures.saturating_add(other.failures);
    sum.failure_code = sum.failure_code.max(other.failure_code);
}

fn row(site: &Site, costs: &Costs<'_>) -> TraceSite {
    TraceSite {
        place: place::place(&site.frames),
        frames: site.frames.iter().map(place::text).collect(),
        action: action(site),
        route: match site.route {
            Route::Upload => Some(pinlane_report::Route::H2d),
            Route::Download => Some(pinlane_report::Route::D2h),
            _ => None,
        },
        memory: match site.memory {
            HostMemory::Pageable => Some(MemoryKind::Pageable),
            HostMemory::Pinned => Some(MemoryKind::Pinned),
            HostMemory::WriteCombined => Some(MemoryKind::WriteCombined),
            HostMemory::Registered => Some(MemoryKind::Registered),
            HostMemory::Managed | HostMemory::Unknown => None,
        },
        asynchronous: site.is_async,
        calls: site.totals.calls,
        failures: site.totals.failures,
        bytes: site.totals.bytes,
        ns: costs.site_ns(site),
        pinned_ns: costs.pinned_ns(site),
        express_ns: costs.express_ns(site),
        lost_ns: costs.lost_ns(site),
    }
}

fn action(site: &Site) -> TraceAction {
    match site.operation {
        operation if operation.is_copy() && site.route == Route::OnDevice => {
            TraceAction::DeviceCopy
        }
        Operation::Copy => TraceAction::Copy,
        Operation::CopyRows | Operation::CopyBlock => TraceAction::StridedCopy,
        Operation::CopyBatch => TraceAction::BatchCopy,
        Operation::Allocate => TraceAction::Allocate,
        Operation::Free => TraceAction::Free,
        Operation::Register => TraceAction::Register,
        Operation::Unregister => TraceAction::Unregister,
        Operation::WaitForStream | Operation::WaitForEvent | Operation::WaitForContext => {
            TraceAction::Wait
        }
        Operation::RecordEvent | Operation::StreamWaitsForEvent => TraceAction::Event,
        Operation::QueryEvent | Operation::QueryStream => TraceAction::Query,
        Operation::CreateStream => TraceAction::CreateStream,
    }
}
