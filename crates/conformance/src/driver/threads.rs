//! Many threads on one device.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::outcome::{check, check_eq};
use crate::pattern::{check_bytes, pattern, u32_of_bytes};
use crate::rig::{HostKind, Rig};
use crate::{Case, NotPassed, Outcome, TestDevice};

pub(super) const CASES: &[Case] = &[
    Case::new("threads/each-with-its-own-stream", own_streams),
    Case::new("threads/all-on-one-stream", one_stream),
    Case::new("threads/all-on-the-default-stream", default_stream),
    Case::new("threads/memory-from-every-thread", memory_from_everywhere),
    Case::new(
        "threads/event-recorded-here-waited-for-there",
        event_handed_over,
    ),
    Case::new("threads/opened-here-used-and-closed-there", handed_over),
    Case::new("threads/callbacks-from-every-thread", callbacks),
    Case::new("threads/each-opens-the-device", each_opens),
];

const THREADS: u64 = 8;

/// Runs `work(number)` on many threads, and returns the first failure.
fn on_threads(work: impl Fn(u64) -> Outcome + Sync) -> Outcome {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let work = &work;
                scope.spawn(move || work(number))
            })
            .collect();
        // Joins all of them, even after a failure.
        let results: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        results.into_iter().try_for_each(|result| {
            result.unwrap_or_else(|_| Err(NotPassed::Failed("a thread panicked".into())))
        })
    })
}

fn round_trips(rig: &Rig, stream: pinlane_driver::StreamHandle, number: u64) -> Outcome {
    let bytes = 10_000 + 1000 * number as usize;
    let source = rig.host(HostKind::Pinned, bytes)?;
    let target = rig.host(HostKind::Pinned, bytes)?;
    let device = rig.device(bytes)?;
    for round in 0..10 {
        let data = pattern(100 * number + round, bytes);
        source.write(0, &data);
        target.fill(0);
        rig.copy_async(device.all(), source.all(), stream)?;
        rig.copy_async(target.all(), device.all(), stream)?;
        rig.driver().stream_synchronize(stream)?;
        check_bytes(&target.read_all(), &data, &format!("thread {number}"))?;
    }
    Ok(())
}

fn own_streams(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    on_threads(|number| round_trips(&rig, rig.stream()?, number))?;
    rig.close()
}

fn one_stream(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    on_threads(|number| round_trips(&rig, stream, number))?;
    rig.close()
}

fn default_stream(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.driver().default_stream();
    on_threads(|number| round_trips(&rig, stream, number))?;
    rig.close()
}

fn memory_from_everywhere(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    on_threads(|number| {
        for round in 0..20 {
            let data = pattern(number * 1000 + round, 777);
            let device = rig.upload(&data)?;
            let pinned = rig.host(HostKind::Pinned, 777)?;
            rig.copy(pinned.all(), device.all())?;
            check_bytes(&pinned.read_all(), &data, &format!("thread {number}"))?;
            rig.free_device(device)?;
            rig.free_pinned(pinned)?;
        }
        Ok(())
    })?;
    rig.close()
}

fn event_handed_over(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let event = rig.event()?;
    let memory = rig.device(1000)?;
    let target = rig.host(HostKind::Pinned, 1000)?;
    let gate = rig.gate(stream)?;
    rig.memset(memory.all(), 0x66, stream)?;
    rig.copy_async(target.all(), memory.all(), stream)?;
    rig.driver().event_record(event, stream)?;
    thread::scope(|scope| {
        let waiting = scope.spawn(|| rig.driver().event_synchronize(event));
        let fired = rig.driver().event_query(event);
        gate.open();
        waiting.join().expect("no panic in a wait")?;
        check!(!fired?, "the event fired behind a closed gate");
        Ok(())
    })?;
    check_eq!(target.read_all(), vec![0x66; 1000], "bytes");
    rig.close()
}

fn handed_over(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let rig = thread::scope(|scope| {
        scope
            .spawn(move || -> Result<Rig, NotPassed> {
                let memory = rig.upload(&[0; 40])?;
                let stream = rig.stream()?;
                rig.add_u32(kernels, memory.all(), 3, stream)?;
                rig.driver().stream_synchronize(stream)?;
                let words = u32_of_bytes(&rig.download(memory.all())?);
                check_eq!(words, vec![3; 10], "result");
                Ok(rig)
            })
            .join()
            .expect("no panic on the other thread")
    })?;
    thread::scope(|scope| {
        scope
            .spawn(move || rig.close())
            .join()
            .expect("no panic while closing")
    })
}

fn callbacks(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let count = Arc::new(AtomicUsize::new(0));
    on_threads(|_| {
        let stream = rig.stream()?;
        for _ in 0..10 {
            let count = Arc::clone(&count);
            rig.driver().host_callback(
                stream,
                Box::new(move |_| {
                    count.fetch_add(1, Ordering::SeqCst);
                }),
            )?;
        }
        Ok(rig.driver().stream_synchronize(stream)?)
    })?;
    check_eq!(count.load(Ordering::SeqCst), 10 * THREADS as usize, "calls");
    rig.close()
}

fn each_opens(test: &TestDevice<'_>) -> Outcome {
    on_threads(|number| {
        let rig = test.rig()?;
        let data = pattern(number, 5000);
        let memory = rig.upload(&data)?;
        check_bytes(
            &rig.download(memory.all())?,
            &data,
            &format!("thread {number}"),
        )?;
        rig.close()
    })
}
