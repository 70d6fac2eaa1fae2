//! The express lane. Not measured on a simulated device, whose clock does not see host threads.

use pinlane_model::ExpressCosts;

use super::bench::{Bench, MIB, median};
use super::fit::rate;
use crate::Result;

const SMALL: usize = 32 * MIB;
const LARGE: usize = 256 * MIB;
const ROUNDS: usize = 5;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Option<ExpressCosts>> {
    if bench.device.info().simulated.is_some() {
        return Ok(None);
    }
    let source = vec![1u8; LARGE];
    let mut target = vec![1u8; LARGE];
    let mut there = bench.device.alloc::<u8>(LARGE)?;
    let kept = bench.device.alloc::<u8>(LARGE)?;
    bench.stream.copy_to_device(&source, &mut there)?; // wakes the lanes, pins the ring
    let mut up = |bytes: usize| -> Result<u64> {
        median((0..ROUNDS).map(|_| {
            let began = bench.now_ns();
            let place = there.range_mut(..bytes);
            bench.stream.copy_to_device(&source[..bytes], place)?;
            bench.stream.synchronize()?;
            Ok(bench.now_ns() - began)
        }))
    };
    let (up_small, up_large) = (up(SMALL)?, up(LARGE)?);
    let mut down = |bytes: usize| -> Result<u64> {
        median((0..ROUNDS).map(|_| {
            let began = bench.now_ns();
            let place = kept.range(..bytes);
            bench.stream.copy_to_host(place, &mut target[..bytes])?;
            Ok(bench.now_ns() - began)
        }))
    };
    let (down_small, down_large) = (down(SMALL)?, down(LARGE)?);
    let both = median((0..ROUNDS).map(|_| {
        let began = bench.now_ns();
        let (stream, other) = (&bench.stream, &bench.other);
        let (there, source) = (&mut there, &source);
        std::thread::scope(|threads| {
            let up = threads.spawn(move || {
                stream.copy_to_device(source, there)?;
                stream.synchronize()
            });
            let down = other.copy_to_host(&kept, &mut target);
            let up = up.join();
            up.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                .and(down)
        })?;
        Ok(bench.now_ns() - began)
    }))?;
    let slower = up_large.max(down_large).max(1);
    let stage_bytes_per_s = rate(LARGE - SMALL, up_large.saturating_sub(up_small));
    let small_ns = (SMALL as u128 * 1_000_000_000 / u128::from(stage_bytes_per_s.max(1))) as u64;
    Ok(Some(ExpressCosts {
        lanes: bench.device.express_config().lanes as u32,
        stage_bytes_per_s,
        unstage_bytes_per_s: rate(LARGE - SMALL, down_large.saturating_sub(down_small)),
        both_percent: (both * 100 / slower).max(100),
        start_ns: up_small.saturating_sub(small_ns),
    }))
}
