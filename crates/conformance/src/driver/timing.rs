//! Elapsed time between events.

use pinlane_driver::ErrorKind;

use crate::outcome::{check, check_error};
use crate::{Case, Outcome, TestDevice};

pub(super) const CASES: &[Case] = &[
    Case::new("timing/never-backwards", never_backwards),
    Case::new("timing/parts-make-the-whole", parts_make_the_whole),
    Case::new("timing/swapped-is-negative", swapped),
    Case::new("timing/of-an-event-with-itself-is-zero", with_itself),
    Case::new("timing/across-streams", across_streams),
    Case::new("timing/not-ready-while-in-flight", not_ready),
];

/// The error of rounding to the driver's unit.
const ROUNDING_NS: i64 = 20_000;

fn never_backwards(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let events = (0..10)
        .map(|_| rig.timed_event())
        .collect::<Result<Vec<_>, _>>()?;
    for event in &events {
        rig.driver().event_record(*event, stream)?;
        rig.spin(kernels, 100_000, stream)?;
    }
    rig.driver().stream_synchronize(stream)?;
    for pair in events.windows(2) {
        let ns = rig.driver().event_elapsed_ns(pair[0], pair[1])?;
        check!(ns >= 0, "{ns} ns from one event to the next");
    }
    rig.close()
}

fn parts_make_the_whole(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let (a, b, c) = (rig.timed_event()?, rig.timed_event()?, rig.timed_event()?);
    rig.driver().event_record(a, stream)?;
    rig.spin(kernels, 3_000_000, stream)?;
    rig.driver().event_record(b, stream)?;
    rig.spin(kernels, 1_000_000, stream)?;
    rig.driver().event_record(c, stream)?;
    rig.driver().event_synchronize(c)?;
    let elapsed = |from, to| rig.driver().event_elapsed_ns(from, to);
    let (parts, whole) = (elapsed(a, b)? + elapsed(b, c)?, elapsed(a, c)?);
    check!(
        (parts - whole).abs() <= ROUNDING_NS,
        "{parts} ns in two parts, {whole} ns as a whole"
    );
    rig.close()
}

fn swapped(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let (start, end) = (rig.timed_event()?, rig.timed_event()?);
    rig.driver().event_record(start, stream)?;
    rig.spin(kernels, 2_000_000, stream)?;
    rig.driver().event_record(end, stream)?;
    rig.driver().event_synchronize(end)?;
    let there = rig.driver().event_elapsed_ns(start, end)?;
    let back = rig.driver().event_elapsed_ns(end, start)?;
    check!(
        (there + back).abs() <= ROUNDING_NS,
        "{there} ns forward, {back} ns backward"
    );
    rig.close()
}

fn with_itself(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let event = rig.timed_event()?;
    rig.driver().event_record(event, stream)?;
    rig.driver().event_synchronize(event)?;
    let ns = rig.driver().event_elapsed_ns(event, event)?;
    check!(ns == 0, "{ns} ns");
    rig.close()
}

fn across_streams(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let (one, other) = (rig.stream()?, rig.stream()?);
    let (start, end) = (rig.timed_event()?, rig.timed_event()?);
    rig.driver().event_record(start, one)?;
    rig.driver().stream_wait_event(other, start)?;
    rig.spin(kernels, 500_000, other)?;
    rig.driver().event_record(end, other)?;
    rig.driver().event_synchronize(end)?;
    let ns = rig.driver().event_elapsed_ns(start, end)?;
    check!(ns >= 0, "{ns} ns between events in order");
    rig.close()
}

fn not_ready(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let (start, end) = (rig.timed_event()?, rig.timed_event()?);
    rig.driver().event_record(start, stream)?;
    let gate = rig.gate(stream)?;
    rig.driver().event_record(end, stream)?;
    check_error!(
        rig.driver().event_elapsed_ns(start, end),
        ErrorKind::NotReady
    );
    gate.open();
    rig.driver().event_synchronize(end)?;
    let ns = rig.driver().event_elapsed_ns(start, end)?;
    check!(ns >= 0, "{ns} ns");
    rig.close()
}
