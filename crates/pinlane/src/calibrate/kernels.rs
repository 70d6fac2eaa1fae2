//! Kernels, device memory, and what lies between two engines.

use pinlane_model::{CostCurve, KernelCosts};

use super::bench::{BYTES, Bench, KIB};
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

/// From the end of a copy to the start of the kernel behind it, and the other way round.
pub(super) fn handover_ns(bench: &Bench<'_>, up: &CostCurve, kernels: &KernelCosts) -> Result<u64> {
    const SMALL: usize = 4 * KIB;
    let mut there = bench.device.alloc::<u8>(SMALL)?;
    let pair_ns = bench.device.scope(|scope| {
        bench.device_ns(50, || {
            let source = bench.outbound.range(..SMALL);
            scope.upload(&bench.stream, source, &mut there)?;
            bench.kernels.spin(&bench.stream, 0)
        })
    })?;
    let working_ns = up.ns(SMALL as u64) + kernels.launch_ns;
    Ok(pair_ns.saturating_sub(working_ns) / 2)
}
