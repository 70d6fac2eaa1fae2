//! Host callbacks, and held completions.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use common::{bytes_at, fill, plain, rig, seeded};
use pinlane_driver::{ErrorKind, HostPtr};
use pinlane_sim::{FaultKind, Faults, Sim};

const BYTES: usize = common::BYTES;

#[test]
fn a_callback_is_called_on_a_thread_of_the_machine() {
    let rig = plain();
    let stream = rig.stream();
    let (source, device) = (rig.pinned(BYTES), rig.device(BYTES));
    let (sender, receiver) = channel();
    rig.upload(source, device, BYTES, stream).unwrap();
    let callback = Box::new(move |result| {
        sender.send((result, std::thread::current().id())).unwrap();
    });
    rig.driver.host_callback(stream, callback).unwrap();
    // No calls from here on: time passes on its own.
    let (result, thread) = receiver.recv().unwrap();
    assert_eq!(result, Ok(()));
    assert_ne!(thread, std::thread::current().id());
    assert_eq!(rig.sim.timeline().len(), 1);
}

#[test]
fn a_stream_does_not_pass_a_callback_that_has_not_returned() {
    for seed in common::seeds(20) {
        let rig = seeded(seed);
        let stream = rig.stream();
        let (source, target) = (rig.pinned(BYTES), rig.pinned(BYTES));
        let device = rig.device(BYTES);
        fill(source, BYTES, 1);
        rig.upload(source, device, BYTES, stream).unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let (sim, log) = (rig.sim.clone(), Arc::clone(&order));
        let (go, gate) = channel::<()>();
        let callback = Box::new(move |_| {
            gate.recv().unwrap();
            log.lock().unwrap().push(sim.timeline().len());
        });
        rig.driver.host_callback(stream, callback).unwrap();
        rig.download(device, target, BYTES, stream).unwrap();
        assert!(!rig.driver.stream_query(stream).unwrap());
        go.send(()).unwrap();
        rig.driver.stream_synchronize(stream).unwrap();
        assert_eq!(
            *order.lock().unwrap(),
            [1],
            "one copy before it, one after, seed {seed}"
        );
        assert_eq!(bytes_at(target, BYTES), [1; BYTES]);
    }
}

#[test]
fn callbacks_are_called_exactly_once_even_if_the_device_fails() {
    let faults = Faults::none().with(FaultKind::LateError, 1000);
    let rig = rig(Sim::builder().faults(faults));
    let stream = rig.stream();
    let (source, device) = (rig.pinned(BYTES), rig.device(BYTES));
    rig.sim.hold();
    rig.upload(source, device, BYTES, stream).unwrap();
    let (sender, receiver) = channel();
    for _ in 0..3 {
        let sender = sender.clone();
        let callback = Box::new(move |result| sender.send(result).unwrap());
        rig.driver.host_callback(stream, callback).unwrap();
    }
    drop(sender);
    rig.sim.release();
    let error = rig.driver.stream_synchronize(stream).unwrap_err();
    assert_eq!(error.kind, ErrorKind::DeviceFault);
    let kinds: Vec<_> = receiver
        .iter()
        .map(|result| result.unwrap_err().kind)
        .collect();
    assert_eq!(
        kinds,
        [
            ErrorKind::DeviceFault,
            ErrorKind::DeviceFault,
            ErrorKind::DeviceFault
        ]
    );
}

#[test]
fn pending_callbacks_are_called_when_the_machine_is_dropped() {
    let rig = plain();
    let stream = rig.stream();
    let (sender, receiver) = channel();
    rig.sim.hold();
    let callback = Box::new(move |result: pinlane_driver::Result<()>| {
        sender.send(result.unwrap_err().kind).unwrap();
    });
    rig.driver.host_callback(stream, callback).unwrap();
    drop(rig);
    assert_eq!(receiver.recv().unwrap(), ErrorKind::DeviceLost);
    assert!(receiver.recv().is_err(), "called once, then gone");
}

#[test]
fn a_refused_callback_is_dropped_without_being_called() {
    let rig = rig(Sim::builder().faults(Faults::none().with(FaultKind::FailedSubmit, 1000)));
    let stream = rig.driver.default_stream();
    let (called, driver) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&rig.driver));
    /// Calls the driver when dropped, as a buffer that frees itself does.
    struct CallsOnDrop(Arc<dyn pinlane_driver::Driver>);
    impl Drop for CallsOnDrop {
        fn drop(&mut self) {
            self.0.memory_info().unwrap();
        }
    }
    let (count, owned) = (Arc::clone(&called), CallsOnDrop(driver));
    let callback = Box::new(move |_| {
        let _owned = &owned;
        count.fetch_add(1, Ordering::Relaxed);
    });
    rig.driver.host_callback(stream, callback).unwrap_err();
    assert_eq!(called.load(Ordering::Relaxed), 0);
    assert_eq!(Arc::strong_count(&called), 1);
}

#[test]
fn a_callback_that_panics_does_not_stop_its_stream() {
    let rig = plain();
    let stream = rig.stream();
    // `resume_unwind` keeps the panic message out of the test's output.
    let callback = Box::new(|_| std::panic::resume_unwind(Box::new("on purpose")));
    rig.driver.host_callback(stream, callback).unwrap();
    rig.driver.stream_synchronize(stream).unwrap();
}

