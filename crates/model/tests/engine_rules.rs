//! Engine rules, with times computed by hand.

use pinlane_model::Profile;
use pinlane_model::engine_rules::{
    EarliestStart, Engine, EngineKind, Engines, QueuePosition, Token,
};

const UP: EngineKind = EngineKind::HostToDevice;
const DOWN: EngineKind = EngineKind::DeviceToHost;
const COMPUTE: EngineKind = EngineKind::Compute;

fn engines(h2d: u32, d2h: u32, both_ways_percent: u64) -> Engines {
    let mut profile = Profile::builtin("pcie3-x16").unwrap();
    profile.device.h2d_engines = h2d;
    profile.device.d2h_engines = d2h;
    profile.both_ways_percent = both_ways_percent;
    Engines::new(&profile)
}

fn start(engines: &mut Engines, now_ns: u64, need: EngineKind, alone_ns: u64) -> Token {
    engines
        .start(now_ns, need, 0, alone_ns, 0)
        .expect("a free engine")
}

#[test]
fn a_running_copy_changes_speed_with_the_other_direction() {
    let mut engines = engines(1, 1, 125);
    let up = start(&mut engines, 0, UP, 1_000);
    assert_eq!(engines.end_ns(up), 1_000);
    let down = start(&mut engines, 200, DOWN, 400);
    // 800 left at 4/5, 400 at 4/5.
    assert_eq!(engines.end_ns(up), 1_200);
    assert_eq!(engines.end_ns(down), 700);
    assert_eq!(engines.next_end(), Some((700, down)));
    engines.finish(down, 700);
    assert_eq!(engines.end_ns(up), 1_100);
    let down = start(&mut engines, 1_000, DOWN, 400);
    assert_eq!(engines.end_ns(up), 1_125);
    engines.finish(up, 1_125);
    // 125 at 4/5 are 100; 300 are left.
    assert_eq!(engines.end_ns(down), 1_425);
}

#[test]
fn only_the_end_is_rounded_and_it_is_rounded_up() {
    let mut engines = engines(1, 1, 109);
    let up = start(&mut engines, 0, UP, 1_000_000);
    // A thousand short copies in the other direction, each followed by a pause: rounding their ends
    // does not change the work of the long one.
    let mut busy_ns = 0;
    for round in 0..1_000 {
        let down = start(&mut engines, round * 500, DOWN, 100);
        assert_eq!(engines.end_ns(down), round * 500 + 109);
        engines.finish(down, round * 500 + 109);
        busy_ns += 109;
    }
    let lost_ns = busy_ns - busy_ns * 100 / 109;
    assert_eq!(engines.end_ns(up), 1_000_000 + lost_ns);
    engines.finish(up, engines.end_ns(up));
    let up = start(&mut engines, 2_000_000, UP, 10);
    let down = start(&mut engines, 2_000_000, DOWN, 10);
    assert_eq!(engines.end_ns(up), 2_000_011, "10.9");
    assert_eq!(engines.end_ns(down), 2_000_011);
}

#[test]
fn kernels_and_copies_do_not_disturb_each_other() {
    let mut engines = engines(1, 1, 200);
    let kernel = start(&mut engines, 0, COMPUTE, 1_000);
    let up = start(&mut engines, 0, UP, 1_000);
    assert_eq!(engines.end_ns(kernel), 1_000);
    assert_eq!(engines.end_ns(up), 1_000);
    assert_eq!(
        engines.start(0, COMPUTE, 0, 1, 9),
        None,
        "one compute engine"
    );
    engines.finish(kernel, 1_000);
    assert!(engines.is_free(COMPUTE));
}

#[test]
fn engines_are_numbered_by_kind() {
    let mut engines = engines(2, 1, 100);
    let first = start(&mut engines, 0, UP, 10);
    let second = start(&mut engines, 0, UP, 10);
    assert!(!engines.is_free(UP));
    assert!(engines.is_free(DOWN));
    let down = start(&mut engines, 0, DOWN, 10);
    assert_eq!(engines.engine(first), Engine::HostToDevice(0));
    assert_eq!(engines.engine(second), Engine::HostToDevice(1));
    assert_eq!(engines.engine(down), Engine::DeviceToHost(0));
    engines.finish(first, 5);
    let third = start(&mut engines, 5, UP, 10);
    assert_eq!(engines.engine(third), Engine::HostToDevice(0));
    engines.clear();
    assert_eq!(engines.next_end(), None);
    assert!(engines.is_free(UP) && engines.is_free(DOWN));
}

