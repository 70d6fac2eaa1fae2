//! Cost of page-locking.

use pinlane_model::HostMemoryCosts;

use super::bench::{BYTES, Bench, MIB};
use super::fit::area;
use pinlane_core::Result;

pub(super) fn measure(bench: &Bench<'_>) -> Result<HostMemoryCosts> {
    let sizes = [MIB, BYTES];
    let mut times = [[0; 2]; 4];
    for (at, bytes) in sizes.into_iter().enumerate() {
        // The first of each is a warm-up.
        for _ in 0..2 {
            // The one kind that always uses the driver's own allocation.
            let began = bench.now_ns();
            let pinned = bench.device.write_combined::<u8>(bytes)?;
            times[0][at] = bench.now_ns().saturating_sub(began);
            let began = bench.now_ns();
            drop(pinned);
            times[1][at] = bench.now_ns().saturating_sub(began);
            if !bench.device.info().can_register {
                continue;
            }
            let memory = vec![1u8; bytes];
            let began = bench.now_ns();
            let registered = bench.device.register(memory)?;
            times[2][at] = bench.now_ns().saturating_sub(began);
            let began = bench.now_ns();
            let memory = registered.into_inner()?;
            times[3][at] = bench.now_ns().saturating_sub(began);
            drop(memory);
        }
    }
    let [alloc, free, register, unregister] =
        times.map(|[small, large]| area((sizes[0], small), (sizes[1], large)));
    Ok(HostMemoryCosts {
        alloc,
        free,
        register,
        unregister,
    })
}
