//! The express lane. Not measured on a simulated device, whose clock does not see host threads.

use pinlane_model::{Direction, ExpressCosts};

use super::bench::{Bench, MIB, median};
use super::fit::rate;
use crate::pipeline::{Pipeline, PipelineConfig};
use crate::{Error, Result};

/// Between these the time grows evenly.
const SMALL: usize = 24 * MIB;
const LARGE: usize = 128 * MIB;
const ROUNDS: usize = 9;

/// Chunks of a pipeline by which both directions at once are measured: how large, and how many more
/// in the longer of two runs.
const CHUNKS: [(usize, [usize; 2]); 2] = [(20 * MIB, [4, 18]), (80 * MIB, [2, 6])];

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
            Ok(bench.now_ns().saturating_sub(began))
        }))
    };
    let (up_small, up_large) = (up(SMALL)?, up(LARGE)?);
    let mut down = |bytes: usize| -> Result<u64> {
        median((0..ROUNDS).map(|_| {
            let began = bench.now_ns();
            let place = kept.range(..bytes);
            bench.stream.copy_to_host(place, &mut target[..bytes])?;
            Ok(bench.now_ns().saturating_sub(began))
        }))
    };
    let (down_small, down_large) = (down(SMALL)?, down(LARGE)?);
    let (up_latency_ns, up_bytes_per_s) = line(up_small, up_large)?;
    let (down_latency_ns, down_bytes_per_s) = line(down_small, down_large)?;
    let mut costs = ExpressCosts {
        lanes: bench.device.express_config().lanes as u32,
        up_latency_ns,
        up_bytes_per_s,
        down_latency_ns,
        down_bytes_per_s,
        both_percent: 100,
        both_latency_ns: 0,
    };
    drop((source, target, there, kept));
    both(bench, &mut costs)?;
    Ok(Some(costs))
}

/// What chunk after chunk takes that goes in and comes out, and from that how the directions slow
/// each other.
fn both(bench: &Bench<'_>, costs: &mut ExpressCosts) -> Result<()> {
    let most = CHUNKS.map(|(bytes, [_, many])| bytes * many);
    let most = most.into_iter().max().unwrap_or(0);
    let source = vec![1u8; most];
    let mut target = vec![1u8; most];
    let mut chunk_ns = [0; 2];
    for (found, (bytes, counts)) in chunk_ns.iter_mut().zip(CHUNKS) {
        let config = PipelineConfig {
            chunk_bytes: bytes,
            ..PipelineConfig::default()
        };
        let pipeline = Pipeline::new(bench.device, config)?;
        let mut run = |chunks: usize| -> Result<u64> {
            median((0..ROUNDS).map(|_| {
                let began = bench.now_ns();
                let ran = pipeline.run_in_place(
                    &source[..chunks * bytes],
                    &mut target[..chunks * bytes],
                    |stage, _| bench.kernels.spin(stage.stream(), 0),
                );
                ran.map_err(|error| Error::Calibration(error.to_string()))?;
                Ok(bench.now_ns().saturating_sub(began))
            }))
        };
        let [few, many] = counts;
        let more_ns = run(many)?.saturating_sub(run(few)?);
        *found = more_ns / (many - few) as u64;
    }
    let [(small, _), (large, _)] = CHUNKS;
    let one_way = *costs;
    let alone = |bytes: usize| {
        let up = one_way.ns(Direction::HostToDevice, bytes as u64);
        up.max(one_way.ns(Direction::DeviceToHost, bytes as u64))
    };
    let grows_alone_ns = (alone(large) - alone(small)).max(1);
    let grows_ns = chunk_ns[1].saturating_sub(chunk_ns[0]);
    costs.both_percent = (grows_ns * 100 / grows_alone_ns).clamp(100, 300);
    let both_alone_ns = chunk_ns[0] * 100 / costs.both_percent;
    costs.both_latency_ns = both_alone_ns.saturating_sub(alone(small));
    Ok(())
}

/// Latency and rate.
fn line(small_ns: u64, large_ns: u64) -> Result<(u64, u64)> {
    let bytes_per_s = rate(LARGE - SMALL, large_ns.saturating_sub(small_ns));
    if bytes_per_s == 0 {
        let says = "a larger copy by the express lane took no longer than a smaller one";
        return Err(Error::Calibration(says.to_owned()));
    }
    let small_at_rate = SMALL as u128 * 1_000_000_000 / u128::from(bytes_per_s);
    Ok((small_ns.saturating_sub(small_at_rate as u64), bytes_per_s))
}
