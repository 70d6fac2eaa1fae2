//! Stream order, events and the default stream: under the plain schedule and under adversaries.

mod common;

use common::{bytes_at, fill, plain, seeded};
use pinlane_driver::{ErrorKind, EventFlags, StreamFlags};

const BYTES: usize = common::BYTES;

#[test]
fn work_of_one_stream_runs_in_order() {
    for seed in common::seeds(50) {
        let rig = seeded(seed);
        let stream = rig.stream();
        let (first, second, back) = (rig.pinned(BYTES), rig.pinned(BYTES), rig.pinned(BYTES));
        let device = rig.device(BYTES);
        fill(first, BYTES, 1);
        fill(second, BYTES, 2);
        rig.upload(first, device, BYTES, stream).unwrap();
        rig.upload(second, device, BYTES, stream).unwrap();
        rig.download(device, back, BYTES, stream).unwrap();
        rig.driver.stream_synchronize(stream).unwrap();
        assert_eq!(bytes_at(back, BYTES), [2; BYTES], "seed {seed}");
        assert!(rig.sim.findings().is_empty(), "seed {seed}");
    }
}

#[test]
fn a_stream_waits_for_an_event_of_another() {
    for seed in common::seeds(50) {
        let rig = seeded(seed);
        let (producer, consumer) = (rig.non_blocking_stream(), rig.non_blocking_stream());
        let (source, back) = (rig.pinned(BYTES), rig.pinned(BYTES));
        let device = rig.device(BYTES);
        let event = rig.event();
        fill(source, BYTES, 7);
        rig.upload(source, device, BYTES, producer).unwrap();
        rig.driver.event_record(event, producer).unwrap();
        rig.driver.stream_wait_event(consumer, event).unwrap();
        rig.destroy_event(event); // the wait stays valid
        rig.download(device, back, BYTES, consumer).unwrap();
        rig.driver.stream_synchronize(consumer).unwrap();
        assert_eq!(bytes_at(back, BYTES), [7; BYTES], "seed {seed}");
    }
}

#[test]
fn adversaries_break_programs_without_the_wait() {
    let stale = common::seeds(50).filter(|&seed| {
        let rig = seeded(seed);
        let (producer, consumer) = (rig.non_blocking_stream(), rig.non_blocking_stream());
        let (source, back) = (rig.pinned(BYTES), rig.pinned(BYTES));
        let device = rig.device(BYTES);
        fill(source, BYTES, 7);
        rig.upload(source, device, BYTES, producer).unwrap();
        rig.download(device, back, BYTES, consumer).unwrap();
        rig.driver.synchronize().unwrap();
        bytes_at(back, BYTES) != [7; BYTES]
    });
    let stale = stale.count();
    assert!(
        (5..50).contains(&stale) || cfg!(miri),
        "{stale} of 50 seeds read too early"
    );
}

#[test]
fn a_wait_refers_to_the_recording_at_the_time_of_the_call() {
    let rig = plain();
    let (a, b) = (rig.non_blocking_stream(), rig.non_blocking_stream());
    let (source, device) = (rig.pinned(BYTES), rig.device(BYTES));
    let event = rig.event();
    rig.upload(source, device, BYTES, a).unwrap();
    rig.driver.event_record(event, a).unwrap();
    rig.driver.stream_wait_event(b, event).unwrap();
    let marker = rig.event();
    rig.driver.event_record(marker, b).unwrap();
    // Recorded again after much more work, which does not concern the wait of `b`.
    for _ in 0..8 {
        rig.upload(source, device, BYTES, a).unwrap();
    }
    rig.driver.event_record(event, a).unwrap();
    rig.driver.event_synchronize(marker).unwrap();
    assert!(!rig.driver.event_query(event).unwrap());
    rig.driver.event_synchronize(event).unwrap();
    assert!(rig.driver.event_query(event).unwrap());
}

#[test]
fn an_event_that_was_never_recorded_counts_as_fired() {
    let rig = plain();
    let stream = rig.stream();
    let event = rig.event();
    assert!(rig.driver.event_query(event).unwrap());
    rig.driver.event_synchronize(event).unwrap();
    rig.driver.stream_wait_event(stream, event).unwrap();
    assert!(rig.driver.stream_query(stream).unwrap());
    let error = rig.driver.event_elapsed_ns(event, event).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidHandle);
}

