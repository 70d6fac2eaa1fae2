//! Many threads on one device.

use std::sync::Arc;
use std::thread;

use pinlane_driver::StreamHandle;

use super::callbacks::{check_calls, count_calls};
use crate::case::cases;
use crate::outcome::check;
use crate::pattern::pattern;
use crate::rig::Rig;
use crate::{NotPassed, Outcome, TestDevice};

cases! {
    "threads/each-with-its-own-stream" => own_streams,
    "threads/all-on-one-stream" => one_stream,
    "threads/all-on-the-default-stream" => default_stream,
    "threads/memory-from-every-thread" => memory_from_everywhere,
    "threads/event-recorded-here-waited-for-there" => event_handed_over,
    @test "threads/opened-here-used-and-closed-there" => handed_over,
    "threads/callbacks-from-every-thread" => callbacks,
    @test "threads/each-opens-the-device" => each_opens,
}

const THREADS: u64 = 8;

/// Runs `work(number)` on many threads, and returns the first failure.
fn on_threads(work: impl Fn(u64) -> Outcome + Sync) -> Outcome {
    thread::scope(|scope| {
        let work = &work;
        let threads = (0..THREADS).map(|number| scope.spawn(move || work(number)));
        let threads: Vec<_> = threads.collect();
        // Joins all of them, even after a failure.
        let results: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        results.into_iter().try_for_each(|result| {
            result.unwrap_or_else(|_| Err(NotPassed::Failed("a thread panicked".into())))
        })
    })
}

fn round_trips(rig: &Rig, stream: StreamHandle, number: u64) -> Outcome {
    let bytes = 10_000 + 1000 * number as usize;
    let (source, target) = (rig.pinned(bytes)?, rig.pinned(bytes)?);
    let device = rig.device(bytes)?;
    for round in 0..10 {
        let data = pattern(100 * number + round, bytes);
        source.write(0, &data);
        target.fill(0);
        rig.copy_async(device.all(), source.all(), stream)?;
        rig.copy_async(target.all(), device.all(), stream)?;
        rig.stream_synchronize(stream)?;
        rig.check(target.all(), &data, &format!("thread {number}"))?;
    }
    Ok(())
}

fn own_streams(rig: &Rig) -> Outcome {
    on_threads(|number| round_trips(rig, rig.stream()?, number))
}

fn one_stream(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    on_threads(|number| round_trips(rig, stream, number))
}

fn default_stream(rig: &Rig) -> Outcome {
    let stream = rig.default_stream();
    on_threads(|number| round_trips(rig, stream, number))
}

fn memory_from_everywhere(rig: &Rig) -> Outcome {
    on_threads(|number| {
        for round in 0..20 {
            let data = pattern(number * 1000 + round, 777);
            let device = rig.upload(&data)?;
            let pinned = rig.pinned(777)?;
            rig.copy(pinned.all(), device.all())?;
            rig.check(pinned.all(), &data, &format!("thread {number}"))?;
            rig.free_memory(device)?;
            rig.free_memory(pinned)?;
        }
        Ok(())
    })
}

fn event_handed_over(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let event = rig.event()?;
    let memory = rig.device(1000)?;
    let target = rig.pinned(1000)?;
    let gate = rig.gate(stream)?;
    rig.memset(memory.all(), 0x66, stream)?;
    rig.copy_async(target.all(), memory.all(), stream)?;
    rig.event_record(event, stream)?;
    thread::scope(|scope| {
        let waiting = scope.spawn(|| rig.event_synchronize(event));
        let fired = rig.event_query(event);
        gate.open();
        waiting.join().expect("no panic in a wait")?;
        check!(!fired?, "the event fired behind a closed gate");
        Ok(())
    })?;
    rig.check(target.all(), &[0x66; 1000], "bytes")
}

fn handed_over(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let used = thread::spawn(move || -> Result<Rig, NotPassed> {
        let memory = rig.upload(&[0; 40])?;
        let stream = rig.stream()?;
        rig.add_u32(kernels, memory.all(), 3, stream)?;
        rig.stream_synchronize(stream)?;
        rig.check_words(memory.all(), &[3; 10], "result")?;
        Ok(rig)
    });
    let rig = used.join().expect("no panic on the other thread")?;
    let closed = thread::spawn(move || rig.close());
    closed.join().expect("no panic while closing")
}

fn callbacks(rig: &Rig) -> Outcome {
    let count = Arc::default();
    on_threads(|_| {
        let stream = rig.stream()?;
        for _ in 0..10 {
            count_calls(rig, stream, &count)?;
        }
        Ok(rig.stream_synchronize(stream)?)
    })?;
    check_calls(&count, 10 * THREADS as usize)
}

fn each_opens(test: &TestDevice<'_>) -> Outcome {
    on_threads(|number| {
        let rig = test.rig()?;
        let data = pattern(number, 5000);
        let memory = rig.upload(&data)?;
        rig.check(memory.all(), &data, &format!("thread {number}"))?;
        rig.close()
    })
}
