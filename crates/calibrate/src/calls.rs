//! Host cost of driver calls.

use pinlane_model::{CallCosts, CostCurve};

use super::bench::{Bench, KIB, MIB};
use pinlane_core::Result;

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
