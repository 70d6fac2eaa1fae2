//! Streams and the order of their work.

use pinlane_driver::StreamFlags;

use crate::outcome::{check, check_eq};
use crate::pattern::{bytes_of_u32, check_bytes, pattern, u32_of_bytes};
use crate::rig::HostKind;
use crate::{Case, Outcome, TestDevice};

pub(super) const CASES: &[Case] = &[
    Case::new("streams/create-and-destroy-many", create_and_destroy_many),
    Case::new("streams/handles-differ", handles_differ),
    Case::new("streams/priorities-are-a-range", priorities),
    Case::new("streams/every-priority-works", every_priority_works),
    Case::new("streams/priority-out-of-range-is-clamped", clamped),
    Case::new("streams/idle-stream-has-no-work", idle_query),
    Case::new("streams/query-sees-work-in-flight", query_in_flight),
    Case::new("streams/not-captured-unless-asked", not_captured),
    Case::new("streams/synchronize-waits", synchronize_waits),
    Case::new("streams/synchronize-when-idle", synchronize_when_idle),
    Case::new("streams/copy-kernel-copy-in-order", copy_kernel_copy),
    Case::new("streams/long-chain-in-order", long_chain),
    Case::new("streams/streams-do-not-wait-for-each-other", independent),
    Case::new("streams/destroyed-stream-finishes-its-work", destroy_busy),
    Case::new("streams/gate-holds-all-later-work", gate_holds),
];

fn create_and_destroy_many(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    for _ in 0..5 {
        let streams = (0..20)
            .map(|_| rig.stream())
            .collect::<Result<Vec<_>, _>>()?;
        for stream in streams {
            rig.destroy_stream(stream)?;
        }
    }
    rig.close()
}

fn not_captured(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let own = rig.stream()?;
    for stream in [own, rig.driver().default_stream()] {
        check!(
            !rig.driver().stream_is_capturing(stream)?,
            "an ordinary stream is reported as capturing"
        );
    }
    rig.close()
}

fn handles_differ(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let mut handles = vec![rig.driver().default_stream().raw()];
    for _ in 0..16 {
        handles.push(rig.stream()?.raw());
    }
    let made = handles.len();
    handles.sort_unstable();
    handles.dedup();
    check_eq!(handles.len(), made, "different handles");
    rig.close()
}

fn priorities(test: &TestDevice<'_>) -> Outcome {
    let driver = test.open()?;
    let (least, greatest) = driver.stream_priorities()?;
    check!(
        greatest <= least,
        "priorities from {least} to {greatest}: lower must go first"
    );
    check_eq!(
        driver.stream_priorities()?,
        (least, greatest),
        "second query of the range"
    );
    Ok(())
}

fn every_priority_works(test: &TestDevice<'_>) -> Outcome {
    let (least, greatest) = test.open()?.stream_priorities()?;
    priorities_work(test, greatest..=least)
}

fn clamped(test: &TestDevice<'_>) -> Outcome {
    priorities_work(test, [-1000, i32::MIN, 1000, i32::MAX])
}

fn priorities_work(test: &TestDevice<'_>, priorities: impl IntoIterator<Item = i32>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    for priority in priorities {
        for non_blocking in [false, true] {
            let stream = rig.stream_with(StreamFlags {
                non_blocking,
                priority,
            })?;
            let memory = rig.upload(&[0; 40])?;
            rig.add_u32(kernels, memory.all(), 5, stream)?;
            rig.driver().stream_synchronize(stream)?;
            let words = u32_of_bytes(&rig.download(memory.all())?);
            check_eq!(words, vec![5; 10], "priority {priority}");
        }
    }
    rig.close()
}

fn idle_query(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    check!(rig.driver().stream_query(stream)?, "a new stream is busy");
    let default = rig.driver().default_stream();
    check!(
        rig.driver().stream_query(default)?,
        "the default stream of a fresh device is busy"
    );
    rig.close()
}

fn query_in_flight(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    for round in 0..3 {
        let gate = rig.gate(stream)?;
        check!(
            !rig.driver().stream_query(stream)?,
            "round {round}: work in flight is reported as done"
        );
        gate.open();
        rig.driver().stream_synchronize(stream)?;
        check!(
            rig.driver().stream_query(stream)?,
            "round {round}: finished work is reported as pending"
        );
    }
    rig.close()
}

