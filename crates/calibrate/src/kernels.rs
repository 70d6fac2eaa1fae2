//! Kernels, device memory, and the gap between two engines.

use pinlane_model::KernelCosts;

use super::bench::{BYTES, Bench, MIB};
use super::fit::rate;
use pinlane_core::Result;

/// Measures back-to-back launches, and a kernel that reads and writes much memory.
pub(super) fn measure(bench: &mut Bench<'_>) -> Result<KernelCosts> {
    let launch_ns = bench.device_ns(100, |bench| bench.kernels.spin(&bench.stream, 0))?;
    let mut words = bench.device.alloc::<u32>(BYTES / 4)?;
    let ns = bench.device_ns(8, |bench| bench.kernels.add(&bench.stream, 1, &mut words))?;
    Ok(KernelCosts {
        launch_ns,
        bytes_per_s: rate(2 * BYTES, ns.saturating_sub(launch_ns)),
    })
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
