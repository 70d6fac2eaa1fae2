//! Copies over the link.

use pinlane_model::{CallCosts, CostCurve};

use super::bench::{BYTES, Bench, COPIES, KIB, MIB, median};
use super::fit::curve;
use crate::Result;

/// Where the curves have their knots.
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

/// What the engine needs for a copy when others are before and behind it: to the device, and back.
pub(super) fn pinned(bench: &mut Bench<'_>) -> Result<[CostCurve; 2]> {
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for bytes in SIZES {
        let count = (COPIES * BYTES / bytes).min(100);
        up.push((bytes, bench.up_ns(bytes, count)?));
        down.push((bytes, bench.down_ns(bytes, count)?));
    }
    Ok([curve(&up), curve(&down)])
}

/// What a call of the driver's takes for ordinary memory, less what all calls cost.
pub(super) fn pageable(bench: &Bench<'_>, calls: &CallCosts) -> Result<[CostCurve; 2]> {
    // On the way there the call has done its work when it returns, on the way back it waits.
    let up_calls_ns = calls.submit_ns + calls.sync_ns;
    let down_calls_ns = up_calls_ns + calls.wake_ns;
    let source = vec![1u8; BYTES];
    let mut target = vec![1u8; BYTES];
    let mut on_device = bench.device.alloc::<u8>(BYTES)?;
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for bytes in SIZES {
        let count = (4 * MIB / bytes).clamp(1, 50);
        let ns = bench.host_ns(count, || {
            let place = on_device.range_mut(..bytes);
            bench.stream.driver_copy_to_device(&source[..bytes], place)
        })?;
        up.push((bytes, ns.saturating_sub(up_calls_ns)));
        let ns = bench.host_ns(count, || {
            let place = on_device.range(..bytes);
            bench
                .stream
                .driver_copy_to_host(place, &mut target[..bytes])
        })?;
        down.push((bytes, ns.saturating_sub(down_calls_ns)));
    }
    Ok([curve(&up), curve(&down)])
}

/// What a copy takes while the other direction is busy, in percent of its time alone.
pub(super) fn both_ways_percent(bench: &mut Bench<'_>) -> Result<u64> {
    // Copies of the size that pipelines are made of: very large ones disturb each other more.
    const EACH: usize = 16 * MIB;
    const COUNT: usize = COPIES * BYTES / EACH;
    let alone_ns = bench.up_ns(EACH, COUNT)?;
    let alone_ns = alone_ns.max(bench.down_ns(EACH, COUNT)?).max(1);
    let mut inbound = bench.device.pinned::<u8>(COUNT * EACH)?;
    let mut there = bench.device.alloc::<u8>(EACH)?;
    // A round is short, and busy moments of the machine shall not decide.
    let times = (0..bench.rounds_times(3)).map(|_| {
        let (begin, end, came_back) = (bench.timing()?, bench.timing()?, bench.device.event()?);
        bench.device.scope(|scope| {
            bench.kernels.spin(&bench.stream, 200_000)?;
            bench.stream.record(&begin)?;
            bench.other.wait(&begin)?;
            let mut rest = inbound.range_mut(..);
            for _ in 0..COUNT {
                let (here, later) = rest.split_at(EACH);
                rest = later;
                scope.upload(&bench.stream, bench.outbound.range(..EACH), &mut there)?;
                scope.download(&bench.other, bench.back.range(..EACH), here)?;
            }
            bench.other.record(&came_back)?;
            bench.stream.wait(&came_back)?;
            bench.stream.record(&end)
        })?;
        bench.stream.synchronize()?;
        Ok(u64::try_from(begin.elapsed_ns(&end)?).unwrap_or(0) / COUNT as u64)
    });
    let both_ns = median(times)?;
    Ok(((both_ns * 100 + alone_ns / 2) / alone_ns).max(100))
}
