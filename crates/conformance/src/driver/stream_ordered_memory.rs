//! Stream-ordered device memory.

use pinlane_driver::{ErrorKind, Result, StreamHandle};

use crate::Outcome;
use crate::case::cases;
use crate::outcome::{check, check_eq, check_error};
use crate::pattern::pattern;
use crate::rig::{Memory, Rig};

cases! {
    needs Rig::needs_stream_memory;
    "stream-memory/alloc-and-free" => alloc_and_free,
    "stream-memory/alloc-is-aligned" => alloc_is_aligned,
    "stream-memory/used-by-its-stream" => |rig| round_trip(rig, rig.stream()?),
    "stream-memory/on-the-default-stream" => |rig| round_trip(rig, rig.default_stream()),
    "stream-memory/free-comes-after-earlier-work" => |rig| rounds(rig, &[rig.stream()?], 20),
    "stream-memory/used-by-another-stream" => used_by_another,
    "stream-memory/freed-by-another-stream" => freed_by_another_stream,
    "stream-memory/reused-across-streams" => |rig| rounds(rig, &rig.streams(3)?, 30),
    "stream-memory/too-much-is-out-of-memory" => too_much,
}

fn alloc_and_free(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    for bytes in [1, 257, 4096, 1 << 20, 16 << 20] {
        let memory = rig.device_async(bytes, stream)?;
        check!(memory.address(0) != 0, "{bytes} bytes at address 0");
        rig.free_memory(memory)?;
    }
    Ok(rig.stream_synchronize(stream)?)
}

fn alloc_is_aligned(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    for bytes in [1, 3, 513, 70_000] {
        let memory = rig.device_async(bytes, stream)?;
        check_eq!(memory.address(0) % 256, 0, "alignment of {bytes} bytes");
    }
    Ok(())
}

/// Allocates, copies in, copies out and frees in one stream, with one wait at the end.
fn round_trip(rig: &Rig, stream: StreamHandle) -> Outcome {
    let data = pattern(5, 100_001);
    let (source, target) = (rig.pinned_from(&data)?, rig.pinned(data.len())?);
    let memory = rig.device_async(data.len(), stream)?;
    rig.copy_async(memory.all(), source.all(), stream)?;
    rig.copy_async(target.all(), memory.all(), stream)?;
    rig.free_memory(memory)?;
    rig.stream_synchronize(stream)?;
    rig.check(target.all(), &data, "round trip")
}

/// Each round may reuse the memory of the one before: the order of streams must keep them apart.
fn rounds(rig: &Rig, streams: &[StreamHandle], rounds: u8) -> Outcome {
    let freed = rig.event()?;
    let target = rig.pinned(usize::from(rounds) * 2000)?;
    let part = |round| target.span(usize::from(round - 1) * 2000, 2000);
    // The number of a round is what it writes. From 1, since both memories may be zero before.
    for (round, stream) in (1..=rounds).zip(streams.iter().copied().cycle()) {
        // In one stream, its own order must do.
        if streams.len() > 1 {
            rig.stream_wait_event(stream, freed)?;
        }
        let memory = rig.device_async(2000, stream)?;
        rig.memset(memory.all(), round, stream)?;
        rig.copy_async(part(round), memory.all(), stream)?;
        rig.free_memory(memory)?;
        rig.event_record(freed, stream)?;
    }
    rig.event_synchronize(freed)?;
    (1..=rounds)
        .try_for_each(|round| rig.check(part(round), &[round; 2000], &format!("round {round}")))
}

fn used_by_another(rig: &Rig) -> Outcome {
    on_two_streams(rig, |memory, one, other| {
        let used = rig.event()?;
        rig.event_record(used, other)?;
        rig.stream_wait_event(one, used)?;
        rig.free_memory(memory)?;
        rig.stream_synchronize(one)
    })
}

fn freed_by_another_stream(rig: &Rig) -> Outcome {
    on_two_streams(rig, |memory, _, other| {
        rig.free_memory_on(memory, other)?;
        rig.stream_synchronize(other)
    })
}

/// One stream allocates and writes, the other reads. Then `free` frees and waits.
fn on_two_streams<'r>(
    rig: &'r Rig,
    free: impl FnOnce(Memory<'r>, StreamHandle, StreamHandle) -> Result<()>,
) -> Outcome {
    let (one, other) = (rig.stream()?, rig.stream()?);
    let ready = rig.event()?;
    let target = rig.pinned(5000)?;
    let memory = rig.device_async(5000, one)?;
    rig.memset(memory.all(), 0x42, one)?;
    rig.event_record(ready, one)?;
    rig.stream_wait_event(other, ready)?;
    rig.copy_async(target.all(), memory.all(), other)?;
    free(memory, one, other)?;
    rig.check(target.all(), &[0x42; 5000], "what the other read")
}

fn too_much(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let total = rig.memory_info()?.total_bytes;
    let refused = rig.device_async(total as usize * 2, stream);
    check_error!(refused, ErrorKind::OutOfMemory);
    round_trip(rig, stream)?;
    Ok(rig.synchronize()?)
}
