//! Waits and streams that keep copies from overlapping.

use std::collections::BTreeSet;

use pinlane_boost_files::trace::{Event, Operation, Recording, Route};

use super::{Evidence, Mistake, is_page_locked, sum_ns, threads};
use crate::commands::trace::costs::Costs;

pub(super) const MISTAKES: &[Mistake] = &[
    Mistake {
        id: "wait_after_copy",
        title: "A wait right after an asynchronous copy",
        remedy: "Submit the next work first and wait where the data is needed, or use two buffers in turn.",
        find: wait_after_copy,
    },
    Mistake {
        id: "one_stream",
        title: "All copies in both directions on one stream, so none of them overlap",
        remedy: "Upload on one stream and download on another, ordered by events.",
        find: one_stream,
    },
    Mistake {
        id: "legacy_stream",
        title: "Asynchronous copies on the legacy default stream, which waits for all blocking streams",
        remedy: "Use a stream of your own, created with CU_STREAM_NON_BLOCKING, or per-thread default streams.",
        find: legacy_stream,
    },
];

/// Fewer are not worth a change.
const HABIT: usize = 4;

/// In a longer time the program may have done something useful.
const AT_ONCE_NS: u64 = 50_000;

/// The default stream that waits for others, by both of its handles.
const LEGACY: [u64; 2] = [0, 1];

/// The default stream of a thread.
const PER_THREAD: u64 = 2;

/// Flag of streams that the default stream does not wait for.
const NON_BLOCKING: u64 = 1;

/// Waits for nothing but a copy that was just submitted: no kernel was launched since the wait before.
fn wait_after_copy(recording: &Recording, costs: &Costs<'_>) -> Evidence {
    let mut waits: Vec<(&Event, &Event)> = Vec::new();
    for events in threads(recording) {
        let mut launched = false;
        let mut copied: Option<&Event> = None;
        let mut marked = None;
        for event in events {
            launched |= event.launches > 0;
            match event.operation {
                operation if operation.is_wait() => {
                    let copy = copied
                        .take()
                        .filter(|copy| !launched && waits_for(event, copy, marked));
                    waits.extend(copy.map(|copy| (copy, event)));
                    launched = false;
                }
                Operation::RecordEvent => marked = Some((event.other, event.stream)),
                Operation::Copy if event.is_async && is_page_locked(event) => {
                    (copied, marked) = (Some(event), None);
                }
                _ => copied = None,
            }
        }
    }
    let mut found = Evidence::default();
    if waits.len() >= HABIT {
        for (copy, wait) in waits {
            // Another thread may have launched something: no more than the copy takes.
            let computed_ns = costs.page_locked_copy_ns(copy.route, copy.bytes);
            let lost_ns = match costs.is_measured {
                true => computed_ns.map(|ns| ns.min(wait.ns)),
                false => computed_ns,
            };
            found.add_event(copy, lost_ns);
        }
    }
    found
}

/// `marked` is the event that was recorded after the copy, and its stream.
fn waits_for(wait: &Event, copy: &Event, marked: Option<(u64, u64)>) -> bool {
    let end_ns = copy.start_ns.saturating_add(copy.ns);
    let same = match wait.operation {
        Operation::WaitForStream => wait.stream == copy.stream,
        Operation::WaitForEvent => marked == Some((wait.other, copy.stream)),
        _ => true,
    };
    same && wait.start_ns.saturating_sub(end_ns) <= AT_ONCE_NS
}

fn one_stream(recording: &Recording, costs: &Costs<'_>) -> Evidence {
    let mut found = Evidence::default();
    let copies: Vec<&Event> = asynchronous(recording)
        .filter(|event| is_page_locked(event))
        .collect();
    // One handle stands for the default streams of all threads.
    let streams: BTreeSet<(u64, u32)> = copies
        .iter()
        .map(|event| match event.stream {
            PER_THREAD => (PER_THREAD, event.thread),
            stream => (stream, 0),
        })
        .collect();
    let of = |route| copies.iter().filter(move |event| event.route == route);
    let [ups, downs] = [Route::Upload, Route::Download].map(|route| of(route).count());
    if streams.len() != 1 || ups < HABIT || downs < HABIT {
        return found;
    }
    let cost = |route| sum_ns(of(route).map(|event| costs.page_locked_copy_ns(route, event.bytes)));
    // The shorter direction could run beside the longer one.
    let mut lost_ns = cost(Route::Upload)
        .zip(cost(Route::Download))
        .map(|(up, down)| up.min(down));
    for event in copies {
        found.add_event(event, lost_ns.take());
    }
    found
}

