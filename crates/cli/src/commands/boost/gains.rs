//! What boost gained: the library's counters as a report.

use std::ffi::OsString;

use pinlane_boost_files::{Counter, Counters, Direction, PlainReason, SIZE_CLASSES};
use pinlane_model::{HostKind, Profile};
use pinlane_report::{Boost, BoostReason, BoostRow, Origin, Route};

use crate::command_context::CommandContext;
use crate::preload;

/// The report. Times of a simulated run are computed, not measured.
pub(crate) fn report(
    command: &[OsString],
    context: &CommandContext<'_>,
    counters: &Counters,
) -> Boost {
    let (origin, profile) = preload::machine(context.device);
    let rows = Direction::ALL.map(|direction| row(direction, counters, &origin, profile.as_ref()));
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    Boost {
        origin,
        command: words.join(" "),
        copies: counters.copies_seen(),
        other_copies: counters.get(Counter::OtherCopies),
        boosted: rows.into_iter().filter(|row| row.copies > 0).collect(),
        left_to_driver: PlainReason::ALL
            .map(|reason| left(reason, counters))
            .into_iter()
            .filter(|it| it.copies > 0)
            .collect(),
        pinned_allocations: counters.get(Counter::PinnedAllocations),
        pinned_bytes: counters.get(Counter::PinnedBytes),
        profile: profile.map(|profile| profile.name),
    }
}

fn row(
    direction: Direction,
    counters: &Counters,
    origin: &Origin,
    profile: Option<&Profile>,
) -> BoostRow {
    let (route, model) = match direction {
        Direction::Upload => (Route::H2d, pinlane_model::Direction::HostToDevice),
        Direction::Download => (Route::D2h, pinlane_model::Direction::DeviceToHost),
    };
    let computed = |cost: &dyn Fn(u64) -> Option<u64>| -> Option<u64> {
        let per_class = (0..SIZE_CLASSES).map(|class| {
            let copies = counters.get(Counter::BoostedCopies(direction, class));
            let bytes = counters.get(Counter::BoostedBytes(direction, class));
            match copies {
                0 => Some(0),
                copies => Some(copies * cost(bytes / copies)?),
            }
        });
        per_class.sum()
    };
    let by_driver = |bytes| Some(profile?.copy_ns(model, HostKind::Pageable, bytes));
    let by_express = |bytes| Some(profile?.express.as_ref()?.ns(model, bytes));
    BoostRow {
        route,
        copies: counters.boosted(Counter::BoostedCopies, direction),
        bytes: counters.boosted(Counter::BoostedBytes, direction),
        express_ns: match origin.is_measured() {
            true => Some(counters.boosted(Counter::BoostedNs, direction)),
            false => computed(&by_express),
        },
        driver_ns: computed(&by_driver),
    }
}

fn left(reason: PlainReason, counters: &Counters) -> BoostReason {
    let sum = |counter: fn(Direction, PlainReason) -> Counter| {
        let both = Direction::ALL.map(|direction| counters.get(counter(direction, reason)));
        both.iter().sum()
    };
    BoostReason {
        reason: match reason {
            PlainReason::Small => "too small to gain",
            PlainReason::PageLocked => "pinned already",
            PlainReason::CoherentDevice => "the device reads ordinary memory itself",
            PlainReason::Capturing => "captured into a graph",
            PlainReason::NotUnderstood => "off, or memory of an unknown kind",
            PlainReason::ExpressFailed => "the express lane failed",
        },
        copies: sum(Counter::PlainCopies),
        bytes: sum(Counter::PlainBytes),
    }
}
