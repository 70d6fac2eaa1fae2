//! Copies over the link and within the device, and the gaps between them.

use pinlane_model::{CallCosts, CostCurve, KernelCosts};

use super::fit::{curve, rate};
use super::timing_harness::{BYTES, Bench, COPIES, KIB, MIB};
use pinlane_core::{PinnedBuf, Result};

/// Knots of the curves.
const SIZES: [usize; 9] = [
    4 * KIB,
    16 * KIB,
    64 * KIB,
    256 * KIB,
    MIB,
    4 * MIB,
    8 * MIB,
    16 * MIB,
    BYTES,
];

/// Engine time of a copy between other copies: to the device, and back.
pub(super) fn pinned(bench: &mut Bench<'_>) -> Result<[CostCurve; 2]> {
    in_turns(bench, |bench, bytes| {
        let count = (COPIES * BYTES / bytes).min(100);
        Ok([bench.up_ns(bytes, count)?, bench.down_ns(bytes, count)?])
    })
}

/// Time of a driver call for pageable memory, minus the cost of any call.
pub(super) fn pageable(bench: &mut Bench<'_>, calls: &CallCosts) -> Result<[CostCurve; 2]> {
    // An upload call has done its work when it returns; a download call waits.
    let up_calls_ns = calls.submit_ns + calls.sync_ns;
    let down_calls_ns = up_calls_ns + calls.wake_ns;
    let source = vec![1u8; BYTES];
    let mut target = vec![1u8; BYTES];
    let mut on_device = bench.device.alloc::<u8>(BYTES)?;
    in_turns(bench, |bench, bytes| {
        let (stream, count) = (&bench.stream, (4 * MIB / bytes).clamp(1, 50));
        let up_ns = bench.calls_ns(count, || {
            stream.driver_copy_to_device(&source[..bytes], on_device.range_mut(..bytes))
        })?;
        let down_ns = bench.calls_ns(count, || {
            stream.driver_copy_to_host(on_device.range(..bytes), &mut target[..bytes])
        })?;
        Ok([
            up_ns.saturating_sub(up_calls_ns),
            down_ns.saturating_sub(down_calls_ns),
        ])
    })
}

/// The curves of both directions, measured size by size, over several rounds.
fn in_turns<'a>(
    bench: &mut Bench<'a>,
    mut measure: impl FnMut(&mut Bench<'a>, usize) -> Result<[u64; 2]>,
) -> Result<[CostCurve; 2]> {
    let times = bench.medians(|bench| {
        let mut times = [0; 2 * SIZES.len()];
        for (at, bytes) in SIZES.into_iter().enumerate() {
            [times[at], times[SIZES.len() + at]] = measure(bench, bytes)?;
        }
        Ok(times)
    })?;
    let (up, down) = times.split_at(SIZES.len());
    Ok([up, down].map(|times| {
        let points: Vec<_> = SIZES.into_iter().zip(times.iter().copied()).collect();
        curve(&points)
    }))
}

/// Time of a copy while the other direction is busy, in percent of its time alone.
pub(super) fn both_ways_percent(bench: &mut Bench<'_>) -> Result<u64> {
    // Typical chunk size of a pipeline: very large copies disturb each other more.
    const EACH: usize = 16 * MIB;
    const COUNT: usize = COPIES * BYTES / EACH;
    let (outbound, mut inbound) = far_memory(bench, COUNT * EACH)?;
    let mut round = 0;
    let mut there = bench.device.alloc::<u8>(EACH)?;
    let [percent] = bench.medians(|bench| {
        let alone_ns = bench.up_ns(EACH, COUNT)?;
        let alone_ns = alone_ns.max(bench.down_ns(EACH, COUNT)?).max(1);
        let both_ns = bench.span_ns(2 * COUNT, |end| {
            let (begin, came_back) = (bench.device.event()?, bench.device.event()?);
            bench.stream.record(&begin)?;
            bench.other.wait(&begin)?;
            let start = round * COUNT * EACH % outbound.len();
            round += 1;
            bench.device.scope(|scope| {
                let window = inbound.range_mut(start..start + COUNT * EACH);
                for (number, here) in window.chunks(EACH).enumerate() {
                    let at = start + number * EACH;
                    let source = outbound.range(at..at + EACH);
                    scope.upload(&bench.stream, source, &mut there)?;
                    scope.download(&bench.other, bench.back.range(..EACH), here)?;
                }
                bench.other.record(&came_back)?;
                bench.stream.wait(&came_back)?;
                end.mark()
            })
        })? / COUNT as u64;
        Ok([(both_ns * 100 + alone_ns / 2) / alone_ns])
    })?;
    Ok(percent.max(100))
}

