//! Host callbacks in stream order.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;

use pinlane_driver::{Result, StreamHandle};

use crate::Outcome;
use crate::case::cases;
use crate::outcome::{check, check_eq};
use crate::rig::Rig;

cases! {
    "callbacks/called-once-with-success" => called_once,
    "callbacks/called-without-anybody-waiting" => nobody_waits,
    "callbacks/called-on-another-thread" => another_thread,
    "callbacks/not-before-earlier-work" => not_before_earlier_work,
    "callbacks/in-order-in-one-stream" => in_order,
    "callbacks/stream-waits-for-it" => stream_waits,
    "callbacks/seen-by-events" => seen_by_events,
    "callbacks/many-over-several-streams" => many,
    "callbacks/on-the-default-stream" => on_default_stream,
    "callbacks/captures-are-dropped" => captures_are_dropped,
    "callbacks/device-synchronize-waits" => device_synchronize,
}

/// Submits a callback that counts itself if it is called with success.
pub(super) fn count_calls(rig: &Rig, stream: StreamHandle, count: &Arc<AtomicUsize>) -> Result<()> {
    let count = Arc::clone(count);
    rig.callback(stream, move |result| {
        count.fetch_add(usize::from(result.is_ok()), Ordering::SeqCst);
    })
}

/// Fails the case unless so many callbacks were called.
pub(super) fn check_calls(count: &AtomicUsize, expected: usize) -> Outcome {
    check_eq!(count.load(Ordering::SeqCst), expected, "calls");
    Ok(())
}

fn called_once(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let results = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&results);
    rig.callback(stream, move |result| {
        seen.lock().expect("not poisoned").push(result);
    })?;
    rig.stream_synchronize(stream)?;
    rig.synchronize()?;
    let results = results.lock().expect("not poisoned");
    check_eq!(*results, vec![Ok(())], "the result passed to the callback");
    Ok(())
}

fn nobody_waits(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    rig.spin(kernels, 1_000_000, stream)?;
    let (sender, receiver) = channel();
    rig.callback(stream, move |result| {
        let _ = sender.send(result.is_ok());
    })?;
    // No driver call waits here: the callback must come by itself.
    check_eq!(receiver.recv(), Ok(true), "what the callback sent");
    Ok(())
}

fn another_thread(rig: &Rig) -> Outcome {
    let (sender, receiver) = channel();
    rig.callback(rig.stream()?, move |_| {
        let _ = sender.send(thread::current().id());
    })?;
    let ours = receiver.recv()? == thread::current().id();
    check!(!ours, "called on the caller's thread");
    Ok(())
}

fn not_before_earlier_work(rig: &Rig) -> Outcome {
    let (first, second) = (rig.stream()?, rig.stream()?);
    let event = rig.event()?;
    let called = Arc::default();
    let gate = rig.gate(first)?;
    rig.event_record(event, first)?;
    rig.stream_wait_event(second, event)?;
    count_calls(rig, second, &called)?;
    let done = rig.stream_query(second)?;
    check!(!done, "the stream is done before its work");
    check_calls(&called, 0)?;
    gate.open();
    rig.stream_synchronize(second)?;
    check_calls(&called, 1)
}

fn in_order(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let memory = rig.device(100)?;
    let calls = Arc::new(Mutex::new(Vec::new()));
    for number in 0..50 {
        let calls = Arc::clone(&calls);
        rig.memset(memory.all(), number, stream)?;
        rig.callback(stream, move |_| {
            calls.lock().expect("not poisoned").push(number);
        })?;
    }
    rig.stream_synchronize(stream)?;
    let expected: Vec<u8> = (0..50).collect();
    check_eq!(*calls.lock().expect("not poisoned"), expected, "order");
    Ok(())
}

fn stream_waits(rig: &Rig) -> Outcome {
    let (stream, other) = (rig.stream()?, rig.stream()?);
    let memory = rig.upload(&[1; 100])?;
    let target = rig.pinned(100)?;
    let (started, has_started) = channel();
    let (release, released) = channel::<()>();
    rig.callback(stream, move |_| {
        let _ = started.send(());
        let _ = released.recv();
    })?;
    rig.memset(memory.all(), 2, stream)?;
    has_started.recv()?;
    // The callback is running; the memset must wait until it returns.
    rig.copy_async(target.all(), memory.all(), other)?;
    rig.stream_synchronize(other)?;
    let busy = !rig.stream_query(stream)?;
    drop(release);
    rig.stream_synchronize(stream)?;
    rig.check(target.all(), &[1; 100], "bytes while the callback ran")?;
    check!(busy, "the stream was done while its callback ran");
    rig.check(memory.all(), &[2; 100], "bytes after all work")
}

fn seen_by_events(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let event = rig.event()?;
    let called = Arc::default();
    for round in 1..=20 {
        count_calls(rig, stream, &called)?;
        rig.record_and_wait(event, stream)?;
        // The event must not fire before the callback.
        check_calls(&called, round)?;
    }
    Ok(())
}

fn many(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let count = Arc::default();
    let streams = rig.streams(8)?;
    for round in 0..25 {
        for stream in &streams {
            rig.spin(kernels, 1_000 * round, *stream)?;
            count_calls(rig, *stream, &count)?;
        }
    }
    for stream in &streams {
        rig.stream_synchronize(*stream)?;
    }
    check_calls(&count, 200)
}

fn on_default_stream(rig: &Rig) -> Outcome {
    let (sender, receiver) = channel();
    rig.callback(rig.default_stream(), move |result| {
        let _ = sender.send(result);
    })?;
    let passed = receiver.recv();
    check_eq!(passed, Ok(Ok(())), "the result passed to the callback");
    Ok(())
}

fn captures_are_dropped(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let held = Arc::new(());
    for _ in 0..10 {
        let held = Arc::clone(&held);
        rig.callback(stream, move |_| drop(held))?;
    }
    rig.stream_synchronize(stream)?;
    let holders = Arc::strong_count(&held);
    check_eq!(holders, 1, "references that callbacks still hold");
    Ok(())
}

fn device_synchronize(rig: &Rig) -> Outcome {
    let count = Arc::default();
    for stream in [rig.stream()?, rig.stream()?, rig.default_stream()] {
        count_calls(rig, stream, &count)?;
    }
    rig.synchronize()?;
    check_calls(&count, 3)
}
