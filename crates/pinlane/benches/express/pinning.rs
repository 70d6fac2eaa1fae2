//! Pinned memory, cold: nothing cached by anybody.

use std::time::Duration;

use pinlane::Result;
use pinlane::driver::HostFlags;

use crate::support::{Bench, GIB, MIB, median, rate, size, timed, times_faster, up};

pub fn run(bench: &Bench) -> Result<()> {
    let mut on_device = bench.device.alloc::<u8>(GIB)?;
    for bytes in [4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, GIB] {
        let mut times: [Vec<Duration>; 4] = Default::default();
        let (mut from_driver, mut from_pinlane) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            let mut memory = None;
            times[0].push(timed(|| {
                let flags = HostFlags::default();
                memory = Some(
                    bench
                        .driver
                        .host_alloc(bytes, flags)
                        .expect("pinned memory"),
                );
            }));
            let memory = memory.expect("allocated");
            // SAFETY: as many bytes, owned until they are freed below.
            let slice = unsafe { std::slice::from_raw_parts(memory.as_ptr().cast(), bytes) };
            let copy = up(slice, on_device.device_ptr());
            bench.plain_async(copy);
            from_driver.push(timed(|| bench.plain_async(copy)));
            times[1].push(timed(|| {
                // SAFETY: allocated above, used by nobody any more.
                unsafe { bench.driver.host_free(memory) }.expect("freed");
            }));

            let mut memory = None;
            times[2].push(timed(|| {
                memory = Some(bench.device.pinned::<u8>(bytes).expect("pinned memory"));
            }));
            let memory = memory.expect("allocated");
            let copy = up(&memory, on_device.device_ptr());
            bench.plain_async(copy);
            from_pinlane.push(timed(|| bench.plain_async(copy)));
            times[3].push(timed(|| drop(memory)));
        }
        let [alloc, free, fast, fast_free] = times.map(median);
        println!(
            "{:>8}: cuMemHostAlloc {:7.2} ms (free {:6.2}), pinned {:6.2} ms (free {:6.2}), {:5.1}x; copies from it {:.1} and {:.1} GB/s",
            size(bytes),
            alloc.as_secs_f64() * 1e3,
            free.as_secs_f64() * 1e3,
            fast.as_secs_f64() * 1e3,
            fast_free.as_secs_f64() * 1e3,
            times_faster(alloc, fast),
            rate(bytes, median(from_driver)),
            rate(bytes, median(from_pinlane)),
        );
    }
    bench.stream.fill_bytes(&mut on_device, 0)?;
    bench.stream.synchronize()
}
