//! How the figures depend on the number of lanes.

use pinlane::Result;

use crate::bench::{Bench, GIB, MIB, in_turns, median, rate, recognisable, timed};

pub fn run(bench: &Bench) -> Result<()> {
    let source = recognisable(GIB, 5);
    let mut target = vec![1u8; GIB];
    let mut on_device = bench.device.alloc::<u8>(GIB)?;
    let mut kept = bench.device.alloc::<u8>(GIB)?;
    bench.stream.copy_to_device(&source, &mut kept)?;
    let (stream, other) = (&bench.stream, bench.device.stream()?);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    println!("up/down GB/s at 4, 16, 64, 256 MiB and 1 GiB, and both ways at once");
    for (lanes, ring_chunks) in [(8, 12), (10, 12), (12, 12), (14, 12), (16, 12), (16, 15)] {
        if lanes > cpus {
            continue;
        }
        let mut config = bench.device.express_config();
        (config.lanes, config.ring_chunks) = (lanes, ring_chunks);
        bench.device.set_express_config(config)?;
        print!("{lanes:2} lanes, {ring_chunks:2} chunks:");
        for bytes in [4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, GIB] {
            let rounds = (256 * MIB / bytes).clamp(5, 40);
            let [up] = in_turns(
                rounds,
                [&mut || {
                    let place = on_device.range_mut(..bytes);
                    stream
                        .copy_to_device(&source[..bytes], place)
                        .expect("an upload");
                    stream.synchronize().expect("a wait");
                }],
            );
            let [down] = in_turns(
                rounds,
                [&mut || {
                    let place = on_device.range(..bytes);
                    stream
                        .copy_to_host(place, &mut target[..bytes])
                        .expect("a download");
                }],
            );
            print!("  {:5.1}/{:5.1}", rate(bytes, up), rate(bytes, down));
        }
        let both = (0..7).map(|_| {
            timed(|| {
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        stream
                            .copy_to_device(&source, &mut on_device)
                            .expect("an upload");
                        stream.synchronize().expect("a wait");
                    });
                    other.copy_to_host(&kept, &mut target).expect("a download");
                });
            })
        });
        println!("  both {:5.1}", rate(2 * GIB, median(both.collect())));
    }
    Ok(())
}
