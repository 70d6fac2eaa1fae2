//! Schedules of programs: times computed by hand, and programs that cannot run.

use pinlane_model::engine_rules::{Engine, EngineKind};
use pinlane_model::schedule::{
    Action, HostState, Program, Schedule, ScheduleError, Work, schedule,
};
use pinlane_model::{CostCurve, Direction, HostKind, Profile};

/// One byte per nanosecond, no latencies; a submission takes 10 ns, an event call 1, a wait 2, a
/// wake-up 5.
fn profile() -> Profile {
    let mut profile = Profile::builtin("null").unwrap();
    for costs in [&mut profile.h2d, &mut profile.d2h] {
        costs.pinned = CostCurve::straight(0, 1_000_000_000);
        costs.pageable = CostCurve::straight(0, 500_000_000);
    }
    profile.d2d_bytes_per_s = 1_000_000_000;
    profile.calls.submit_ns = 10;
    profile.calls.event_ns = 1;
    profile.calls.sync_ns = 2;
    profile.calls.wake_ns = 5;
    profile
}

fn copy(direction: Direction, kind: HostKind, bytes: u64) -> Work {
    Work::Copy {
        direction,
        kind,
        bytes,
    }
}

fn up(bytes: u64) -> Work {
    copy(Direction::HostToDevice, HostKind::Pinned, bytes)
}

fn down(bytes: u64) -> Work {
    copy(Direction::DeviceToHost, HostKind::Pinned, bytes)
}

fn kernel(ns: u64) -> Work {
    Work::Kernel { tail_ns: 0, ns }
}

fn submit(stream: u32, work: Work) -> Action {
    Action::Submit { stream, work }
}

fn program(streams: u32, events: u32, signals: u32, threads: &[&[Action]]) -> Program {
    let mut program = Program::new(streams, events, signals);
    for actions in threads {
        let thread = program.thread();
        for (tag, &action) in actions.iter().enumerate() {
            program.tagged(thread, action, tag as u32);
        }
    }
    program
}

fn spans(schedule: &Schedule) -> Vec<(Engine, u64, u64)> {
    let mut spans = schedule.spans.clone();
    spans.sort_by_key(|span| span.sequence);
    let spans = spans.iter();
    spans
        .map(|span| (span.engine, span.start_ns, span.end_ns))
        .collect()
}

const UP: Engine = Engine::HostToDevice(0);
const DOWN: Engine = Engine::DeviceToHost(0);

#[test]
fn streams_overlap_and_keep_their_order() {
    let actions = [
        submit(0, up(100)),
        submit(0, kernel(50)),
        submit(0, down(100)),
        submit(1, up(100)),
        submit(1, Work::Fill { bytes: 30 }),
        submit(1, down(100)),
        Action::AwaitStream(0),
        Action::AwaitStream(1),
    ];
    let schedule = schedule(&profile(), &program(2, 0, 0, &[&actions])).unwrap();
    let expected = [
        (UP, 10, 110),
        (Engine::Compute, 110, 160),
        (DOWN, 160, 260),
        (UP, 110, 210),
        (Engine::Compute, 210, 240),
        (DOWN, 260, 360),
    ];
    assert_eq!(spans(&schedule), expected);
    // Both waits blocked: 260 + 5 + 2, then 360 + 5.
    assert_eq!(schedule.end_ns, 365);
    assert_eq!(schedule.thread_ends_ns, [365]);
    assert_eq!(schedule.busy_ns(EngineKind::Compute), 80);
    let tags: Vec<_> = schedule.spans.iter().map(|span| span.tag).collect();
    assert_eq!(tags, [0, 1, 3, 4, 2, 5], "in order of completion");
}

#[test]
fn a_wait_refers_to_the_recording_at_the_time_of_the_call() {
    let actions = [
        submit(0, up(100)),
        Action::Record {
            stream: 0,
            event: 0,
        },
        Action::Wait {
            stream: 1,
            event: 0,
        },
        submit(0, up(1_000)),
        Action::Record {
            stream: 0,
            event: 0,
        },
        submit(1, down(10)),
        Action::AwaitEvent(0),
    ];
    let schedule = schedule(&profile(), &program(2, 1, 0, &[&actions])).unwrap();
    let expected = [(UP, 10, 110), (UP, 110, 1_110), (DOWN, 110, 120)];
    assert_eq!(spans(&schedule), expected);
    assert_eq!(schedule.end_ns, 1_115);
}