#[test]
fn without_idle_progress_callbacks_replay_exactly() {
    let run = || {
        let rig = rig(Sim::builder().seed(3).idle_progress(false));
        let streams = [rig.stream(), rig.non_blocking_stream()];
        let (source, device) = (rig.pinned(BYTES), rig.device(BYTES));
        let order = Arc::new(Mutex::new(Vec::new()));
        for i in 0..40 {
            let stream = streams[i % 2];
            rig.upload(source, device, BYTES, stream).unwrap();
            let log = Arc::clone(&order);
            let callback = Box::new(move |_| log.lock().unwrap().push(i));
            rig.driver.host_callback(stream, callback).unwrap();
        }
        let before = order.lock().unwrap().len();
        assert_eq!(before, 0, "nothing waited, so nothing was called");
        while rig.sim.step() {}
        let order = order.lock().unwrap().clone();
        assert_eq!(order.len(), 40);
        (order, rig.sim.trace_hash(), rig.sim.now_ns())
    };
    assert_eq!(run(), run());
}

#[test]
fn held_work_does_not_complete() {
    let rig = plain();
    let stream = rig.stream();
    let (source, device) = (rig.pinned(BYTES), rig.device(BYTES));
    let event = rig.event();
    fill(source, BYTES, 5);
    rig.sim.hold();
    rig.upload(source, device, BYTES, stream).unwrap();
    rig.driver.event_record(event, stream).unwrap();
    for _ in 0..100 {
        assert!(!rig.driver.event_query(event).unwrap());
    }
    assert!(rig.sim.timeline().is_empty());
    let (started, seen) = channel();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            started.send(()).unwrap();
            rig.driver.event_synchronize(event).unwrap();
            rig.sim.timeline().len()
        });
        seen.recv().unwrap();
        assert!(rig.sim.timeline().is_empty());
        rig.sim.release();
        assert_eq!(waiter.join().unwrap(), 1);
    });
    assert_eq!(rig.device_bytes(device, BYTES), [5; BYTES]);
}

#[test]
fn threads_share_the_machine() {
    let rig = plain();
    std::thread::scope(|scope| {
        for value in 0..4_u8 {
            let rig = &rig;
            scope.spawn(move || {
                let stream = rig.non_blocking_stream();
                let mut source = vec![value; BYTES];
                let device = rig.device(BYTES);
                for _ in 0..50 {
                    let host = HostPtr::new(source.as_mut_ptr()).unwrap();
                    rig.upload(host, device, BYTES, stream).unwrap();
                    rig.driver.stream_synchronize(stream).unwrap();
                }
                assert_eq!(rig.device_bytes(device, BYTES), vec![value; BYTES]);
                rig.device_free(device).unwrap();
                rig.destroy_stream(stream);
            });
        }
    });
    assert_eq!(rig.sim.finish(), []);
}

/// A host address for a callback's use.
#[derive(Clone, Copy)]
struct Shared(HostPtr);

// SAFETY: the tests order the accesses of both threads.
unsafe impl Send for Shared {}

impl Shared {
    fn fill(self, value: u8) {
        fill(self.0, BYTES, value);
    }
}

#[test]
fn a_callback_may_fill_the_source_of_later_copies() {
    for seed in common::seeds(30) {
        let rig = seeded(seed);
        let (one, two) = (rig.stream(), rig.stream());
        let (source, device) = (rig.pinned(BYTES), rig.device(2 * BYTES));
        let event = rig.event();
        let buffer = Shared(source);
        let callback = Box::new(move |_| buffer.fill(9));
        rig.driver.host_callback(one, callback).unwrap();
        rig.upload(source, device, BYTES, one).unwrap();
        rig.driver.event_record(event, one).unwrap();
        rig.driver.stream_wait_event(two, event).unwrap();
        rig.upload(source, device.offset(BYTES), BYTES, two)
            .unwrap();
        rig.driver.synchronize().unwrap();
        assert_eq!(rig.device_bytes(device, 2 * BYTES), [9; 2 * BYTES]);
        assert!(
            rig.sim.findings().is_empty(),
            "seed {seed}: {:?}",
            rig.sim.findings()
        );
    }
}

#[test]
fn a_callback_does_not_excuse_a_refill_of_unordered_work() {
    let rig = plain();
    let (one, two) = (rig.stream(), rig.stream());
    let (source, device) = (rig.pinned(BYTES), rig.device(BYTES));
    fill(source, BYTES, 1);
    rig.sim.hold();
    rig.upload(source, device, BYTES, two).unwrap();
    let buffer = Shared(source);
    let callback = Box::new(move |_| buffer.fill(9));
    rig.driver.host_callback(one, callback).unwrap();
    fill(source, BYTES, 2); // in flight on the other stream
    rig.sim.release();
    rig.driver.synchronize().unwrap();
    let kinds = common::kinds(&rig.sim.findings());
    assert_eq!(kinds, [pinlane_sim::FindingKind::HostChangedInFlight]);
}

#[test]
fn finishing_does_not_wait_for_a_callback_that_never_returns() {
    let rig = plain();
    let stream = rig.stream();
    let (never, gate) = channel::<()>();
    let callback = Box::new(move |_| {
        let _ = gate.recv();
    });
    rig.driver.host_callback(stream, callback).unwrap();
    assert!(!rig.sim.finish().is_empty(), "the stream is left over");
    drop(never);
}

#[test]
fn callbacks_of_a_lost_device_are_called_without_idle_progress() {
    let faults = Faults::none().with(FaultKind::LateError, 1000);
    let rig = rig(Sim::builder().seed(3).faults(faults).idle_progress(false));
    let stream = rig.stream();
    let (source, device) = (rig.pinned(BYTES), rig.device(BYTES));
    rig.sim.hold();
    rig.upload(source, device, BYTES, stream).unwrap();
    let (sender, receiver) = channel();
    let callback = Box::new(move |result: pinlane_driver::Result<()>| {
        sender.send(result.is_err()).unwrap();
    });
    rig.driver.host_callback(stream, callback).unwrap();
    rig.sim.release();
    assert!(rig.driver.stream_synchronize(stream).is_err());
    assert!(receiver.recv().unwrap(), "called, with the error");
}
