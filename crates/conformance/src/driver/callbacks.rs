//! Host callbacks in stream order.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::outcome::{check, check_eq};
use crate::rig::HostKind;
use crate::{Case, Outcome, TestDevice};

pub(super) const CASES: &[Case] = &[
    Case::new("callbacks/called-once-with-success", called_once),
    Case::new("callbacks/called-without-anybody-waiting", nobody_waits),
    Case::new("callbacks/called-on-another-thread", another_thread),
    Case::new("callbacks/not-before-earlier-work", not_before_earlier_work),
    Case::new("callbacks/in-order-in-one-stream", in_order),
    Case::new("callbacks/stream-waits-for-it", stream_waits),
    Case::new("callbacks/seen-by-events", seen_by_events),
    Case::new("callbacks/many-over-several-streams", many),
    Case::new("callbacks/on-the-default-stream", on_default_stream),
    Case::new("callbacks/captures-are-dropped", captures_are_dropped),
    Case::new("callbacks/device-synchronize-waits", device_synchronize),
];

fn called_once(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let results = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&results);
    rig.driver().host_callback(
        stream,
        Box::new(move |result| seen.lock().expect("not poisoned").push(result)),
    )?;
    rig.driver().stream_synchronize(stream)?;
    rig.driver().synchronize()?;
    check_eq!(
        *results.lock().expect("not poisoned"),
        vec![Ok(())],
        "the result passed to the callback"
    );
    rig.close()
}

fn nobody_waits(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    rig.spin(kernels, 1_000_000, stream)?;
    let (sender, receiver) = channel();
    rig.driver().host_callback(
        stream,
        Box::new(move |result| {
            let _ = sender.send(result.is_ok());
        }),
    )?;
    // No driver call waits here: the callback must come by itself.
    check_eq!(receiver.recv(), Ok(true), "what the callback sent");
    rig.close()
}

fn another_thread(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let (sender, receiver) = channel();
    rig.driver().host_callback(
        stream,
        Box::new(move |_| {
            let _ = sender.send(thread::current().id());
        }),
    )?;
    let id = receiver.recv()?;
    check!(
        id != thread::current().id(),
        "called on the caller's thread"
    );
    rig.close()
}

fn not_before_earlier_work(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let (first, second) = (rig.stream()?, rig.stream()?);
    let event = rig.event()?;
    let called = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&called);
    let gate = rig.gate(first)?;
    rig.driver().event_record(event, first)?;
    rig.driver().stream_wait_event(second, event)?;
    rig.driver().host_callback(
        second,
        Box::new(move |_| flag.store(true, Ordering::SeqCst)),
    )?;
    check!(
        !rig.driver().stream_query(second)?,
        "the stream is done before its work"
    );
    check!(!called.load(Ordering::SeqCst), "called too early");
    gate.open();
    rig.driver().stream_synchronize(second)?;
    check!(called.load(Ordering::SeqCst), "not called");
    rig.close()
}

fn in_order(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let memory = rig.device(100)?;
    let calls = Arc::new(Mutex::new(Vec::new()));
    for number in 0..50 {
        let calls = Arc::clone(&calls);
        rig.memset(memory.all(), number, stream)?;
        rig.driver().host_callback(
            stream,
            Box::new(move |_| calls.lock().expect("not poisoned").push(number)),
        )?;
    }
    rig.driver().stream_synchronize(stream)?;
    let expected: Vec<u8> = (0..50).collect();
    check_eq!(*calls.lock().expect("not poisoned"), expected, "order");
    rig.close()
}

fn stream_waits(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let (stream, other) = (rig.stream()?, rig.stream()?);
    let memory = rig.upload(&[1; 100])?;
    let target = rig.host(HostKind::Pinned, 100)?;
    let (started, has_started) = channel();
    let (release, released) = channel::<()>();
    rig.driver().host_callback(
        stream,
        Box::new(move |_| {
            let _ = started.send(());
            let _ = released.recv();
        }),
    )?;
    rig.memset(memory.all(), 2, stream)?;
    has_started.recv()?;
    // The callback is running; the memset must wait until it returns.
    rig.copy_async(target.all(), memory.all(), other)?;
    rig.driver().stream_synchronize(other)?;
    let during = target.read_all();
    let busy = !rig.driver().stream_query(stream)?;
    drop(release);
    rig.driver().stream_synchronize(stream)?;
    check_eq!(during, vec![1; 100], "bytes while the callback ran");
    check!(busy, "the stream was done while its callback ran");
    check_eq!(
        rig.download(memory.all())?,
        vec![2; 100],
        "bytes after all work"
    );
    rig.close()
}

fn seen_by_events(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let event = rig.event()?;
    for round in 0..20 {
        let called = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&called);
        rig.driver().host_callback(
            stream,
            Box::new(move |_| flag.store(true, Ordering::SeqCst)),
        )?;
        rig.driver().event_record(event, stream)?;
        rig.driver().event_synchronize(event)?;
        check!(
            called.load(Ordering::SeqCst),
            "round {round}: the event fired before the callback"
        );
    }
    rig.close()
}

fn many(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let count = Arc::new(AtomicUsize::new(0));
    let streams = (0..8)
        .map(|_| rig.stream())
        .collect::<Result<Vec<_>, _>>()?;
    for round in 0..25 {
        for stream in &streams {
            let count = Arc::clone(&count);
            rig.spin(kernels, 1_000 * round, *stream)?;
            rig.driver().host_callback(
                *stream,
                Box::new(move |result| {
                    if result.is_ok() {
                        count.fetch_add(1, Ordering::SeqCst);
                    }
                }),
            )?;
        }
    }
    for stream in &streams {
        rig.driver().stream_synchronize(*stream)?;
    }
    check_eq!(count.load(Ordering::SeqCst), 200, "calls");
    rig.close()
}

fn on_default_stream(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let (sender, receiver) = channel();
    rig.driver().host_callback(
        rig.driver().default_stream(),
        Box::new(move |result| {
            let _ = sender.send(result);
        }),
    )?;
    check_eq!(
        receiver.recv(),
        Ok(Ok(())),
        "the result passed to the callback"
    );
    rig.close()
}

fn captures_are_dropped(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let held = Arc::new(());
    for _ in 0..10 {
        let held = Arc::clone(&held);
        rig.driver()
            .host_callback(stream, Box::new(move |_| drop(held)))?;
    }
    rig.driver().stream_synchronize(stream)?;
    check_eq!(
        Arc::strong_count(&held),
        1,
        "references that callbacks still hold"
    );
    rig.close()
}

fn device_synchronize(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let streams = [rig.stream()?, rig.stream()?, rig.driver().default_stream()];
    let count = Arc::new(AtomicUsize::new(0));
    for stream in streams {
        let count = Arc::clone(&count);
        rig.driver().host_callback(
            stream,
            Box::new(move |_| {
                count.fetch_add(1, Ordering::SeqCst);
            }),
        )?;
    }
    rig.driver().synchronize()?;
    check_eq!(count.load(Ordering::SeqCst), 3, "calls");
    rig.close()
}