fn synchronize_waits(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let data = pattern(20, 100_000);
    let device = rig.upload(&data)?;
    let target = rig.host(HostKind::Pinned, data.len())?;
    for _ in 0..5 {
        target.fill(0);
        rig.spin(kernels, 2_000_000, stream)?;
        rig.copy_async(target.all(), device.all(), stream)?;
        rig.driver().stream_synchronize(stream)?;
        check_bytes(&target.read_all(), &data, "bytes after the wait")?;
    }
    rig.close()
}

fn synchronize_when_idle(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    for _ in 0..3 {
        rig.driver().stream_synchronize(stream)?;
        rig.driver()
            .stream_synchronize(rig.driver().default_stream())?;
    }
    rig.close()
}

fn copy_kernel_copy(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let words: Vec<u32> = (0..50_000).collect();
    let bytes = words.len() * 4;
    let source = rig.host(HostKind::Pinned, bytes)?;
    let target = rig.host(HostKind::Pinned, bytes)?;
    let device = rig.device(bytes)?;
    source.write(0, &bytes_of_u32(&words));
    target.fill(0);
    rig.copy_async(device.all(), source.all(), stream)?;
    rig.add_u32(kernels, device.all(), 1_000_000, stream)?;
    rig.copy_async(target.all(), device.all(), stream)?;
    rig.driver().stream_synchronize(stream)?;
    let expected: Vec<u32> = words.iter().map(|word| word + 1_000_000).collect();
    check_bytes(&target.read_all(), &bytes_of_u32(&expected), "result")?;
    rig.close()
}

fn long_chain(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let (a, b) = (rig.device(4000)?, rig.device(4000)?);
    let target = rig.host(HostKind::Pinned, 4000)?;
    rig.memset(a.all(), 0, stream)?;
    // Each step reads what the previous one wrote.
    for _ in 0..100 {
        rig.add_u32(kernels, a.all(), 1, stream)?;
        rig.copy_async(b.all(), a.all(), stream)?;
        rig.add_u32(kernels, b.all(), 2, stream)?;
        rig.copy_u8(kernels, b.all(), a.all(), stream)?;
    }
    rig.copy_async(target.all(), a.all(), stream)?;
    rig.driver().stream_synchronize(stream)?;
    check_eq!(u32_of_bytes(&target.read_all()), vec![300; 1000], "result");
    rig.close()
}

fn independent(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let (held, free) = (rig.stream()?, rig.stream()?);
    let memory = rig.upload(&[0; 40])?;
    let source = rig.host(HostKind::Pinned, 40)?;
    source.fill(9);
    let target = rig.host(HostKind::Pinned, 40)?;
    target.fill(0);
    let gate = rig.gate(held)?;
    rig.copy_async(memory.all(), source.all(), free)?;
    rig.copy_async(target.all(), memory.all(), free)?;
    // Returns although the other stream is held.
    rig.driver().stream_synchronize(free)?;
    check_eq!(target.read_all(), vec![9; 40], "result");
    check!(
        !rig.driver().stream_query(held)?,
        "the held stream has no work"
    );
    gate.open();
    rig.close()
}

fn destroy_busy(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let memory = rig.upload(&[0; 400])?;
    let done = rig.event()?;
    let stream = rig.stream()?;
    rig.spin(kernels, 1_000_000, stream)?;
    rig.add_u32(kernels, memory.all(), 4, stream)?;
    rig.driver().event_record(done, stream)?;
    rig.destroy_stream(stream)?;
    rig.driver().event_synchronize(done)?;
    let words = u32_of_bytes(&rig.download(memory.all())?);
    check_eq!(words, vec![4; 100], "what the stream wrote");
    rig.close()
}

fn gate_holds(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let (held, other) = (rig.stream()?, rig.stream()?);
    let memory = rig.upload(&[1; 40])?;
    let (sevens, zeros) = (
        rig.host(HostKind::Pinned, 40)?,
        rig.host(HostKind::Pinned, 40)?,
    );
    sevens.fill(7);
    zeros.fill(0);
    let target = rig.host(HostKind::Pinned, 40)?;
    let gate = rig.gate(held)?;
    rig.copy_async(memory.all(), sevens.all(), held)?;
    rig.copy_async(memory.all(), zeros.all(), held)?;
    // The other stream still reads the unchanged memory.
    rig.copy_async(target.all(), memory.all(), other)?;
    rig.driver().stream_synchronize(other)?;
    check_eq!(target.read_all(), vec![1; 40], "bytes behind the gate");
    gate.open();
    rig.driver().stream_synchronize(held)?;
    rig.copy_async(target.all(), memory.all(), other)?;
    rig.driver().stream_synchronize(other)?;
    check_eq!(target.read_all(), vec![0; 40], "bytes after the gate");
    rig.close()
}
