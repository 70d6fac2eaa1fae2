//! Stream-ordered device memory.

use pinlane_driver::ErrorKind;

use crate::outcome::{check, check_eq, check_error, needs};
use crate::pattern::{check_bytes, pattern};
use crate::rig::{HostKind, Rig};
use crate::{Case, NotPassed, Outcome, TestDevice};

pub(super) const CASES: &[Case] = &[
    Case::new("stream-memory/alloc-and-free", alloc_and_free),
    Case::new("stream-memory/alloc-is-aligned", alloc_is_aligned),
    Case::new("stream-memory/used-by-its-stream", used_by_its_stream),
    Case::new("stream-memory/on-the-default-stream", on_default_stream),
    Case::new("stream-memory/free-comes-after-earlier-work", free_in_order),
    Case::new("stream-memory/used-by-another-stream", used_by_another),
    Case::new(
        "stream-memory/freed-by-another-stream",
        freed_by_another_stream,
    ),
    Case::new("stream-memory/reused-across-streams", reused_across_streams),
    Case::new("stream-memory/too-much-is-out-of-memory", too_much),
];

fn rig(test: &TestDevice<'_>) -> Result<Rig, NotPassed> {
    let rig = test.rig()?;
    needs(
        rig.driver().info().stream_ordered_alloc,
        "no stream-ordered allocation",
    )?;
    Ok(rig)
}

fn alloc_and_free(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let stream = rig.stream()?;
    for bytes in [1, 257, 4096, 1 << 20, 16 << 20] {
        let memory = rig.device_async(bytes, stream)?;
        check!(memory.base().0 != 0, "{bytes} bytes at address 0");
        rig.free_device(memory)?;
    }
    rig.driver().stream_synchronize(stream)?;
    rig.close()
}

fn alloc_is_aligned(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let stream = rig.stream()?;
    for bytes in [1, 3, 513, 70_000] {
        let memory = rig.device_async(bytes, stream)?;
        check_eq!(memory.base().0 % 256, 0, "alignment of {bytes} bytes");
    }
    rig.close()
}

fn used_by_its_stream(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let stream = rig.stream()?;
    round_trip(&rig, stream)?;
    rig.close()
}

fn on_default_stream(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    round_trip(&rig, rig.driver().default_stream())?;
    rig.close()
}

/// Allocates, copies in, copies out and frees in one stream, with one wait at the end.
fn round_trip(rig: &Rig, stream: pinlane_driver::StreamHandle) -> Outcome {
    let data = pattern(5, 100_001);
    let source = rig.host(HostKind::Pinned, data.len())?;
    let target = rig.host(HostKind::Pinned, data.len())?;
    source.write(0, &data);
    target.fill(0);
    let memory = rig.device_async(data.len(), stream)?;
    rig.copy_async(memory.all(), source.all(), stream)?;
    rig.copy_async(target.all(), memory.all(), stream)?;
    rig.free_device(memory)?;
    rig.driver().stream_synchronize(stream)?;
    check_bytes(&target.read_all(), &data, "round trip")
}

fn free_in_order(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let stream = rig.stream()?;
    let rounds = 20;
    let target = rig.host(HostKind::Pinned, rounds * 1000)?;
    // A round may reuse the memory of the one before: stream order must keep them apart.
    for round in 0..rounds {
        let memory = rig.device_async(1000, stream)?;
        rig.memset(memory.all(), round as u8, stream)?;
        rig.copy_async(target.span(round * 1000, 1000), memory.all(), stream)?;
        rig.free_device(memory)?;
    }
    rig.driver().stream_synchronize(stream)?;
    for round in 0..rounds {
        let what = format!("round {round}");
        check_bytes(
            &target.read(round * 1000, 1000),
            &[round as u8; 1000],
            &what,
        )?;
    }
    rig.close()
}

fn used_by_another(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let (one, other) = (rig.stream()?, rig.stream()?);
    let (ready, used) = (rig.event()?, rig.event()?);
    let target = rig.host(HostKind::Pinned, 5000)?;
    let memory = rig.device_async(5000, one)?;
    rig.memset(memory.all(), 0x42, one)?;
    rig.driver().event_record(ready, one)?;
    rig.driver().stream_wait_event(other, ready)?;
    rig.copy_async(target.all(), memory.all(), other)?;
    rig.driver().event_record(used, other)?;
    rig.driver().stream_wait_event(one, used)?;
    rig.free_device(memory)?;
    rig.driver().stream_synchronize(one)?;
    check_bytes(&target.read_all(), &[0x42; 5000], "what the other read")?;
    rig.close()
}

fn freed_by_another_stream(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let (one, other) = (rig.stream()?, rig.stream()?);
    let ready = rig.event()?;
    let target = rig.host(HostKind::Pinned, 5000)?;
    let memory = rig.device_async(5000, one)?;
    rig.memset(memory.all(), 0x43, one)?;
    rig.driver().event_record(ready, one)?;
    rig.driver().stream_wait_event(other, ready)?;
    rig.copy_async(target.all(), memory.all(), other)?;
    rig.free_device_on(memory, other)?;
    rig.driver().stream_synchronize(other)?;
    check_bytes(&target.read_all(), &[0x43; 5000], "what the other read")?;
    rig.close()
}

fn reused_across_streams(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let streams = [rig.stream()?, rig.stream()?, rig.stream()?];
    let freed = rig.event()?;
    let rounds = 30;
    let target = rig.host(HostKind::Pinned, rounds * 2000)?;
    for round in 0..rounds {
        let stream = streams[round % 3];
        rig.driver().stream_wait_event(stream, freed)?;
        let memory = rig.device_async(2000, stream)?;
        rig.memset(memory.all(), round as u8, stream)?;
        rig.copy_async(target.span(round * 2000, 2000), memory.all(), stream)?;
        rig.free_device(memory)?;
        rig.driver().event_record(freed, stream)?;
    }
    rig.driver().event_synchronize(freed)?;
    for round in 0..rounds {
        let what = format!("round {round}");
        check_bytes(
            &target.read(round * 2000, 2000),
            &[round as u8; 2000],
            &what,
        )?;
    }
    rig.close()
}

fn too_much(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let stream = rig.stream()?;
    let total = rig.driver().memory_info()?.total_bytes;
    check_error!(
        rig.device_async(total as usize * 2, stream)
            .map(|memory| memory.base()),
        ErrorKind::OutOfMemory
    );
    round_trip(&rig, stream)?;
    rig.driver().synchronize()?;
    rig.close()
}
