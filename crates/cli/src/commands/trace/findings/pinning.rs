//! Pinned memory and registrations: too often, wrongly released, never released.

use std::collections::BTreeMap;

use pinlane_boost_files::trace::{Event, Operation, Recording};

use super::{Evidence, Mistake};
use crate::commands::trace::costs::Costs;

pub(super) const MISTAKES: &[Mistake] = &[
    Mistake {
        id: "registered_again",
        title: "The same memory registered again and again",
        remedy: "Register it once and keep it registered, or allocate it pinned.",
        find: registered_again,
    },
    Mistake {
        id: "allocation_in_loop",
        title: "Pinned memory allocated and freed in a loop",
        remedy: "Allocate the buffer once before the loop, or take it from a pool.",
        find: allocation_in_loop,
    },
    Mistake {
        id: "wrong_release",
        title: "Page-locked memory released in the wrong way",
        remedy: "Free allocated memory with cuMemFreeHost, and registered memory with cuMemHostUnregister and the address that \
                 was registered.",
        find: wrong_release,
    },
    Mistake {
        id: "left_at_exit",
        title: "Pinned memory or registrations left at exit",
        remedy: "Release them before the context goes away. Caches of frameworks keep pinned memory on purpose.",
        find: left_at_exit,
    },
];

/// Results of a release with the wrong call or a wrong address.
const INVALID_VALUE: u32 = 1;
const NOT_REGISTERED: u32 = 713;

/// Fewer are a start-up, not a habit.
const HABIT: usize = 3;

fn registered_again(recording: &Recording, costs: &Costs<'_>) -> Evidence {
    let mut by_place: BTreeMap<(u64, u64), Vec<&Event>> = BTreeMap::new();
    for event in succeeded(recording, Operation::Register) {
        let place = (event.host, event.bytes);
        by_place.entry(place).or_default().push(event);
    }
    let mut found = Evidence::default();
    for events in by_place.values().filter(|events| events.len() >= HABIT) {
        events
            .iter()
            .skip(1)
            .for_each(|event| found.add_event(event, costs.event_ns(event)));
    }
    found
}

/// Allocations of a place that follow a free since its last one.
fn allocation_in_loop(recording: &Recording, costs: &Costs<'_>) -> Evidence {
    let mut frees = 0;
    let mut frees_before: BTreeMap<u32, usize> = BTreeMap::new();
    let mut repeated: BTreeMap<u32, Vec<&Event>> = BTreeMap::new();
    for event in recording.events.iter().filter(|event| event.result == 0) {
        let site = event.site;
        if event.operation == Operation::Free {
            frees += 1;
        } else if event.operation == Operation::Allocate {
            let before = frees_before.insert(site, frees);
            if before.is_some_and(|before| before < frees) {
                repeated.entry(site).or_default().push(event);
            }
        }
    }
    let mut found = Evidence::default();
    for events in repeated.values().filter(|events| events.len() >= HABIT) {
        events
            .iter()
            .for_each(|event| found.add_event(event, costs.event_ns(event)));
    }
    found
}

fn wrong_release(recording: &Recording, _: &Costs<'_>) -> Evidence {
    let mut found = Evidence::default();
    for (index, site) in (0..).zip(&recording.sites) {
        let releases = matches!(site.operation, Operation::Free | Operation::Unregister);
        // Others are of a context that is gone, or has failed before.
        let is_wrong = [INVALID_VALUE, NOT_REGISTERED].contains(&site.totals.failure_code);
        if releases && is_wrong {
            found.add(index, site.totals.failures, 0, None);
        }
    }
    found
}

/// Only of processes that ended by themselves, and only if every call is known.
fn left_at_exit(recording: &Recording, _: &Costs<'_>) -> Evidence {
    let mut found = Evidence::default();
    if recording.end_ns.is_none() || recording.calls_not_stored() > 0 {
        return found;
    }
    let mut held: BTreeMap<u64, &Event> = BTreeMap::new();
    for event in recording.events.iter().filter(|event| event.result == 0) {
        match event.operation {
            Operation::Allocate | Operation::Register => {
                held.insert(event.host, event);
            }
            Operation::Free | Operation::Unregister => {
                held.remove(&event.host);
            }
            _ => (),
        }
    }
    held.values().for_each(|event| found.add_event(event, None));
    found
}

fn succeeded(recording: &Recording, operation: Operation) -> impl Iterator<Item = &Event> {
    recording
        .events
        .iter()
        .filter(move |event| event.operation == operation && event.result == 0)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{Sample, ids};
    use super::*;

    #[test]
    fn registering_again_and_again() {
        let register = |addresses: &[u64]| {
            let mut sample = Sample::default();
            for address in addresses {
                sample.host(Operation::Register, *address, 4096);
                sample.host(Operation::Unregister, *address, 4096);
            }
            ids(&sample)
        };
        assert_eq!(register(&[0x1000; 4]), ["registered_again"]);
        assert!(register(&[0x1000, 0x2000, 0x3000, 0x4000]).is_empty());
        let mut others = Sample::default();
        for pages in 1..6 {
            others.host(Operation::Register, 0x1000, pages * 4096);
            others.host(Operation::Unregister, 0x1000, pages * 4096);
        }
        assert!(ids(&others).is_empty(), "other memory at the same address");
    }

    #[test]
    fn allocating_in_a_loop() {
        let mut looped = Sample::default();
        for address in [1, 2, 3, 4, 5] {
            looped.host(Operation::Allocate, address, 4096);
            looped.host(Operation::Free, address, 4096);
        }
        assert_eq!(ids(&looped), ["allocation_in_loop"]);
        let mut at_once = Sample::default();
        for operation in [Operation::Allocate, Operation::Free] {
            for address in [1, 2, 3, 4, 5] {
                at_once.host(operation, address, 4096);
            }
        }
        assert!(ids(&at_once).is_empty());
    }

    #[test]
    fn releasing_in_the_wrong_way() {
        let release = |result| {
            let mut sample = Sample::default();
            sample.host(Operation::Unregister, 0x1000, 4096).result = result;
            ids(&sample)
        };
        assert_eq!(release(713), ["wrong_release"]);
        assert_eq!(release(1), ["wrong_release"]);
        assert!(release(0).is_empty());
        assert!(release(709).is_empty(), "the context is gone");
    }

    #[test]
    fn leaving_memory_at_exit() {
        let mut sample = Sample::default();
        sample.host(Operation::Allocate, 0x1000, 4096);
        assert_eq!(ids(&sample), ["left_at_exit"]);
        sample.was_killed = true;
        assert!(ids(&sample).is_empty());
        sample.was_killed = false;
        sample.host(Operation::Free, 0x1000, 4096);
        assert!(ids(&sample).is_empty());
    }
}
