//! What the safe layer costs: one upload, submitted and completed, through the driver trait
//! directly and through the library, side by side, on a simulated GPU that itself costs nothing.
//!
//! `cargo bench -p pinlane --bench overhead`

use std::hint::black_box;
use std::time::Instant;

use pinlane::Device;
use pinlane::driver::{CopyOp, EventFlags, HostFlags, Place, StreamFlags};
use pinlane::model::Profile;
use pinlane::sim::Sim;

const BYTES: usize = 256;
const PER_ROUND: u32 = 10_000;
const ROUNDS: usize = 101;

fn main() {
    let sim = Sim::builder()
        .profile(Profile::builtin("null").expect("built in"))
        .checks(false)
        .record_timeline(false)
        .build();
    let (mut direct_ns, mut safe_ns) = (Vec::new(), Vec::new());
    // Alternating, so that both see the same machine.
    for _ in 0..ROUNDS {
        direct_ns.push(direct(&sim));
        safe_ns.push(safe(&sim));
    }
    let (direct, safe) = (median(&mut direct_ns), median(&mut safe_ns));
    println!("one upload of {BYTES} bytes, submitted and completed, median of {ROUNDS} rounds");
    println!("  driver trait directly {direct:>8.1} ns");
    println!("  through the library   {safe:>8.1} ns");
    println!(
        "  the safe layer costs  {:>8.1} ns (must be under 1000)",
        safe - direct
    );
}

/// Nanoseconds for one, by hand: what an expert would write.
fn direct(sim: &Sim) -> f64 {
    let driver = sim.driver();
    let stream = driver
        .stream_create(StreamFlags {
            non_blocking: true,
            priority: 0,
        })
        .expect("a stream");
    let event = driver
        .event_create(EventFlags::default())
        .expect("an event");
    let host = driver
        .host_alloc(BYTES, HostFlags::default())
        .expect("pinned");
    let device = driver.device_alloc(BYTES).expect("device memory");
    let copy = CopyOp {
        target: Place::Device(device),
        source: Place::Host(host),
        bytes: BYTES,
    };
    let start = Instant::now();
    for _ in 0..PER_ROUND {
        // SAFETY: both ends hold that many bytes, and nobody touches them meanwhile. Stream and event are
        // destroyed below.
        unsafe {
            let submitted = driver.copy_async(black_box(copy), stream);
            submitted.expect("submitted");
            driver.event_record(event, stream).expect("recorded");
            driver.event_synchronize(event).expect("done");
        }
    }
    let took = start.elapsed();
    // SAFETY: made above, used by nothing any more.
    unsafe {
        driver.device_free(device).expect("freed");
        driver.host_free(host).expect("freed");
        driver.event_destroy(event).expect("destroyed");
        driver.stream_destroy(stream).expect("destroyed");
    }
    took.as_nanos() as f64 / f64::from(PER_ROUND)
}

/// Nanoseconds for one, through the library.
fn safe(sim: &Sim) -> f64 {
    let device = Device::open(sim, 0).expect("the simulated device");
    let stream = device.stream().expect("a stream");
    let mut buffer = device.pinned::<u8>(BYTES).expect("pinned");
    let mut target = device.alloc::<u8>(BYTES).expect("device memory");
    let start = Instant::now();
    for _ in 0..PER_ROUND {
        let transfer = stream
            .upload(black_box(buffer), &mut target)
            .expect("submitted");
        buffer = transfer.wait().expect("done");
    }
    start.elapsed().as_nanos() as f64 / f64::from(PER_ROUND)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
