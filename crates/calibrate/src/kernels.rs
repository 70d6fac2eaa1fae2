//! Kernels: launches, and the rate at which they read and write memory.

use pinlane_model::KernelCosts;

use super::fit::rate;
use super::timing_harness::{BYTES, Bench};
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