#[test]
fn elapsed_time_needs_timing_and_both_fired() {
    let rig = plain();
    let stream = rig.stream();
    let (start, end) = (rig.event(), rig.event());
    let (source, device) = (rig.pinned(12_000_000), rig.device(12_000_000));
    rig.driver.event_record(start, stream).unwrap();
    rig.upload(source, device, 12_000_000, stream).unwrap();
    rig.driver.event_record(end, stream).unwrap();
    let error = rig.driver.event_elapsed_ns(start, end).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotReady);
    rig.driver.event_synchronize(end).unwrap();
    // The copy is submitted 2 us after the first event has fired.
    let elapsed_ns = rig.driver.event_elapsed_ns(start, end).unwrap();
    assert_eq!(elapsed_ns, 2_000 + 2_500 + 1_000_000);
    assert_eq!(
        rig.driver.event_elapsed_ns(end, start).unwrap(),
        -elapsed_ns
    );
    let untimed = rig.driver.event_create(EventFlags::default()).unwrap();
    rig.driver.event_record(untimed, stream).unwrap();
    let error = rig.driver.event_elapsed_ns(start, untimed).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidHandle);
}

#[test]
fn the_default_stream_waits_for_blocking_streams_and_they_for_it() {
    for seed in common::seeds(50) {
        let rig = seeded(seed);
        let default = rig.driver.default_stream();
        let (before, after) = (rig.stream(), rig.stream());
        let (one, two, back) = (rig.pinned(BYTES), rig.pinned(BYTES), rig.pinned(BYTES));
        let device = rig.device(BYTES);
        fill(one, BYTES, 1);
        fill(two, BYTES, 2);
        rig.upload(one, device, BYTES, before).unwrap();
        rig.upload(two, device, BYTES, default).unwrap();
        rig.download(device, back, BYTES, after).unwrap();
        rig.driver.stream_synchronize(after).unwrap();
        assert_eq!(bytes_at(back, BYTES), [2; BYTES], "seed {seed}");
        assert!(rig.driver.stream_query(before).unwrap());
    }
}

#[test]
fn a_non_blocking_stream_does_not_wait_for_the_default_stream() {
    let rig = plain();
    let stream = rig.non_blocking_stream();
    let big = 64 << 20;
    let (source, back, device) = (rig.pinned(big), rig.pinned(BYTES), rig.device(big));
    rig.upload(source, device, big, rig.driver.default_stream())
        .unwrap();
    rig.download(device, back, BYTES, stream).unwrap();
    rig.driver.stream_synchronize(stream).unwrap();
    assert!(
        !rig.driver
            .stream_query(rig.driver.default_stream())
            .unwrap()
    );
    rig.driver.synchronize().unwrap();
}

#[test]
fn a_higher_priority_runs_first() {
    let rig = plain();
    let (least, greatest) = rig.driver.stream_priorities().unwrap();
    let stream = |priority| {
        let flags = StreamFlags {
            non_blocking: true,
            priority,
        };
        rig.driver.stream_create(flags).unwrap()
    };
    let (first, low, high) = (stream(least), stream(least), stream(greatest - 9));
    let (source, device) = (rig.pinned(1 << 20), rig.device(1 << 20));
    for stream in [first, low, high] {
        rig.upload(source, device, 1 << 20, stream).unwrap();
    }
    rig.driver.synchronize().unwrap();
    let order: Vec<_> = rig.sim.timeline().iter().map(|span| span.stream).collect();
    assert_eq!(order, [first, high, low].map(|stream| stream.raw()));
}

#[test]
fn work_released_by_an_event_competes_for_the_engine() {
    let rig = plain();
    let stream = |priority| {
        let flags = StreamFlags {
            non_blocking: true,
            priority,
        };
        rig.driver.stream_create(flags).unwrap()
    };
    let (low, middle, high) = (stream(0), stream(-1), stream(-2));
    let event = rig.event();
    let (source, device) = (rig.pinned(1 << 20), rig.device(1 << 20));
    rig.upload(source, device, 1 << 20, low).unwrap();
    rig.driver.event_record(event, low).unwrap();
    rig.upload(source, device, 1 << 20, middle).unwrap();
    rig.driver.stream_wait_event(high, event).unwrap();
    rig.upload(source, device, 1 << 20, high).unwrap();
    rig.driver.synchronize().unwrap();
    let order: Vec<_> = rig.sim.timeline().iter().map(|span| span.stream).collect();
    assert_eq!(order, [low, high, middle].map(|stream| stream.raw()));
}

#[test]
fn work_of_a_destroyed_stream_still_runs() {
    let rig = plain();
    let stream = rig.stream();
    let (source, device) = (rig.pinned(BYTES), rig.device(BYTES));
    fill(source, BYTES, 9);
    rig.upload(source, device, BYTES, stream).unwrap();
    rig.destroy_stream(stream);
    let error = rig.driver.stream_query(stream).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidHandle);
    rig.driver.synchronize().unwrap();
    assert_eq!(rig.device_bytes(device, BYTES), [9; BYTES]);
}

#[test]
fn a_long_queue_does_not_overflow_the_stack() {
    let rig = plain();
    let stream = rig.stream();
    let event = rig.event();
    rig.sim.hold();
    for _ in 0..if cfg!(miri) { 100 } else { 100_000 } {
        rig.driver.event_record(event, stream).unwrap();
    }
    rig.sim.release();
    rig.driver.stream_synchronize(stream).unwrap();
}
