//! Ordinary memory where it costs most.

use pinlane_boost_files::trace::{HostMemory, Operation, Recording, Site};

use super::{Evidence, Mistake};
use crate::commands::trace::costs::Costs;

pub(super) const MISTAKES: &[Mistake] = &[
    Mistake {
        id: "pageable_async",
        title: "Pageable memory in asynchronous copies, which then block",
        remedy: "Allocate the buffer pinned (cudaMallocHost, pin_memory=True), or run the program by `pinlane boost`.",
        find: pageable_async,
    },
    Mistake {
        id: "pageable_strided",
        title: "Strided copies of pageable memory, which the driver makes row by row",
        remedy: "Pin the memory, or pack the rows on the host and copy them as one.",
        find: pageable_strided,
    },
];

/// Up to this size the driver takes the bytes with the call itself.
const SMALL_BYTES: u64 = 64 << 10;

fn pageable_async(recording: &Recording, costs: &Costs<'_>) -> Evidence {
    let is_large = |site: &Site| site.totals.bytes / site.totals.calls > SMALL_BYTES;
    sites(recording, costs, |site| {
        site.is_async && site.operation == Operation::Copy && is_large(site)
    })
}

fn pageable_strided(recording: &Recording, costs: &Costs<'_>) -> Evidence {
    let is_strided =
        |site: &Site| matches!(site.operation, Operation::CopyRows | Operation::CopyBlock);
    sites(recording, costs, is_strided)
}

/// Sites that copy pageable memory and have this.
fn sites(recording: &Recording, costs: &Costs<'_>, has: impl Fn(&Site) -> bool) -> Evidence {
    let mut found = Evidence::default();
    for (index, site) in (0..).zip(&recording.sites) {
        if site.totals.calls > 0 && site.memory == HostMemory::Pageable && has(site) {
            found.add(
                index,
                site.totals.calls,
                site.totals.bytes,
                costs.lost_ns(site),
            );
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use pinlane_boost_files::trace::Route::Upload;

    use super::super::sample::{Sample, ids};
    use super::*;

    #[test]
    fn asynchronous_copies_of_pageable_memory() {
        let copy = |memory, bytes| {
            let mut sample = Sample::default();
            sample.copy(Upload, memory, bytes).on(7);
            ids(&sample)
        };
        assert_eq!(copy(HostMemory::Pageable, 1 << 20), ["pageable_async"]);
        assert!(copy(HostMemory::Pinned, 1 << 20).is_empty());
        assert!(
            copy(HostMemory::Pageable, 4096).is_empty(),
            "taken with the call"
        );
        let mut synchronous = Sample::default();
        synchronous.copy(Upload, HostMemory::Pageable, 1 << 20);
        assert!(ids(&synchronous).is_empty());
    }

    #[test]
    fn strided_copies() {
        let rows = |memory| {
            let mut sample = Sample::default();
            sample.copy(Upload, memory, 1 << 20).operation = Operation::CopyRows;
            ids(&sample)
        };
        assert_eq!(rows(HostMemory::Pageable), ["pageable_strided"]);
        assert!(rows(HostMemory::Registered).is_empty());
    }
}
