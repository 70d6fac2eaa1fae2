//! Cost of page-locking.

use pinlane_model::HostMemoryCosts;

use super::bench::{BYTES, Bench, MIB};
use super::fit::area;
use pinlane_core::{Error, Result};

pub(super) fn measure(bench: &Bench<'_>) -> Result<HostMemoryCosts> {
    let sizes = [MIB, BYTES];
    let mut times = [[0; 2]; 4];
    for (at, bytes) in sizes.into_iter().enumerate() {
        // The first of each is a warm-up.
        for _ in 0..2 {
            // The one kind that always uses the driver's own allocation.
            let (pinned, alloc_ns) = bench.timed(|| bench.device.write_combined::<u8>(bytes));
            let pinned = pinned?;
            let ((), free_ns) = bench.timed(|| drop(pinned));
            [times[0][at], times[1][at]] = [alloc_ns, free_ns];
            if bench.device.info().can_register {
                let memory = vec![1u8; bytes];
                let (registered, register_ns) = bench.timed(|| bench.device.register(memory));
                let registered = registered?;
                let (memory, unregister_ns) =
                    bench.timed(|| registered.into_inner().map_err(Error::from));
                memory?;
                [times[2][at], times[3][at]] = [register_ns, unregister_ns];
            }
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
