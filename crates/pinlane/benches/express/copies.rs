//! Copies of one slice, up and down, into fresh memory, and both ways at once.

use std::cell::RefCell;
use std::time::Duration;

use pinlane::Result;

use crate::support::{
    Bench, GIB, KIB, MIB, down, in_turns, median, rate, recognisable, size, timed, times_faster, up,
};

/// Every size of the table, and those between.
fn all_sizes() -> Vec<usize> {
    let small = (0..=11).flat_map(|power| {
        let bytes = (4 * KIB) << power;
        [bytes, bytes + bytes / 2]
    });
    let small = small.filter(|&bytes| bytes <= 8 * MIB);
    // The first one finds everything cold.
    let small = std::iter::once(2 * KIB).chain(small);
    small.chain([16 * MIB, 64 * MIB, 256 * MIB, GIB]).collect()
}

/// Enough to be sure of the median, in bounded time.
fn rounds(bytes: usize) -> usize {
    (256 * MIB / bytes).clamp(9, 600)
}

pub fn sizes(bench: &Bench) -> Result<()> {
    let source = recognisable(GIB, 1);
    let target = RefCell::new(vec![1u8; GIB]);
    let mut on_device = bench.device.alloc::<u8>(GIB)?;
    let mut pinned = bench.device.pinned::<u8>(GIB)?;
    pinned.copy_from_slice(&source);
    let stream = &bench.stream;
    println!("GB/s from host call to bytes there; `driver` is the faster of its two copies");
    println!(
        "    size   up: pinned  driver express /pinned /driver   down: pinned  driver express /pinned /driver"
    );
    for bytes in all_sizes() {
        let place = on_device.device_ptr();
        let [pin, sync, plain, express] = in_turns(
            rounds(bytes),
            [
                &mut || bench.plain_async(up(&pinned[..bytes], place)),
                &mut || bench.plain_sync(up(&source[..bytes], place)),
                &mut || bench.plain_async(up(&source[..bytes], place)),
                &mut || {
                    stream
                        .copy_to_device(&source[..bytes], on_device.range_mut(..bytes))
                        .expect("an upload");
                    stream.synchronize().expect("a wait");
                },
            ],
        );
        let driver = sync.min(plain);
        print_row(&size(bytes), bytes, pin, driver, express);
        let [pin, sync, plain, express] = in_turns(
            rounds(bytes),
            [
                &mut || bench.plain_async(down(place, &mut pinned[..bytes])),
                &mut || bench.plain_sync(down(place, &mut target.borrow_mut()[..bytes])),
                &mut || bench.plain_async(down(place, &mut target.borrow_mut()[..bytes])),
                &mut || {
                    stream
                        .copy_to_host(on_device.range(..bytes), &mut target.borrow_mut()[..bytes])
                        .expect("a download");
                },
            ],
        );
        let same = target.borrow()[..bytes] == source[..bytes];
        assert!(same, "other bytes came back");
        print_row("", bytes, pin, sync.min(plain), express);
        println!();
    }
    println!(
        "pinned bytes of the express lane: {:.1} MiB of {} lanes",
        bench.device.stats().express_bytes as f64 / MIB as f64,
        bench.device.express_config().lanes,
    );
    cold(bench, &source)
}

fn print_row(name: &str, bytes: usize, pin: Duration, driver: Duration, express: Duration) {
    print!(
        "{name:>8}       {:7.2} {:7.2} {:7.2} {:7.2} {:7.2}",
        rate(bytes, pin),
        rate(bytes, driver),
        rate(bytes, express),
        times_faster(pin, express),
        times_faster(driver, express),
    );
}