fn legacy_stream(recording: &Recording, _: &Costs<'_>) -> Evidence {
    let mut found = Evidence::default();
    let has_others = recording
        .events
        .iter()
        .any(|event| event.operation == Operation::CreateStream && event.other & NON_BLOCKING == 0);
    if has_others {
        let legacy = asynchronous(recording).filter(|event| LEGACY.contains(&event.stream));
        legacy.for_each(|event| found.add_event(event, None));
    }
    found
}

/// Asynchronous copies between host and device.
fn asynchronous(recording: &Recording) -> impl Iterator<Item = &Event> {
    let crosses = |event: &&Event| matches!(event.route, Route::Upload | Route::Download);
    recording
        .events
        .iter()
        .filter(|event| event.is_async && event.operation.is_copy())
        .filter(crosses)
}

#[cfg(test)]
mod tests {
    use pinlane_boost_files::trace::HostMemory::Pinned;
    use pinlane_boost_files::trace::Route::{Download, Upload};

    use super::super::sample::{Sample, ids};
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn waiting_right_after_a_copy() {
        let run = |launches, wait_stream| {
            let mut sample = Sample::default();
            for _ in 0..5 {
                sample.copy(Upload, Pinned, MIB).on(7);
                let wait = sample.call(Operation::WaitForStream);
                (wait.stream, wait.launches) = (wait_stream, launches);
            }
            ids(&sample)
        };
        assert_eq!(run(0, 7), ["wait_after_copy"]);
        assert!(run(1, 7).is_empty(), "a kernel between them");
        assert!(run(0, 8).is_empty(), "for another stream");
    }

    #[test]
    fn waiting_for_the_event_after_a_copy() {
        let run = |recorded, pause_ns| {
            let mut sample = Sample::default();
            for _ in 0..5 {
                sample.copy(Upload, Pinned, MIB).on(7);
                let record = sample.call(Operation::RecordEvent);
                (record.other, record.stream) = (recorded, 7);
                sample.pause(pause_ns);
                sample.call(Operation::WaitForEvent).other = 50;
            }
            ids(&sample)
        };
        assert_eq!(run(50, 0), ["wait_after_copy"]);
        assert!(run(51, 0).is_empty(), "another event");
        assert!(
            run(50, 1_000_000).is_empty(),
            "work of the host between them"
        );
    }

    #[test]
    fn both_directions_on_one_stream() {
        let run = |down_stream| {
            let mut sample = Sample::default();
            for _ in 0..5 {
                sample.copy(Upload, Pinned, MIB).on(7);
                sample.copy(Download, Pinned, MIB).on(down_stream);
            }
            ids(&sample)
        };
        assert_eq!(run(7), ["one_stream"]);
        assert!(run(8).is_empty());
        let mut threads = Sample::default();
        for thread in [1, 2, 1, 2, 1, 2, 1, 2, 1, 2] {
            for route in [Upload, Download] {
                let copy = threads.copy(route, Pinned, MIB);
                copy.on(PER_THREAD);
                copy.thread = thread;
            }
        }
        assert!(ids(&threads).is_empty(), "each thread has its own");
    }

    #[test]
    fn the_legacy_default_stream() {
        let run = |stream, flags| {
            let mut sample = Sample::default();
            sample.call(Operation::CreateStream).other = flags;
            sample.copy(Upload, Pinned, MIB).on(7);
            sample.copy(Upload, Pinned, MIB).on(stream);
            ids(&sample)
        };
        assert_eq!(run(0, 0), ["legacy_stream"]);
        assert_eq!(run(1, 0), ["legacy_stream"]);
        assert!(run(2, 0).is_empty(), "the thread's own");
        assert!(run(0, NON_BLOCKING).is_empty(), "it waits for none of them");
        let mut alone = Sample::default();
        alone.copy(Upload, Pinned, MIB).on(0);
        assert!(
            ids(&alone).is_empty(),
            "there is no other stream to wait for"
        );
    }
}