#[test]
fn pageable_copies_block_the_thread_as_the_driver_does() {
    let pageable = HostKind::Pageable;
    let actions = [
        submit(0, copy(Direction::HostToDevice, pageable, 100)),
        submit(0, copy(Direction::DeviceToHost, pageable, 100)),
    ];
    let schedule = schedule(&profile(), &program(1, 0, 0, &[&actions])).unwrap();
    assert_eq!(spans(&schedule), [(UP, 10, 210), (DOWN, 220, 420)]);
    assert_eq!(schedule.end_ns, 425);
    let host: Vec<_> = schedule
        .host_spans
        .iter()
        .map(|span| (span.state, span.start_ns, span.end_ns))
        .collect();
    let expected = [
        (HostState::Call, 0, 10),
        (HostState::Staging, 10, 210),
        (HostState::Call, 210, 220),
        (HostState::Waiting, 220, 425),
    ];
    assert_eq!(host, expected);
}

#[test]
fn threads_continue_when_signalled() {
    let filler = [
        Action::HostWork { ns: 100 },
        Action::Signal(0),
        Action::HostWork { ns: 100 },
        Action::Signal(1),
    ];
    let launcher = [
        Action::AwaitSignal(0),
        submit(0, up(300)),
        Action::AwaitSignal(1),
        submit(0, up(100)),
        Action::Record {
            stream: 0,
            event: 0,
        },
        Action::Signal(2),
    ];
    let emptier = [
        Action::AwaitSignal(2),
        Action::AwaitEvent(0),
        Action::HostWork { ns: 7 },
    ];
    let program = program(1, 1, 3, &[&filler, &launcher, &emptier]);
    let schedule = schedule(&profile(), &program).unwrap();
    // Signalled at 100, awake at 105, submitted at 115. The second signal comes at 200, and the
    // submitting thread has waited for it since 115.
    assert_eq!(spans(&schedule), [(UP, 115, 415), (UP, 415, 515)]);
    assert_eq!(schedule.thread_ends_ns, [200, 216, 515 + 5 + 7]);
    assert_eq!(schedule.end_ns, 527);
}

#[test]
fn waiting_for_an_earlier_signal_takes_no_time() {
    let early = [Action::Signal(0)];
    let late = [Action::HostWork { ns: 3 }, Action::AwaitSignal(0)];
    let program = program(0, 0, 1, &[&early, &late]);
    assert_eq!(schedule(&profile(), &program).unwrap().end_ns, 3);
}

#[test]
fn an_empty_copy_only_takes_the_call() {
    let actions = [submit(0, up(0)), Action::AwaitStream(0)];
    let schedule = schedule(&profile(), &program(1, 0, 0, &[&actions])).unwrap();
    assert!(schedule.spans.is_empty());
    assert_eq!(schedule.end_ns, 12);
}

#[test]
fn an_empty_program_takes_no_time() {
    let nothing = schedule(&profile(), &Program::default()).unwrap();
    assert_eq!(nothing, Schedule::default());
    let idle = schedule(&profile(), &program(1, 1, 1, &[&[]])).unwrap();
    assert_eq!(idle.end_ns, 0);
}

