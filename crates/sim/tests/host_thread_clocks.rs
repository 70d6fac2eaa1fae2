//! Host threads with a virtual clock each.

mod common;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use common::{Rig, plain, seeded};
use pinlane_driver::{HostPtr, ThreadClocks};

const BYTES: usize = 12_000;

/// Pinned memory of another thread.
struct Pinned(HostPtr);

// SAFETY: only the simulator touches the memory.
unsafe impl Send for Pinned {}
// SAFETY: as above.
unsafe impl Sync for Pinned {}

impl Pinned {
    fn get(&self) -> HostPtr {
        self.0
    }
}

fn clocks(rig: &Rig) -> &dyn ThreadClocks {
    rig.driver.thread_clocks().expect("simulated time")
}

/// Runs `first` on this thread and `second` on another. Both take part from the same time on; returns when each ends.
fn beside<T: Send>(
    rig: &Rig,
    first: impl FnOnce(),
    second: impl FnOnce() -> T + Send,
) -> ([u64; 2], T) {
    let clocks = clocks(rig);
    let this = clocks.enter().expect("not yet");
    assert_eq!(clocks.enter(), None, "it takes part already");
    let other = clocks.announce();
    let ended = clocks.signal();
    let times = thread::scope(|scope| {
        let second = scope.spawn(move || {
            clocks.start(other);
            let result = second();
            let end_ns = rig.sim.now_ns();
            clocks.post(ended);
            clocks.leave(other);
            (end_ns, result)
        });
        first();
        let first_ns = rig.sim.now_ns();
        clocks.take(ended);
        let (second_ns, result) = second.join().expect("it ends");
        assert_eq!(rig.sim.now_ns(), first_ns.max(second_ns), "joined");
        ([first_ns, second_ns], result)
    });
    clocks.leave(this);
    clocks.forget(ended);
    times
}

/// A wait on one thread does not pass the time in which another one submits.
#[test]
fn threads_take_time_at_the_same_time() {
    let rig = plain();
    let [one, two] = [rig.non_blocking_stream(), rig.non_blocking_stream()];
    let (source, target) = (rig.pinned(BYTES), rig.device(BYTES));
    let (mine, its) = (Pinned(rig.pinned(BYTES)), rig.device(BYTES));
    for pause in [Duration::ZERO, Duration::from_millis(20)] {
        let before_ns = rig.sim.now_ns();
        let ([waited_ns, worked_ns], ()) = beside(
            &rig,
            || {
                rig.upload(source, target, BYTES, one).unwrap();
                rig.driver.stream_synchronize(one).unwrap();
            },
            || {
                thread::sleep(pause); // takes no virtual time
                rig.sim.host_work(1_000);
                rig.upload(mine.get(), its, BYTES, two).unwrap();
            },
        );
        // 2 us to submit, 3.5 us for the copy, 3 us to wake.
        assert_eq!(waited_ns - before_ns, 8_500, "{pause:?}");
        assert_eq!(worked_ns - before_ns, 3_000, "{pause:?}");
        rig.driver.synchronize().unwrap();
        let timeline = rig.sim.timeline();
        let [first, second] = &timeline[timeline.len() - 2..] else {
            panic!("{timeline:?}");
        };
        assert_eq!(first.start_ns - before_ns, 2_000, "{pause:?}");
        assert_eq!(second.start_ns, first.end_ns, "{pause:?}: one engine");
    }
}

/// A thread that is ahead submits work that starts at its own time, not earlier.
#[test]
fn work_starts_no_earlier_than_its_thread_submits_it() {
    let rig = plain();
    let [one, two] = [rig.non_blocking_stream(), rig.non_blocking_stream()];
    let (source, target) = (rig.pinned(BYTES), rig.device(BYTES));
    let (mine, its) = (Pinned(rig.pinned(BYTES)), rig.device(BYTES));
    let (submitted, later) = mpsc::channel();
    let before_ns = rig.sim.now_ns();
    beside(
        &rig,
        || {
            rig.sim.host_work(1_000_000);
            rig.upload(source, target, BYTES, one).unwrap();
            submitted.send(()).unwrap();
        },
        || {
            let later = later;
            later.recv().unwrap(); // in real time only
            rig.upload(mine.get(), its, BYTES, two).unwrap();
        },
    );
    rig.driver.synchronize().unwrap();
    let starts: Vec<_> = rig
        .sim
        .timeline()
        .iter()
        .map(|span| span.start_ns - before_ns)
        .collect();
    assert_eq!(starts, [2_000, 1_002_000]);
}

#[test]
fn a_wait_with_a_timeout_ends_beside_a_thread_that_is_ahead() {
    let rig = plain();
    let stream = rig.non_blocking_stream();
    let event = rig.event();
    let (source, target) = (rig.pinned(12_000_000), rig.device(12_000_000));
    rig.upload(source, target, 12_000_000, stream).unwrap();
    rig.driver.event_record(event, stream).unwrap();
    let before_ns = rig.sim.now_ns();
    let ([waited_ns, worked_ns], fired) = beside(
        &rig,
        || rig.sim.host_work(5_000_000),
        || {
            rig.driver
                .event_wait_timeout(event, Duration::from_micros(100))
        },
    );
    assert!(!fired.unwrap());
    assert_eq!(worked_ns - before_ns, 100_500, "the call and the timeout");
    assert_eq!(waited_ns - before_ns, 5_000_000);
    assert!(rig.driver.event_query(event).unwrap());
}

/// It says nothing, so the simulator must guess. It guesses that the thread waits for the other one.
#[test]
fn a_thread_that_is_blocked_elsewhere_blocks_nothing_for_good() {
    let rig = plain();
    let stream = rig.stream();
    let (source, target) = (rig.pinned(BYTES), rig.device(BYTES));
    let (done, wait) = mpsc::channel();
    beside(
        &rig,
        || {
            rig.upload(source, target, BYTES, stream).unwrap();
            rig.driver.stream_synchronize(stream).unwrap();
            done.send(()).unwrap();
        },
        || {
            let wait = wait;
            wait.recv().unwrap();
            rig.driver.stream_synchronize(stream).unwrap();
        },
    );
}

#[test]
fn an_adversary_knows_no_clocks_of_threads() {
    assert!(seeded(1).driver.thread_clocks().is_none());
}

/// Each would wait for the other to go on, since neither's clock moves while it waits.
#[test]
fn threads_that_look_at_the_same_time_do_not_wait_for_each_other() {
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        let rig = plain();
        let look = || (0..100).for_each(|_| clocks(&rig).reach());
        beside(&rig, look, look);
        done.send(()).expect("somebody waits");
    });
    let ended = ended.recv_timeout(Duration::from_secs(20));
    ended.expect("both go on");
}
