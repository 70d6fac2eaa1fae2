//! The virtual clock: exact, and the same on every machine.

mod common;

use common::{plain, rig};
use pinlane_driver::{CopyOp, HostPtr, Place};
use pinlane_sim::Sim;
use std::time::Duration;

const MIB: usize = 1 << 20;

/// Virtual nanoseconds that `work` takes.
fn elapsed_ns(sim: &Sim, work: impl FnOnce()) -> u64 {
    let start_ns = sim.now_ns();
    work();
    sim.now_ns() - start_ns
}

#[test]
fn a_copy_takes_the_time_of_the_profile() {
    let rig = plain();
    let stream = rig.stream();
    let bytes = 12_000_000;
    let (source, device) = (rig.pinned(bytes), rig.device(bytes));
    let ns = elapsed_ns(&rig.sim, || {
        rig.upload(source, device, bytes, stream).unwrap()
    });
    assert_eq!(ns, 2_000, "submitting");
    let ns = elapsed_ns(&rig.sim, || rig.driver.stream_synchronize(stream).unwrap());
    // The copy takes 2.5 us and 1 ms from its submission, then the thread wakes in 3 us. The 500 ns
    // of entering the call pass meanwhile.
    assert_eq!(ns, 1_002_500 + 3_000);
    let ns = elapsed_ns(&rig.sim, || rig.driver.stream_synchronize(stream).unwrap());
    assert_eq!(ns, 500, "nothing to wait for");
}

#[test]
fn the_classic_figures_follow_from_the_profile() {
    // Without checks: hashing 256 MiB is slow without optimisation.
    let rig = rig(Sim::builder().checks(false));
    let bytes = 256 * MIB;
    let device = rig.device(bytes);
    let mut pageable = vec![0_u8; bytes];
    let pinned = rig.pinned(bytes);
    let figure = |host: HostPtr| {
        let copy = CopyOp {
            target: Place::Device(device),
            source: Place::Host(host),
            bytes,
        };
        // SAFETY: both ends hold that many bytes, and the call waits.
        let ns = elapsed_ns(&rig.sim, || unsafe { rig.driver.copy(copy).unwrap() });
        bytes as f64 / ns as f64
    };
    let slow = figure(HostPtr::new(pageable.as_mut_ptr()).unwrap());
    let fast = figure(pinned);
    assert_eq!(
        format!("{slow:.1} {fast:.1} {:.2}", fast / slow),
        "6.0 12.0 2.00"
    );
}

#[test]
fn engines_serve_in_order_of_readiness() {
    let rig = plain();
    let streams = [rig.non_blocking_stream(), rig.non_blocking_stream()];
    let (source, device) = (rig.pinned(MIB), rig.device(4 * MIB));
    for round in 0..2 {
        for (index, &stream) in streams.iter().enumerate() {
            let target = device.offset((round * 2 + index) * MIB);
            rig.upload(source, target, MIB, stream).unwrap();
        }
    }
    rig.driver.synchronize().unwrap();
    let spans = rig.sim.timeline();
    assert_eq!(
        spans.iter().map(|span| span.sequence).collect::<Vec<_>>(),
        [1, 2, 3, 4]
    );
    for pair in spans.windows(2) {
        assert_eq!(pair[0].end_ns, pair[1].start_ns, "one engine, back to back");
    }
}

#[test]
fn pinning_costs_by_size() {
    let rig = plain();
    let ns = elapsed_ns(&rig.sim, || {
        rig.pinned(2 * MIB);
    });
    assert_eq!(ns, 100_000 + 2 * 500_000);
}

#[test]
fn a_timed_wait_moves_the_clock_by_at_most_its_timeout() {
    let rig = plain();
    let stream = rig.stream();
    let event = rig.event();
    let bytes = 12_000_000;
    let (source, device) = (rig.pinned(bytes), rig.device(bytes));
    rig.upload(source, device, bytes, stream).unwrap();
    rig.driver.event_record(event, stream).unwrap();
    let wait = |timeout_us| {
        let timeout = Duration::from_micros(timeout_us);
        rig.driver.event_wait_timeout(event, timeout).unwrap()
    };
    let ns = elapsed_ns(&rig.sim, || assert!(!wait(100)));
    assert_eq!(ns, 500 + 100_000);
    let ns = elapsed_ns(&rig.sim, || assert!(wait(u64::MAX)));
    assert!(ns < 1_000_000);
    let ns = elapsed_ns(&rig.sim, || assert!(wait(0)));
    assert_eq!(ns, 500);
    rig.sim.hold();
    rig.driver.event_record(event, stream).unwrap();
    let ns = elapsed_ns(&rig.sim, || assert!(!wait(7)));
    assert_eq!(ns, 500 + 7_000);
    rig.sim.release();
}

#[test]
fn the_same_program_gives_the_same_timeline() {
    let run = |name: &str| {
        let rig = rig(Sim::builder().profile(common::profile(name)));
        let (a, b) = (rig.non_blocking_stream(), rig.stream());
        let event = rig.event();
        let (source, target) = (rig.pinned(MIB), rig.pinned(MIB));
        let device = rig.device(MIB);
        for i in 0..20 {
            let bytes = 1 + i * 5_000;
            rig.upload(source, device, bytes, a).unwrap();
            rig.driver.event_record(event, a).unwrap();
            rig.driver.stream_wait_event(b, event).unwrap();
            rig.download(device, target, bytes, b).unwrap();
        }
        rig.driver.synchronize().unwrap();
        (rig.sim.timeline(), rig.sim.trace_hash(), rig.sim.now_ns())
    };
    for name in ["pcie3-x16", "h200", "null"] {
        let (timeline, hash, now_ns) = run(name);
        assert_eq!(timeline.len(), 40);
        assert_eq!((timeline, hash, now_ns), run(name));
    }
    assert_ne!(run("pcie3-x16").1, run("h200").1);
}

#[test]
fn polling_ends_even_if_a_poll_is_free() {
    let mut profile = common::profile("pcie3-x16");
    profile.calls.query_ns = 0;
    let rig = rig(Sim::builder().profile(profile));
    let stream = rig.stream();
    let (source, device) = (rig.pinned(MIB), rig.device(MIB));
    rig.upload(source, device, MIB, stream).unwrap();
    let mut polls = 0;
    while !rig.driver.stream_query(stream).unwrap() {
        polls += 1;
    }
    assert_eq!(polls, 1);
}

#[test]
fn the_timeline_is_recorded_by_default() {
    for keep in [true, false] {
        let rig = rig(Sim::builder().record_timeline(keep));
        let (source, device) = (rig.pinned(MIB), rig.device(MIB));
        rig.upload(source, device, MIB, rig.stream()).unwrap();
        rig.driver.synchronize().unwrap();
        assert_eq!(rig.sim.timeline().len(), usize::from(keep));
    }
}

#[test]
fn polling_advances_time() {
    let rig = plain();
    let stream = rig.stream();
    let bytes = 12_000_000;
    let (source, device) = (rig.pinned(bytes), rig.device(bytes));
    rig.upload(source, device, bytes, stream).unwrap();
    let mut polls = 0;
    while !rig.driver.stream_query(stream).unwrap() {
        polls += 1;
    }
    // 1 ms at 500 ns a poll would be 2000 polls.
    assert!((1..50).contains(&polls), "{polls} polls");
    assert!(rig.sim.now_ns() > 1_000_000);
}
