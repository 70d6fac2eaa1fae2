//! How the figures depend on the number of lanes, all in turns: other users of the machine's CPUs
//! come and go.

use std::time::Duration;

use pinlane::Result;

use crate::support::{Bench, GIB, KIB, MIB, rate, recognisable, timed};

const SIZES: [usize; 7] = [
    4 * MIB,
    6 * MIB,
    8 * MIB,
    16 * MIB,
    64 * MIB,
    256 * MIB,
    GIB,
];
const LANES: [usize; 6] = [6, 8, 10, 12, 14, 16];
const ROUNDS: usize = 8;

/// Times of one number of lanes: of each size up and down, of many pieces, and both ways at once.
#[derive(Default)]
struct Times {
    up: [Vec<Duration>; SIZES.len()],
    down: [Vec<Duration>; SIZES.len()],
    many: Vec<Duration>,
    both: Vec<Duration>,
}

pub fn run(bench: &Bench) -> Result<()> {
    let source = recognisable(GIB, 5);
    let mut target = vec![1u8; GIB];
    let mut on_device = bench.device.alloc::<u8>(GIB)?;
    let mut kept = bench.device.alloc::<u8>(GIB)?;
    bench.stream.copy_to_device(&source, &mut kept)?;
    let (stream, other) = (&bench.stream, bench.device.stream()?);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all: Vec<(usize, Times)> = LANES
        .iter()
        .filter(|&&lanes| lanes <= cpus)
        .map(|&lanes| (lanes, Times::default()))
        .collect();
    for _ in 0..ROUNDS {
        for (lanes, times) in &mut all {
            let mut config = bench.device.express_config();
            config.lanes = *lanes;
            bench.device.set_express_config(config)?;
            for (index, bytes) in SIZES.into_iter().enumerate() {
                let copies = (64 * MIB / bytes).clamp(1, 8);
                for copy in 0..=copies {
                    let up = timed(|| {
                        let place = on_device.range_mut(..bytes);
                        stream
                            .copy_to_device(&source[..bytes], place)
                            .expect("an upload");
                        stream.synchronize().expect("a wait");
                    });
                    let down = timed(|| {
                        let place = on_device.range(..bytes);
                        stream
                            .copy_to_host(place, &mut target[..bytes])
                            .expect("a download");
                    });
                    if copy > 0 {
                        times.up[index].push(up);
                        times.down[index].push(down);
                    }
                }
            }
            for copy in 0..5 {
                let many = timed(|| {
                    let pieces = source[..16 * MIB].chunks(4 * KIB);
                    let places = on_device.whole_mut().chunks(8 * KIB);
                    let places = places.map(|place| place.range(..4 * KIB));
                    stream.upload_many(pieces.zip(places)).expect("an upload");
                    stream.synchronize().expect("a wait");
                });
                if copy > 0 {
                    times.many.push(many);
                }
            }
            times.both.push(timed(|| {
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        stream
                            .copy_to_device(&source, &mut on_device)
                            .expect("an upload");
                        stream.synchronize().expect("a wait");
                    });
                    other.copy_to_host(&kept, &mut target).expect("a download");
                });
            }));
        }
    }
    for (name, part) in [("median", 2), ("slowest quarter", 4)] {
        println!(
            "{name}: up/down GB/s at 4, 6, 8, 16, 64, 256 MiB and 1 GiB; 4096 x 4 KiB; both ways"
        );
        for (lanes, times) in &all {
            print!("{lanes:2} lanes:");
            for (index, bytes) in SIZES.into_iter().enumerate() {
                let [up, down] =
                    [&times.up, &times.down].map(|times| rate(bytes, late(&times[index], part)));
                print!("  {up:4.1}/{down:4.1}");
            }
            let many_us = late(&times.many, part).as_secs_f64() * 1e6;
            let both = rate(2 * GIB, late(&times.both, part));
            println!("  many {many_us:4.0} us  both {both:4.1}");
        }
    }
    Ok(())
}

/// The time that one in `part` exceeds.
fn late(times: &[Duration], part: usize) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[times.len() - 1 - times.len() / part]
}