/// The same with lanes that have gone to sleep meanwhile.
fn cold(bench: &Bench, source: &[u8]) -> Result<()> {
    let mut on_device = bench.device.alloc::<u8>(256 * MIB)?;
    let mut target = vec![1u8; 256 * MIB];
    for bytes in [
        4 * KIB,
        64 * KIB,
        MIB,
        2 * MIB,
        4 * MIB,
        8 * MIB,
        16 * MIB,
        64 * MIB,
        256 * MIB,
    ] {
        let after_sleep = |work: &mut dyn FnMut()| {
            let times = (0..21).map(|_| {
                std::thread::sleep(Duration::from_millis(5));
                timed(&mut *work)
            });
            rate(bytes, median(times.collect()))
        };
        let place = on_device.device_ptr();
        let driver = after_sleep(&mut || bench.plain_async(up(&source[..bytes], place)));
        let express = after_sleep(&mut || {
            let target = on_device.range_mut(..bytes);
            bench
                .stream
                .copy_to_device(&source[..bytes], target)
                .expect("an upload");
            bench.stream.synchronize().expect("a wait");
        });
        let driver_down = after_sleep(&mut || bench.plain_async(down(place, &mut target[..bytes])));
        let express_down = after_sleep(&mut || {
            let source = on_device.range(..bytes);
            let target = &mut target[..bytes];
            bench
                .stream
                .copy_to_host(source, target)
                .expect("a download");
        });
        println!(
            "after 5 ms of sleep, {:>7}: up driver {driver:.2}, express {express:.2}; down driver {driver_down:.2}, express {express_down:.2} GB/s",
            size(bytes),
        );
    }
    Ok(())
}

/// Downloads into memory that nobody has touched yet.
pub fn fresh(bench: &Bench) -> Result<()> {
    let mut on_device = bench.device.alloc::<u8>(GIB)?;
    bench.stream.fill_bytes(&mut on_device, 7)?;
    bench.stream.synchronize()?;
    let place = on_device.device_ptr();
    for huge in [false, true] {
        let into_fresh = |work: &mut dyn FnMut(&mut [u8])| {
            let times = (0..5).map(|_| {
                let mut memory = fresh_memory(GIB, huge);
                let time = timed(|| work(&mut memory));
                assert_eq!((memory[0], memory[GIB - 1]), (7, 7));
                time
            });
            median(times.collect())
        };
        let driver = into_fresh(&mut |memory| bench.plain_sync(down(place, memory)));
        let express = into_fresh(&mut |memory| {
            bench
                .stream
                .copy_to_host(&on_device, memory)
                .expect("a download");
        });
        println!(
            "1 GiB into fresh memory, {} pages: driver {:.2}, express {:.2} GB/s, {:.2}x",
            if huge { "huge" } else { "4 KiB" },
            rate(GIB, driver),
            rate(GIB, express),
            times_faster(driver, express)
        );
    }
    let times =
        (0..5).map(|_| timed(|| drop(bench.stream.copy_to_vec(&on_device).expect("a vector"))));
    println!(
        "1 GiB as copy_to_vec (allocated, and freed again): {:.2} GB/s",
        rate(GIB, median(times.collect()))
    );
    Ok(())
}

fn fresh_memory(bytes: usize, huge: bool) -> memmap2::MmapMut {
    let map = memmap2::MmapMut::map_anon(bytes).expect("memory");
    let advice = match huge {
        true => memmap2::Advice::HugePage,
        false => memmap2::Advice::NoHugePage,
    };
    map.advise(advice).expect("advice");
    map
}

/// An upload and a download at the same time, from and to ordinary memory.
pub fn both_ways(bench: &Bench) -> Result<()> {
    let source = recognisable(GIB, 2);
    let mut target = vec![1u8; GIB];
    let mut uploaded = bench.device.alloc::<u8>(GIB)?;
    let mut kept = bench.device.alloc::<u8>(GIB)?;
    bench.stream.copy_to_device(&source, &mut kept)?;
    bench.stream.synchronize()?;
    let other = bench.device.stream()?;
    let (mut ups, mut downs, mut boths) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..9 {
        let mut upload = || {
            bench
                .stream
                .copy_to_device(&source, &mut uploaded)
                .expect("an upload");
            bench.stream.synchronize().expect("a wait");
        };
        let mut download = || other.copy_to_host(&kept, &mut target).expect("a download");
        upload();
        ups.push(timed(&mut upload));
        download();
        downs.push(timed(&mut download));
        boths.push(timed(|| {
            std::thread::scope(|scope| {
                scope.spawn(upload);
                download();
            });
        }));
    }
    assert!(target == source, "other bytes came back");
    let (one, back, both) = (median(ups), median(downs), median(boths));
    println!(
        "1 GiB up {:.2}, down {:.2}, both at once {:.2} GB/s in all: {:.2}x of up, {:.2}x of down",
        rate(GIB, one),
        rate(GIB, back),
        rate(2 * GIB, both),
        2.0 * times_faster(one, both),
        2.0 * times_faster(back, both),
    );
    Ok(())
}
