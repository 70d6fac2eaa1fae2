//! Host cost of driver calls, and of page-locking.

use pinlane_model::{CallCosts, CostCurve, HostMemoryCosts};

use super::fit::area;
use super::timing_harness::{BYTES, Bench, KIB, MIB};
use pinlane_core::{Error, Result};

const SMALL: usize = 4 * KIB;
const CALLS: usize = 100;

pub(super) fn measure(bench: &mut Bench<'_>, up: &CostCurve) -> Result<CallCosts> {
    let event = bench.device.event()?;
    let event_ns = bench.host_ns(CALLS, |bench| bench.stream.record(&event))?;
    let query_ns = bench.host_ns(CALLS, |_| event.is_done().map(drop))?;
    let sync_ns = bench.host_ns(CALLS, |_| event.synchronize())?;
    let submit_ns = bench.host_ns(CALLS, |bench| bench.kernels.spin(&bench.stream, 0))?;
    // The library records an event behind each.
    let submit_ns = submit_ns.saturating_sub(event_ns);
    let mut there = bench.device.alloc::<u8>(SMALL)?;
    let mut pinned = Some(bench.device.pinned::<u8>(SMALL)?);
    let round_trip_ns = bench.host_ns(CALLS, |bench| {
        let source = pinned.take().expect("put back below");
        let sent = bench.stream.upload(source, &mut there)?;
        pinned = Some(sent.wait()?);
        Ok(())
    })?;
    // The copy continues while its event is recorded and the wait begins.
    let known_ns = submit_ns + up.ns(SMALL as u64).max(event_ns + sync_ns);
    let device_alloc_ns = bench.host_ns(10, |bench| bench.device.alloc::<u8>(MIB).map(drop))?;
    let stream_ns = bench.host_ns(10, |bench| bench.device.stream().map(drop))?;
    let module_ns = bench.host_ns(2, |bench| {
        bench.device.load_ptx(pinlane_kernels::PTX).map(drop)
    })?;
    let other_ns = bench.host_ns(CALLS, |bench| bench.device.memory_info().map(drop))?;
    Ok(CallCosts {
        submit_ns,
        query_ns,
        event_ns,
        sync_ns,
        wake_ns: round_trip_ns.saturating_sub(known_ns),
        // Each sample is an allocation and a free.
        device_alloc_ns: device_alloc_ns / 2,
        stream_ns: stream_ns / 2,
        module_ns: module_ns / 2,
        other_ns,
    })
}

/// Cost of page-locking.
pub(super) fn page_locking(bench: &Bench<'_>) -> Result<HostMemoryCosts> {
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