/// Memory to allocate, in multiples of what one round uses.
const WINDOWS: usize = 4;

/// Memory to send from and receive into. Large enough that it has left the CPU caches before it is used
/// again, as in a real program. Copies in both directions at once are slower from uncached memory.
fn far_memory(bench: &Bench<'_>, bytes: usize) -> Result<(PinnedBuf<u8>, PinnedBuf<u8>)> {
    let get = |windows: usize| -> Result<_> {
        let mut outbound = bench.device.pinned(windows * bytes)?;
        outbound.fill(1);
        Ok((outbound, bench.device.pinned(windows * bytes)?))
    };
    match bench.device.info().simulated {
        Some(_) => get(1),
        // Only little may be page-locked here.
        None => get(WINDOWS).or_else(|_| get(1)),
    }
}

/// Rate of copies within device memory, which also cost a launch.
pub(super) fn d2d_bytes_per_s(bench: &mut Bench<'_>, kernels: &KernelCosts) -> Result<u64> {
    let source = bench.device.alloc::<u8>(BYTES)?;
    let mut target = bench.device.alloc::<u8>(BYTES)?;
    let ns = bench.device_ns(8, |bench| bench.stream.copy_on_device(&source, &mut target))?;
    Ok(rate(BYTES, ns.saturating_sub(kernels.launch_ns)))
}

/// Gap from the end of a copy to the start of another stream's copy on the same engine. Uses several
/// streams with a kernel between each two copies, so that the engine cannot take two copies of one stream
/// in a row. The time of a copy alone is measured alongside in every round.
pub(super) fn switch_ns(bench: &mut Bench<'_>) -> Result<u64> {
    const BYTES: usize = MIB;
    const STREAMS: usize = 4;
    const COPIES: usize = 100;
    let streams = (0..STREAMS).map(|_| bench.device.stream());
    let streams = streams.collect::<Result<Vec<_>>>()?;
    let there = (0..STREAMS).map(|_| bench.device.alloc::<u8>(BYTES));
    let mut there = there.collect::<Result<Vec<_>>>()?;
    let [switch_ns] = bench.medians(|bench| {
        let alone_ns = bench.up_ns(BYTES, COPIES)?;
        let turns_ns = bench.span_ns(2 * COPIES, |end| {
            let begin = bench.device.event()?;
            bench.stream.record(&begin)?;
            streams.iter().try_for_each(|stream| stream.wait(&begin))?;
            bench.device.scope(|scope| {
                for copy in 0..COPIES {
                    let (stream, target) = (&streams[copy % STREAMS], &mut there[copy % STREAMS]);
                    scope.upload(stream, bench.outbound.range(..BYTES), target)?;
                    bench.kernels.spin(stream, 0)?;
                }
                for stream in &streams {
                    let done = bench.device.event()?;
                    stream.record(&done)?;
                    bench.stream.wait(&done)?;
                }
                end.mark()
            })
        })? / COPIES as u64;
        Ok([turns_ns.saturating_sub(alone_ns)])
    })?;
    Ok(switch_ns)
}

/// Gap from the end of one stage of a chunk to the start of the next on one stream, as in a pipeline: a
/// copy, a kernel and a copy back of the size of small chunks, minus the three alone.
pub(super) fn handover_ns(bench: &mut Bench<'_>) -> Result<u64> {
    const CHUNK: usize = MIB;
    const CHUNKS: usize = 50;
    const SPIN_NS: u64 = 20_000;
    let mut there = bench.device.alloc::<u8>(CHUNK)?;
    let mut inbound = bench.device.pinned::<u8>(CHUNKS * CHUNK)?;
    let [handover_ns] = bench.medians(|bench| {
        let kernels_ns = bench.span_ns(CHUNKS, |end| {
            for _ in 0..CHUNKS {
                bench.kernels.spin(&bench.stream, SPIN_NS)?;
            }
            end.mark()
        })? / CHUNKS as u64;
        let alone_ns = bench.up_ns(CHUNK, CHUNKS)? + kernels_ns + bench.down_ns(CHUNK, CHUNKS)?;
        let chunk_ns = bench.span_ns(3 * CHUNKS, |end| {
            bench.device.scope(|scope| {
                for here in inbound.range_mut(..).chunks(CHUNK) {
                    scope.upload(&bench.stream, bench.outbound.range(..CHUNK), &mut there)?;
                    bench.kernels.spin(&bench.stream, SPIN_NS)?;
                    scope.download(&bench.stream, &there, here)?;
                }
                end.mark()
            })
        })? / CHUNKS as u64;
        Ok([chunk_ns.saturating_sub(alone_ns) / 3])
    })?;
    Ok(handover_ns)
}