#[test]
fn directions_that_share_their_engines_take_turns_and_do_not_slow_each_other() {
    let mut engines = engines(1, 0, 150);
    assert_eq!(engines.serving(DOWN), UP);
    let down = start(&mut engines, 0, DOWN, 100);
    assert_eq!(engines.engine(down), Engine::HostToDevice(0));
    assert!(!engines.is_free(UP));
    engines.finish(down, 100);
    let up = start(&mut engines, 100, UP, 100);
    assert_eq!(engines.end_ns(up), 200);
}

#[test]
fn simultaneous_ends_come_in_order_of_submission() {
    let mut engines = engines(1, 1, 100);
    let late = engines.start(0, UP, 0, 100, 8).unwrap();
    let early = engines.start(50, DOWN, 0, 50, 7).unwrap();
    assert_eq!(engines.next_end(), Some((100, early)));
    assert_eq!(engines.sequence(early), 7);
    engines.finish(early, 100);
    assert_eq!(engines.next_end(), Some((100, late)));
}

#[test]
fn a_delayed_copy_slows_the_other_direction_until_it_ends() {
    let mut engines = engines(1, 1, 200);
    let up = start(&mut engines, 0, UP, 1_000);
    let down = start(&mut engines, 0, DOWN, 100);
    engines.not_before(500);
    assert_eq!(engines.end_ns(down), 500);
    engines.finish(down, 500);
    assert_eq!(engines.end_ns(up), 500 + 750);
}

#[test]
fn times_saturate() {
    let mut engines = engines(1, 1, u64::MAX);
    let up = start(&mut engines, 10, UP, u64::MAX);
    let down = start(&mut engines, 10, DOWN, u64::MAX);
    assert_eq!(engines.end_ns(up), u64::MAX);
    assert_eq!(engines.end_ns(down), u64::MAX);
}

#[test]
fn a_handover_counts_from_every_dependency() {
    let mut behind = EarliestStart::default();
    assert_eq!(behind.ns(UP), 0, "nothing to be handed over");
    behind.after_operation(UP, 1_000, 50);
    assert_eq!(behind.ns(UP), 1_000);
    assert_eq!(behind.ns(COMPUTE), 1_050);
    let mut other = EarliestStart::default();
    other.after_operation(COMPUTE, 1_020, 50);
    behind.after(&other);
    assert_eq!(behind.ns(UP), 1_070);
    assert_eq!(behind.ns(COMPUTE), 1_050, "from the copy");
    assert_eq!(behind.ns(DOWN), 1_070);
}

#[test]
fn the_first_operation_ready_runs_first() {
    let turn = |priority, ready_ns, sequence| QueuePosition {
        priority,
        ready_ns,
        sequence,
    };
    assert!(turn(0, 5, 9) < turn(0, 6, 1));
    assert!(turn(0, 5, 1) < turn(0, 5, 2));
    assert!(turn(-1, 9, 9) < turn(0, 1, 1));
    assert!(QueuePosition::marker(99) < turn(-5, 0, 0));
}

#[test]
fn switching_an_engine_to_another_stream_takes_time() {
    let mut profile = Profile::builtin("pcie3-x16").unwrap();
    profile.device.switch_ns = 40;
    let mut engines = Engines::new(&profile);
    let mut copy = |at_ns, need, stream| {
        let token = engines.start(at_ns, need, stream, 100, 0).unwrap();
        let end_ns = engines.end_ns(token);
        engines.finish(token, end_ns);
        end_ns - at_ns
    };
    assert_eq!(copy(0, UP, 1), 100, "the first of all");
    assert_eq!(copy(100, UP, 1), 100, "its own stream");
    assert_eq!(copy(200, UP, 2), 140, "another one");
    assert_eq!(copy(370, UP, 1), 110, "30 have passed");
    assert_eq!(copy(480, DOWN, 2), 100, "another engine");
    assert_eq!(copy(580, DOWN, 2), 100);
    assert_eq!(copy(1_000, UP, 2), 100, "long enough ago");
    assert_eq!(copy(1_100, COMPUTE, 1), 100);
    assert_eq!(copy(1_200, COMPUTE, 2), 100, "kernels do not wait");
}