#[test]
fn errors_name_thread_step_and_cause() {
    let error = |events, signals, threads: &[&[Action]]| {
        schedule(&profile(), &program(1, events, signals, threads)).unwrap_err()
    };
    let (thread, step) = (0, 1);
    let first = Action::HostWork { ns: 1 };
    assert_eq!(
        error(0, 0, &[&[first, submit(1, up(1))]]),
        ScheduleError::Unknown {
            thread,
            step,
            what: "stream",
            number: 1,
            count: 1
        }
    );
    for action in [
        Action::Record {
            stream: 0,
            event: 2,
        },
        Action::Wait {
            stream: 0,
            event: 2,
        },
        Action::AwaitEvent(2),
    ] {
        let expected = ScheduleError::Unknown {
            thread,
            step,
            what: "event",
            number: 2,
            count: 2,
        };
        assert_eq!(error(2, 0, &[&[first, action]]), expected);
    }
    for action in [
        Action::Wait {
            stream: 0,
            event: 0,
        },
        Action::AwaitEvent(0),
    ] {
        let expected = ScheduleError::NotRecorded {
            thread,
            step,
            event: 0,
        };
        assert_eq!(error(1, 0, &[&[first, action]]), expected);
    }
    for action in [Action::Signal(0), Action::AwaitSignal(0)] {
        let expected = ScheduleError::Unknown {
            thread,
            step,
            what: "signal",
            number: 0,
            count: 0,
        };
        assert_eq!(error(0, 0, &[&[first, action]]), expected);
    }
}

#[test]
fn threads_that_wait_for_each_other_are_a_deadlock() {
    let one = [submit(0, up(5)), Action::AwaitSignal(0), Action::Signal(1)];
    let two = [Action::AwaitSignal(1), Action::Signal(0)];
    let error = schedule(&profile(), &program(1, 0, 2, &[&one, &two])).unwrap_err();
    let expected = ScheduleError::Deadlock {
        thread: 0,
        step: 1,
        signal: 0,
    };
    assert_eq!(error, expected);
    assert!(error.to_string().contains("signal 0, which never comes"));
}

#[test]
fn durations_beyond_64_bits_are_refused() {
    let endless = [
        Action::HostWork { ns: u64::MAX },
        submit(0, kernel(u64::MAX)),
        submit(
            0,
            copy(Direction::HostToDevice, HostKind::Pageable, u64::MAX),
        ),
    ];
    for action in endless {
        let program = program(1, 0, 0, &[&[action, Action::AwaitStream(0)]]);
        let error = schedule(&profile(), &program).unwrap_err();
        assert_eq!(error, ScheduleError::TooLong, "{action:?}");
    }
}

#[test]
fn other_kernels_run_during_the_tail_of_a_kernel() {
    let small = Work::Kernel {
        tail_ns: 100,
        ns: 50,
    };
    let all = [submit(0, small), submit(1, kernel(30)), submit(0, small)];
    let schedule = schedule(&profile(), &program(2, 0, 0, &[&all])).unwrap();
    // The third kernel starts when the first has ended: 150 after its start.
    assert_eq!(
        spans(&schedule),
        [
            (Engine::Compute, 10, 60),
            (Engine::Compute, 60, 90),
            (Engine::Compute, 160, 210)
        ]
    );
    assert_eq!(schedule.end_ns, 310);
}

#[test]
fn kernels_that_leave_room_for_each_other_run_at_once() {
    let small = Work::Kernel {
        tail_ns: 300,
        ns: 100,
    };
    let all = [0, 1, 2, 3].map(|stream| submit(stream, small));
    let schedule = schedule(&profile(), &program(4, 0, 0, &[&all])).unwrap();
    // Submitted at 10, 20, 30 and 40; each takes 400 as if it were alone.
    assert_eq!(schedule.end_ns, 440);
}

#[test]
fn express_copies_of_both_directions_slow_each_other() {
    let lanes = |direction, ns| Action::ExpressCopy { direction, ns };
    let filler = [lanes(Direction::HostToDevice, 1_000)];
    let emptier = [
        Action::HostWork { ns: 100 },
        lanes(Direction::DeviceToHost, 200),
        lanes(Direction::DeviceToHost, 0),
    ];
    let mut program = program(0, 0, 0, &[&filler, &emptier]);
    program.express_both_percent = 150;
    let schedule = schedule(&profile(), &program).unwrap();
    // Both run from 100 to 400: the copy in does 200 in that time.
    assert_eq!(schedule.thread_ends_ns, [1_100, 400]);
    assert!(schedule.spans.is_empty());
    let worked = schedule.host_spans.iter();
    let worked = worked.map(|span| (span.thread, span.start_ns, span.end_ns));
    let expected = [(0, 0, 1_100), (1, 0, 100), (1, 100, 400)];
    assert_eq!(worked.collect::<Vec<_>>(), expected);
}
