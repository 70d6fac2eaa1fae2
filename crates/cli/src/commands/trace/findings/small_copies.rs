//! Many copies that could be one.

use pinlane_boost_files::trace::{Event, Operation, Recording, Route};

use super::{Evidence, Mistake, sum_ns, threads};
use crate::commands::trace::costs::Costs;

pub(super) const MISTAKES: &[Mistake] = &[Mistake {
    id: "small_copies",
    title: "Many small copies in a row that could be one",
    remedy: "Gather the data in one pinned buffer and copy it at once; each copy costs microseconds whatever its size.",
    find: small_copies,
}];

/// Up to this size the call costs more than the bytes.
const SMALL_BYTES: u64 = 16 << 10;

/// After a longer time the data of the next copy did not exist yet.
const ROW_GAP_NS: u64 = 1_000_000;

/// Shorter rows are not worth a change.
const ROW: usize = 16;

fn small_copies(recording: &Recording, costs: &Costs<'_>) -> Evidence {
    let mut found = Evidence::default();
    for events in threads(recording) {
        let rows = events.chunk_by(|first, second| is_small(first) && is_next(first, second));
        for row in rows.filter(|row| row.len() >= ROW) {
            let bytes: u64 = row.iter().map(|event| event.bytes).sum();
            let now_ns = sum_ns(row.iter().map(|event| costs.event_ns(event)));
            let at_once_ns = costs.page_locked_copy_ns(row[0].route, bytes).unwrap_or(0);
            let mut lost_ns = now_ns.map(|ns| ns.saturating_sub(at_once_ns));
            for event in row {
                found.add_event(event, lost_ns.take());
            }
        }
    }
    found
}

fn is_small(event: &Event) -> bool {
    let crosses = matches!(event.route, Route::Upload | Route::Download);
    event.operation == Operation::Copy && crosses && event.bytes <= SMALL_BYTES
}

fn is_next(first: &Event, second: &Event) -> bool {
    let same = first.route == second.route && first.stream == second.stream;
    let end_ns = first.start_ns.saturating_add(first.ns);
    let in_a_row = second.start_ns.saturating_sub(end_ns) <= ROW_GAP_NS;
    is_small(second) && same && in_a_row && second.launches == 0
}

#[cfg(test)]
mod tests {
    use pinlane_boost_files::trace::HostMemory::Pageable;

    use super::super::sample::{Sample, ids};
    use super::*;

    #[test]
    fn small_copies_in_a_row() {
        let copies = |count, bytes, launches| {
            let mut sample = Sample::default();
            for _ in 0..count {
                sample.copy(Route::Upload, Pageable, bytes).launches = launches;
            }
            ids(&sample)
        };
        assert_eq!(copies(20, 256, 0), ["small_copies"]);
        assert!(copies(5, 256, 0).is_empty(), "few");
        assert!(copies(20, 1 << 20, 0).is_empty(), "large");
        assert!(copies(20, 256, 1).is_empty(), "kernels between them");
        let mut now_and_then = Sample::default();
        for _ in 0..20 {
            now_and_then.copy(Route::Upload, Pageable, 256);
            now_and_then.pause(2 * ROW_GAP_NS);
        }
        assert!(ids(&now_and_then).is_empty(), "long after each other");
    }
}
