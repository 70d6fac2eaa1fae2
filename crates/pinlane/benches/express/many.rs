//! Thousands of small pieces.

use pinlane::Result;

use crate::support::{Bench, KIB, MIB, in_turns, rate, recognisable, size, times_faster, up};

pub fn run(bench: &Bench) -> Result<()> {
    for piece_bytes in [4 * KIB, 64 * KIB] {
        let pieces = 4096;
        let total = pieces * piece_bytes;
        // Neither sources nor targets are neighbours.
        let stride = piece_bytes + 256;
        let sources: Vec<Vec<u8>> = (0..pieces)
            .map(|piece| recognisable(piece_bytes, piece as u64 + 1))
            .collect();
        let mut on_device = bench.device.alloc::<u8>(pieces * stride)?;
        let base = on_device.device_ptr();
        let [each, together] = in_turns(
            9,
            [
                &mut || {
                    for (piece, source) in sources.iter().enumerate() {
                        let copy = up(source, base.offset(piece * stride));
                        // SAFETY: both live until the wait below.
                        unsafe { bench.driver.copy_async(copy, bench.plain) }.expect("a copy");
                    }
                    // SAFETY: the stream is never destroyed.
                    unsafe { bench.driver.stream_synchronize(bench.plain) }.expect("a wait");
                },
                &mut || {
                    let places = on_device.whole_mut().chunks(stride);
                    let places = places.map(|place| place.range(..piece_bytes));
                    let pieces = sources.iter().map(Vec::as_slice).zip(places);
                    bench.stream.upload_many(pieces).expect("an upload");
                    bench.stream.synchronize().expect("a wait");
                },
            ],
        );
        println!(
            "upload_many {pieces} x {}: one driver copy each {:.2} ms, together {:.3} ms ({:.1} GB/s), {:.1}x",
            size(piece_bytes),
            each.as_secs_f64() * 1e3,
            together.as_secs_f64() * 1e3,
            rate(total, together),
            times_faster(each, together)
        );
        let mut back: Vec<Vec<u8>> = (0..pieces).map(|_| vec![0; piece_bytes]).collect();
        let [each, together] = in_turns(
            5,
            [
                &mut || {
                    let mut row = vec![0; piece_bytes];
                    for piece in 0..pieces {
                        let place = base.offset(piece * stride);
                        bench.plain_sync(crate::support::down(place, &mut row));
                    }
                },
                &mut || {
                    let places = (0..pieces).map(|piece| {
                        let start = piece * stride;
                        on_device.range(start..start + piece_bytes)
                    });
                    let targets = back.iter_mut().map(Vec::as_mut_slice);
                    bench
                        .stream
                        .download_many(places.zip(targets))
                        .expect("a download");
                },
            ],
        );
        assert!(back == sources, "other bytes came back");
        println!(
            "download_many {pieces} x {}: one driver copy each {:.2} ms, together {:.3} ms ({:.1} GB/s), {:.1}x",
            size(piece_bytes),
            each.as_secs_f64() * 1e3,
            together.as_secs_f64() * 1e3,
            rate(total, together),
            times_faster(each, together)
        );
    }
    println!(
        "pinned by the lane: {:.1} MiB",
        bench.device.stats().express_bytes as f64 / MIB as f64
    );
    Ok(())
}
