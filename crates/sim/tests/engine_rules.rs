//! Engine rules on the virtual clock, with times computed by hand.

mod common;

use common::{Rig, rig};
use pinlane_model::{CostCurve, Profile};
use pinlane_sim::{Engine, Sim};

/// A link that moves one byte per nanosecond, and takes 50% longer while both directions are busy. A
/// submission takes 1000 ns, event calls are free.
fn slow_link(handover_ns: u64) -> Rig {
    let mut profile: Profile = common::profile("pcie3-x16");
    for costs in [&mut profile.h2d, &mut profile.d2h] {
        costs.pinned = CostCurve::straight(0, 1_000_000_000);
    }
    profile.both_ways_percent = 150;
    profile.d2d_bytes_per_s = 1_000_000_000;
    profile.kernel.launch_ns = 0;
    profile.calls.submit_ns = 1_000;
    profile.calls.event_ns = 0;
    profile.device.handover_ns = handover_ns;
    rig(Sim::builder().profile(profile).checks(false))
}

/// The timeline relative to `zero_ns`, in order of submission.
fn spans(rig: &Rig, zero_ns: u64) -> Vec<(Engine, u64, u64)> {
    let mut spans = rig.sim.timeline();
    spans.sort_by_key(|span| span.sequence);
    spans
        .iter()
        .map(|span| (span.engine, span.start_ns - zero_ns, span.end_ns - zero_ns))
        .collect()
}

const UP: Engine = Engine::HostToDevice(0);
const DOWN: Engine = Engine::DeviceToHost(0);
const KERNEL: Engine = Engine::Compute;

#[test]
fn directions_slow_each_other_only_while_both_are_busy() {
    let rig = slow_link(0);
    let (up, down) = (rig.non_blocking_stream(), rig.non_blocking_stream());
    let (host, device) = (rig.pinned(200_000), rig.device(200_000));
    let zero_ns = rig.sim.now_ns();
    rig.upload(host, device, 100_000, up).unwrap();
    rig.download(device, host, 50_000, down).unwrap();
    rig.driver.synchronize().unwrap();
    // The upload runs alone for 1,000 ns. Then both run at two thirds: the download takes 75,000,
    // while the upload does 50,000. It does the remaining 49,000 alone.
    let expected = [(UP, 1_000, 125_000 + 1_000), (DOWN, 2_000, 77_000)];
    assert_eq!(spans(&rig, zero_ns), expected);
    let wake_ns = 3_000;
    assert_eq!(rig.sim.now_ns() - zero_ns, 126_000 + wake_ns);
}

#[test]
fn a_longer_copy_slows_the_other_direction_throughout() {
    let rig = slow_link(0);
    let (up, down) = (rig.non_blocking_stream(), rig.non_blocking_stream());
    let (host, device) = (rig.pinned(200_000), rig.device(200_000));
    let zero_ns = rig.sim.now_ns();
    rig.upload(host, device, 100_000, up).unwrap();
    for _ in 0..2 {
        rig.download(device, host, 20_000, down).unwrap();
    }
    rig.driver.synchronize().unwrap();
    // Both run from 2,000 to 62,000; the upload has done 1,000 + 40,000 by then.
    let expected = [
        (UP, 1_000, 121_000),
        (DOWN, 2_000, 32_000),
        (DOWN, 32_000, 62_000),
    ];
    assert_eq!(spans(&rig, zero_ns), expected);
}

#[test]
fn a_held_link_continues_where_it_was() {
    let rig = slow_link(0);
    let (up, down) = (rig.non_blocking_stream(), rig.non_blocking_stream());
    let (host, device) = (rig.pinned(200_000), rig.device(200_000));
    let zero_ns = rig.sim.now_ns();
    rig.upload(host, device, 100_000, up).unwrap();
    rig.download(device, host, 20_000, down).unwrap();
    rig.sim.hold();
    rig.sim.host_work(48_000);
    rig.sim.release();
    rig.driver.synchronize().unwrap();
    // The download would end at 32,000 and is held until 50,000; the upload has done 1,000 + 32,000
    // by then.
    let expected = [(UP, 1_000, 117_000), (DOWN, 2_000, 50_000)];
    assert_eq!(spans(&rig, zero_ns), expected);
}

