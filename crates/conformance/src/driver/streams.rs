//! Streams and the order of their work.

use std::collections::HashSet;

use bytemuck::cast_slice;
use pinlane_driver::StreamFlags;

use crate::Outcome;
use crate::case::cases;
use crate::outcome::{check, check_eq};
use crate::pattern::pattern;
use crate::rig::Rig;

cases! {
    "streams/create-and-destroy-many" => create_and_destroy_many,
    "streams/handles-differ" => handles_differ,
    "streams/priorities-are-a-range" => priorities,
    "streams/every-priority-works" => every_priority_works,
    "streams/priority-out-of-range-is-clamped" => clamped,
    "streams/idle-stream-has-no-work" => idle_query,
    "streams/query-sees-work-in-flight" => query_in_flight,
    "streams/not-captured-unless-asked" => not_captured,
    "streams/synchronize-waits" => synchronize_waits,
    "streams/synchronize-when-idle" => synchronize_when_idle,
    "streams/copy-kernel-copy-in-order" => copy_kernel_copy,
    "streams/long-chain-in-order" => long_chain,
    "streams/streams-do-not-wait-for-each-other" => independent,
    "streams/destroyed-stream-finishes-its-work" => destroy_busy,
    "streams/gate-holds-all-later-work" => gate_holds,
}

fn create_and_destroy_many(rig: &Rig) -> Outcome {
    for _ in 0..5 {
        for stream in rig.streams(20)? {
            rig.destroy_stream(stream)?;
        }
    }
    Ok(())
}

fn not_captured(rig: &Rig) -> Outcome {
    for stream in [rig.stream()?, rig.default_stream()] {
        let capturing = rig.stream_is_capturing(stream)?;
        check!(!capturing, "an ordinary stream is reported as capturing");
    }
    Ok(())
}

fn handles_differ(rig: &Rig) -> Outcome {
    let streams = [rig.streams(16)?, vec![rig.default_stream()]].concat();
    let handles: HashSet<_> = streams.iter().collect();
    check_eq!(handles.len(), streams.len(), "different handles");
    Ok(())
}

fn priorities(rig: &Rig) -> Outcome {
    let (least, greatest) = rig.stream_priorities()?;
    check!(
        greatest <= least,
        "priorities from {least} to {greatest}: lower must go first"
    );
    let again = rig.stream_priorities()?;
    check_eq!(again, (least, greatest), "second query of the range");
    Ok(())
}

fn every_priority_works(rig: &Rig) -> Outcome {
    let (least, greatest) = rig.stream_priorities()?;
    priorities_work(rig, greatest..=least)
}

fn clamped(rig: &Rig) -> Outcome {
    priorities_work(rig, [-1000, i32::MIN, 1000, i32::MAX])
}

fn priorities_work(rig: &Rig, priorities: impl IntoIterator<Item = i32>) -> Outcome {
    let kernels = rig.kernels()?;
    for priority in priorities {
        for non_blocking in [false, true] {
            let stream = rig.stream_with(StreamFlags {
                non_blocking,
                priority,
            })?;
            let memory = rig.upload(&[0; 40])?;
            rig.add_u32(kernels, memory.all(), 5, stream)?;
            rig.stream_synchronize(stream)?;
            let what = format!("priority {priority}");
            rig.check_words(memory.all(), &[5; 10], &what)?;
        }
    }
    Ok(())
}

fn idle_query(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    check!(rig.stream_query(stream)?, "a new stream is busy");
    let idle = rig.stream_query(rig.default_stream())?;
    check!(idle, "the default stream of a fresh device is busy");
    Ok(())
}

fn query_in_flight(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    for round in 0..3 {
        let gate = rig.gate(stream)?;
        let done = rig.stream_query(stream)?;
        check!(!done, "round {round}: work in flight is reported as done");
        gate.open();
        rig.stream_synchronize(stream)?;
        let done = rig.stream_query(stream)?;
        check!(done, "round {round}: finished work is reported as pending");
    }
    Ok(())
}

