//! Elapsed time between events.

use pinlane_driver::ErrorKind;

use crate::Outcome;
use crate::case::cases;
use crate::outcome::{check, check_error};
use crate::rig::Rig;

cases! {
    "timing/never-backwards" => never_backwards,
    "timing/parts-make-the-whole" => parts_make_the_whole,
    "timing/swapped-is-negative" => swapped,
    "timing/of-an-event-with-itself-is-zero" => with_itself,
    "timing/across-streams" => across_streams,
    "timing/not-ready-while-in-flight" => not_ready,
}

/// The error of rounding to the driver's unit.
const ROUNDING_NS: i64 = 20_000;

fn never_backwards(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let events = (0..10).map(|_| rig.timed_event());
    let events = events.collect::<Result<Vec<_>, _>>()?;
    for event in &events {
        rig.event_record(*event, stream)?;
        rig.spin(kernels, 100_000, stream)?;
    }
    rig.stream_synchronize(stream)?;
    for pair in events.windows(2) {
        let ns = rig.event_elapsed_ns(pair[0], pair[1])?;
        check!(ns >= 0, "{ns} ns from one event to the next");
    }
    Ok(())
}

fn parts_make_the_whole(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let (a, b, c) = (rig.timed_event()?, rig.timed_event()?, rig.timed_event()?);
    rig.event_record(a, stream)?;
    rig.spin(kernels, 3_000_000, stream)?;
    rig.event_record(b, stream)?;
    rig.spin(kernels, 1_000_000, stream)?;
    rig.record_and_wait(c, stream)?;
    let elapsed = |from, to| rig.event_elapsed_ns(from, to);
    let (parts, whole) = (elapsed(a, b)? + elapsed(b, c)?, elapsed(a, c)?);
    check!(
        (parts - whole).abs() <= ROUNDING_NS,
        "{parts} ns in two parts, {whole} ns as a whole"
    );
    Ok(())
}

fn swapped(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let (start, end) = (rig.timed_event()?, rig.timed_event()?);
    rig.event_record(start, stream)?;
    rig.spin(kernels, 2_000_000, stream)?;
    rig.record_and_wait(end, stream)?;
    let there = rig.event_elapsed_ns(start, end)?;
    let back = rig.event_elapsed_ns(end, start)?;
    check!(
        (there + back).abs() <= ROUNDING_NS,
        "{there} ns forward, {back} ns backward"
    );
    Ok(())
}

fn with_itself(rig: &Rig) -> Outcome {
    let event = rig.timed_event()?;
    rig.record_and_wait(event, rig.stream()?)?;
    let ns = rig.event_elapsed_ns(event, event)?;
    check!(ns == 0, "{ns} ns");
    Ok(())
}

fn across_streams(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let (one, other) = (rig.stream()?, rig.stream()?);
    let (start, end) = (rig.timed_event()?, rig.timed_event()?);
    rig.event_record(start, one)?;
    rig.stream_wait_event(other, start)?;
    rig.spin(kernels, 500_000, other)?;
    rig.record_and_wait(end, other)?;
    let ns = rig.event_elapsed_ns(start, end)?;
    check!(ns >= 0, "{ns} ns between events in order");
    Ok(())
}

fn not_ready(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let (start, end) = (rig.timed_event()?, rig.timed_event()?);
    rig.event_record(start, stream)?;
    let gate = rig.gate(stream)?;
    rig.event_record(end, stream)?;
    check_error!(rig.event_elapsed_ns(start, end), ErrorKind::NotReady);
    gate.open();
    rig.event_synchronize(end)?;
    let ns = rig.event_elapsed_ns(start, end)?;
    check!(ns >= 0, "{ns} ns");
    Ok(())
}