#[test]
fn another_engine_starts_after_a_handover() {
    let rig = slow_link(700);
    let stream = rig.non_blocking_stream();
    let (host, device) = (rig.pinned(200_000), rig.device(200_000));
    let zero_ns = rig.sim.now_ns();
    rig.upload(host, device, 10_000, stream).unwrap();
    rig.upload(host, device, 10_000, stream).unwrap();
    fill(&rig, device, 5_000, stream);
    rig.download(device, host, 10_000, stream).unwrap();
    rig.driver.synchronize().unwrap();
    let expected = [
        (UP, 1_000, 11_000),
        (UP, 11_000, 21_000),
        (KERNEL, 21_700, 26_700),
        (DOWN, 27_400, 37_400),
    ];
    assert_eq!(spans(&rig, zero_ns), expected);
}

#[test]
fn a_finished_handover_delays_nothing() {
    let rig = slow_link(700);
    let stream = rig.non_blocking_stream();
    let (host, device) = (rig.pinned(200_000), rig.device(200_000));
    let zero_ns = rig.sim.now_ns();
    rig.upload(host, device, 10_000, stream).unwrap();
    rig.sim.host_work(9_500);
    fill(&rig, device, 5_000, stream); // 500 ns after the end
    rig.sim.host_work(10_000);
    rig.download(device, host, 10_000, stream).unwrap(); // long after it
    rig.driver.synchronize().unwrap();
    let expected = [
        (UP, 1_000, 11_000),
        (KERNEL, 11_700, 16_700),
        (DOWN, 22_500, 32_500),
    ];
    assert_eq!(spans(&rig, zero_ns), expected);
}

#[test]
fn an_event_delays_only_by_its_own_dependencies() {
    let rig = slow_link(700);
    let (a, b, c) = (
        rig.non_blocking_stream(),
        rig.non_blocking_stream(),
        rig.non_blocking_stream(),
    );
    let event = rig.event();
    let (host, device) = (rig.pinned(200_000), rig.device(200_000));
    let zero_ns = rig.sim.now_ns();
    rig.upload(host, device, 10_000, a).unwrap();
    rig.driver.event_record(event, a).unwrap();
    rig.upload(host, device, 10_000, a).unwrap();
    rig.driver.stream_wait_event(b, event).unwrap();
    fill(&rig, device, 1_000, b);
    rig.sim.host_work(8_200); // the event has fired, the hand-over is not over
    rig.driver.stream_wait_event(c, event).unwrap();
    rig.download(device, host, 3_000, c).unwrap();
    rig.driver.synchronize().unwrap();
    let expected = [
        (UP, 1_000, 11_000),
        // Both directions from 12,200 to 16,700: the upload does 3,000 in that time.
        (UP, 11_000, 22_500),
        (KERNEL, 11_700, 12_700),
        (DOWN, 12_200, 16_700),
    ];
    assert_eq!(spans(&rig, zero_ns), expected);
}

#[test]
fn handovers_apply_to_the_default_stream() {
    let rig = slow_link(700);
    let (stream, default) = (rig.stream(), rig.driver.default_stream());
    let (host, device) = (rig.pinned(200_000), rig.device(200_000));
    let zero_ns = rig.sim.now_ns();
    rig.upload(host, device, 10_000, stream).unwrap();
    fill(&rig, device, 1_000, default);
    rig.download(device, host, 3_000, stream).unwrap();
    rig.driver.synchronize().unwrap();
    let expected = [
        (UP, 1_000, 11_000),
        (KERNEL, 11_700, 12_700),
        (DOWN, 13_400, 16_400),
    ];
    assert_eq!(spans(&rig, zero_ns), expected);
}

/// A fill, which takes one nanosecond per byte.
fn fill(
    rig: &Rig,
    device: pinlane_driver::DevicePtr,
    bytes: usize,
    stream: pinlane_driver::StreamHandle,
) {
    // SAFETY: tests pass device memory of at least that size.
    unsafe {
        rig.driver.memset_async(device, 0, bytes, stream).unwrap();
    }
}