fn synchronize_waits(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let data = pattern(20, 100_000);
    let device = rig.upload(&data)?;
    let target = rig.pinned(data.len())?;
    for _ in 0..5 {
        target.fill(0);
        rig.spin(kernels, 2_000_000, stream)?;
        rig.copy_async(target.all(), device.all(), stream)?;
        rig.stream_synchronize(stream)?;
        rig.check(target.all(), &data, "bytes after the wait")?;
    }
    Ok(())
}

fn synchronize_when_idle(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    for _ in 0..3 {
        rig.stream_synchronize(stream)?;
        rig.stream_synchronize(rig.default_stream())?;
    }
    Ok(())
}

fn copy_kernel_copy(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let words: Vec<u32> = (0..50_000).collect();
    let source = rig.pinned_from(cast_slice(&words))?;
    let (target, device) = (rig.pinned(4 * words.len())?, rig.device(4 * words.len())?);
    rig.copy_async(device.all(), source.all(), stream)?;
    rig.add_u32(kernels, device.all(), 1_000_000, stream)?;
    rig.copy_async(target.all(), device.all(), stream)?;
    rig.stream_synchronize(stream)?;
    let expected: Vec<u32> = words.iter().map(|word| word + 1_000_000).collect();
    rig.check_words(target.all(), &expected, "result")
}

fn long_chain(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let (a, b) = (rig.device(4000)?, rig.device(4000)?);
    let target = rig.pinned(4000)?;
    rig.memset(a.all(), 0, stream)?;
    // Each step reads what the previous one wrote.
    for _ in 0..100 {
        rig.add_u32(kernels, a.all(), 1, stream)?;
        rig.copy_async(b.all(), a.all(), stream)?;
        rig.add_u32(kernels, b.all(), 2, stream)?;
        rig.copy_u8(kernels, b.all(), a.all(), stream)?;
    }
    rig.copy_async(target.all(), a.all(), stream)?;
    rig.stream_synchronize(stream)?;
    rig.check_words(target.all(), &[300; 1000], "result")?;
    Ok(())
}

fn independent(rig: &Rig) -> Outcome {
    let (held, free) = (rig.stream()?, rig.stream()?);
    let memory = rig.upload(&[0; 40])?;
    let (source, target) = (rig.pinned_from(&[9; 40])?, rig.pinned(40)?);
    let gate = rig.gate(held)?;
    rig.copy_async(memory.all(), source.all(), free)?;
    rig.copy_async(target.all(), memory.all(), free)?;
    // Returns although the other stream is held.
    rig.stream_synchronize(free)?;
    rig.check(target.all(), &[9; 40], "result")?;
    check!(!rig.stream_query(held)?, "the held stream has no work");
    gate.open();
    Ok(())
}

fn destroy_busy(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let memory = rig.upload(&[0; 400])?;
    let done = rig.event()?;
    let stream = rig.stream()?;
    rig.spin(kernels, 1_000_000, stream)?;
    rig.add_u32(kernels, memory.all(), 4, stream)?;
    rig.event_record(done, stream)?;
    rig.destroy_stream(stream)?;
    rig.event_synchronize(done)?;
    rig.check_words(memory.all(), &[4; 100], "what the stream wrote")?;
    Ok(())
}

fn gate_holds(rig: &Rig) -> Outcome {
    let (held, other) = (rig.stream()?, rig.stream()?);
    let memory = rig.upload(&[1; 40])?;
    let (sevens, zeros) = (rig.pinned_from(&[7; 40])?, rig.pinned(40)?);
    let target = rig.pinned(40)?;
    let gate = rig.gate(held)?;
    rig.copy_async(memory.all(), sevens.all(), held)?;
    rig.copy_async(memory.all(), zeros.all(), held)?;
    // The other stream still reads the unchanged memory.
    rig.copy_async(target.all(), memory.all(), other)?;
    rig.stream_synchronize(other)?;
    rig.check(target.all(), &[1; 40], "bytes behind the gate")?;
    gate.open();
    rig.stream_synchronize(held)?;
    rig.copy_async(target.all(), memory.all(), other)?;
    rig.stream_synchronize(other)?;
    rig.check(target.all(), &[0; 40], "bytes after the gate")?;
    Ok(())
}
