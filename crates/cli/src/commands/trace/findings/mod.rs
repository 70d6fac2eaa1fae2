//! What is wrong with a program's copies. Each is found by a pure function of a recording.
//!
//! ```text
//!   pageable       ordinary memory where it costs most
//!   pinning        pinned memory and registrations: too often, wrongly released, never released
//!   small_copies   many copies that could be one
//!   streams        waits and streams that keep copies from overlapping
//! ```

mod pageable;
mod pinning;
#[cfg(test)]
mod sample;
mod small_copies;
mod streams;

use std::collections::BTreeSet;

use pinlane_boost_files::trace::{Event, Recording};
use pinlane_report::TraceFinding;

use super::costs::Costs;
use super::place;

/// One thing that may be wrong.
struct Mistake {
    id: &'static str,
    title: &'static str,
    remedy: &'static str,
    find: fn(&Recording, &Costs<'_>) -> Evidence,
}

const MISTAKES: [&[Mistake]; 4] = [
    pageable::MISTAKES,
    pinning::MISTAKES,
    small_copies::MISTAKES,
    streams::MISTAKES,
];

/// The calls that have it.
#[derive(Default, Debug, PartialEq)]
struct Evidence {
    sites: BTreeSet<u32>,
    calls: u64,
    bytes: u64,
    lost_ns: Option<u64>,
}

impl Evidence {
    fn add(&mut self, site: u32, calls: u64, bytes: u64, lost_ns: Option<u64>) {
        self.sites.insert(site);
        self.merge(&Self {
            sites: BTreeSet::new(),
            calls,
            bytes,
            lost_ns,
        });
    }

    fn merge(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.bytes = self.bytes.saturating_add(other.bytes);
        if let Some(ns) = other.lost_ns {
            self.lost_ns = Some(self.lost_ns.unwrap_or(0).saturating_add(ns));
        }
    }

    fn add_event(&mut self, event: &Event, lost_ns: Option<u64>) {
        self.add(event.site, 1, event.bytes, lost_ns);
    }
}

/// What is wrong in any of the processes, the most time lost first.
pub(super) fn findings(recordings: &[Recording], costs: &Costs<'_>) -> Vec<TraceFinding> {
    let all = MISTAKES.iter().copied().flatten();
    let mut findings: Vec<_> = all
        .filter_map(|mistake| finding(mistake, recordings, costs))
        .collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.lost_ns));
    findings
}

fn finding(mistake: &Mistake, recordings: &[Recording], costs: &Costs<'_>) -> Option<TraceFinding> {
    let mut sum = Evidence::default();
    let mut places: Vec<String> = Vec::new();
    for recording in recordings {
        let found = (mistake.find)(recording, costs);
        for site in &found.sites {
            let frames = recording
                .sites
                .get(*site as usize)
                .map_or(&[][..], |site| &site.frames);
            let place = place::place(frames);
            if !places.contains(&place) {
                places.push(place);
            }
        }
        sum.merge(&found);
    }
    (sum.calls > 0).then_some(TraceFinding {
        id: mistake.id,
        title: mistake.title,
        calls: sum.calls,
        bytes: sum.bytes,
        lost_ns: sum.lost_ns,
        places,
        remedy: mistake.remedy,
    })
}

/// The events of each thread, in order.
fn threads(recording: &Recording) -> Vec<Vec<&Event>> {
    let mut threads: std::collections::BTreeMap<u32, Vec<&Event>> = Default::default();
    for event in &recording.events {
        threads.entry(event.thread).or_default().push(event);
    }
    threads.into_values().collect()
}

/// Whether a copy needs no staging by the driver.
fn is_page_locked(event: &Event) -> bool {
    use pinlane_boost_files::trace::HostMemory::{Pinned, Registered, WriteCombined};
    matches!(event.memory, Pinned | Registered | WriteCombined)
}

/// The sum of times; `None` if any is unknown. Times of a damaged trace can be anything.
fn sum_ns(mut times: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    times.try_fold(0_u64, |sum, ns| Some(sum.saturating_add(ns?)))
}
