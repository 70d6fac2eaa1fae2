//! What the safe layer costs, through the driver trait directly and through the library, side by
//! side, on a simulated GPU that itself costs nothing: one upload of pinned memory, submitted and
//! completed, and one small copy of ordinary memory, also with cold caches as after a pause.
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
const COPIES: usize = 301;

/// More than all caches hold.
const EVICTED_BYTES: usize = 128 << 20;

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
    for (caches, evicted_bytes) in [("hot", 0), ("cold", EVICTED_BYTES)] {
        let [direct, safe] = ordinary_memory(&sim, evicted_bytes);
        println!(
            "one copy of {BYTES} bytes of ordinary memory, {caches} caches, median of {COPIES}"
        );
        println!("  driver trait directly {direct:>8.1} ns");
        println!("  through the library   {safe:>8.1} ns");
        println!("  the safe layer costs  {:>8.1} ns", safe - direct);
    }
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

/// Nanoseconds for one copy of ordinary memory until it is done: by hand, and through the library. Before
/// each, `evicted_bytes` of other memory pass through the caches.
fn ordinary_memory(sim: &Sim, evicted_bytes: usize) -> [f64; 2] {
    let device = Device::open(sim, 0).expect("the simulated device");
    let stream = device.stream().expect("a stream");
    let mut target = device.alloc::<u8>(BYTES).expect("device memory");
    let source = vec![1u8; BYTES];
    let driver = sim.driver();
    let flags = StreamFlags {
        non_blocking: true,
        priority: 0,
    };
    let plain = driver.stream_create(flags).expect("a stream");
    let copy = CopyOp {
        target: Place::Device(target.device_ptr()),
        source: Place::Host(std::ptr::NonNull::from(&source[0])),
        bytes: BYTES,
    };
    let mut others = vec![1u8; evicted_bytes];
    let mut timed = |work: &mut dyn FnMut()| {
        for line in others.iter_mut().step_by(64) {
            *line = line.wrapping_add(1);
        }
        let start = Instant::now();
        work();
        start.elapsed().as_nanos() as f64
    };
    let (mut direct_ns, mut safe_ns) = (Vec::new(), Vec::new());
    for _ in 0..COPIES {
        direct_ns.push(timed(&mut || {
            // SAFETY: both ends hold that many bytes, and nothing touches them meanwhile. The stream
            // is live.
            unsafe {
                driver
                    .copy_async(black_box(copy), plain)
                    .expect("submitted");
                driver.stream_synchronize(plain).expect("done");
            }
        }));
        safe_ns.push(timed(&mut || {
            let copied = stream.copy_to_device(black_box(&source), &mut target);
            copied.expect("copied");
            stream.synchronize().expect("done");
        }));
    }
    // SAFETY: made above, used by nothing any more.
    unsafe { driver.stream_destroy(plain) }.expect("destroyed");
    [median(&mut direct_ns), median(&mut safe_ns)]
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
