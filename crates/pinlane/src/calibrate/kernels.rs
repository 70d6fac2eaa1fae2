//! Kernels, device memory, and what lies between two engines.

use pinlane_model::{CostCurve, KernelCosts};

use super::bench::{BYTES, Bench, MIB, median};
use super::fit::rate;
use crate::Result;

/// Launches one behind the other, and a kernel that reads and writes much memory.
pub(super) fn measure(bench: &Bench<'_>) -> Result<KernelCosts> {
    let launch_ns = bench.device_ns(100, || bench.kernels.spin(&bench.stream, 0))?;
    let mut words = bench.device.alloc::<u32>(BYTES / 4)?;
    let ns = bench.device_ns(8, || bench.kernels.add(&bench.stream, 1, &mut words))?;
    Ok(KernelCosts {
        launch_ns,
        bytes_per_s: rate(2 * BYTES, ns.saturating_sub(launch_ns)),
    })
}

/// Copies inside of device memory, which cost a launch too.
pub(super) fn d2d_bytes_per_s(bench: &Bench<'_>, kernels: &KernelCosts) -> Result<u64> {
    let source = bench.device.alloc::<u8>(BYTES)?;
    let mut target = bench.device.alloc::<u8>(BYTES)?;
    let ns = bench.device_ns(8, || bench.stream.copy_on_device(&source, &mut target))?;
    Ok(rate(BYTES, ns.saturating_sub(kernels.launch_ns)))
}

/// From the end of one stage of a chunk to the start of the next, on one stream: as in a pipeline,
/// with a copy, a kernel and a copy back of the size of small chunks.
pub(super) fn handover_ns(bench: &mut Bench<'_>, up: &CostCurve, down: &CostCurve) -> Result<u64> {
    const CHUNK: usize = MIB;
    const CHUNKS: usize = 50;
    const SPIN_NS: u64 = 20_000;
    let spin_ns = bench.device_ns(CHUNKS, || bench.kernels.spin(&bench.stream, SPIN_NS))?;
    let mut there = bench.device.alloc::<u8>(CHUNK)?;
    let mut inbound = std::mem::replace(&mut bench.inbound, bench.device.pinned(0)?);
    let times = (0..bench.rounds()).map(|_| {
        let (start, end) = (bench.timing()?, bench.timing()?);
        bench.device.scope(|scope| {
            // Until all has been submitted.
            bench.kernels.spin(&bench.stream, CHUNKS as u64 * 40_000)?;
            bench.stream.record(&start)?;
            let mut rest = inbound.range_mut(..);
            for _ in 0..CHUNKS {
                let (here, later) = rest.split_at(CHUNK);
                rest = later;
                scope.upload(&bench.stream, bench.outbound.range(..CHUNK), &mut there)?;
                bench.kernels.spin(&bench.stream, SPIN_NS)?;
                scope.download(&bench.stream, &there, here)?;
            }
            bench.stream.record(&end)
        })?;
        bench.stream.synchronize()?;
        Ok(u64::try_from(start.elapsed_ns(&end)?).unwrap_or(0) / CHUNKS as u64)
    });
    let chunk_ns = median(times)?;
    bench.inbound = inbound;
    let working_ns = up.ns(CHUNK as u64) + spin_ns + down.ns(CHUNK as u64);
    Ok(chunk_ns.saturating_sub(working_ns) / 3)
}
