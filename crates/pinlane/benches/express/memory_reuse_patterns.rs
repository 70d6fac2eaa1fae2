//! Copies as programs make them: the same memory or other memory each time, at once or after a pause.

use std::time::{Duration, Instant};

use pinlane::Result;

use crate::support::{Bench, GIB, KIB, MIB, down, median, recognisable, size, up};

const SIZES: [usize; 12] = [
    4 * KIB,
    16 * KIB,
    32 * KIB,
    64 * KIB,
    128 * KIB,
    256 * KIB,
    512 * KIB,
    MIB,
    2 * MIB,
    3 * MIB,
    4 * MIB,
    8 * MIB,
];

/// Copies of each kind, in turns.
const PAIRS: usize = 200;

struct Pattern {
    name: &'static str,
    /// Each copy uses other memory than the one before.
    walks: bool,
    pause: Duration,
}

const PATTERNS: [Pattern; 4] = [
    pattern("same memory", false, 0),
    pattern("walking", true, 0),
    pattern("walking, one every 1 ms", true, 1),
    pattern("walking, one every 20 ms", true, 20),
];

const fn pattern(name: &'static str, walks: bool, pause_ms: u64) -> Pattern {
    Pattern {
        name,
        walks,
        pause: Duration::from_millis(pause_ms),
    }
}

/// Host memory that copies take turns in, much more than the caches hold.
struct Walk {
    memory: Vec<u8>,
    at: usize,
}

impl Walk {
    fn next(&mut self, bytes: usize, walks: bool) -> &mut [u8] {
        const STEP_BYTES: usize = 8 * MIB + 256 * KIB;
        if walks {
            self.at += STEP_BYTES;
            if self.at + bytes > self.memory.len() {
                // Each time around it starts elsewhere, so that no byte is used again soon.
                self.at = (self.at / STEP_BYTES * 20 * KIB) % (8 * MIB);
            }
        } else {
            self.at = 0;
        }
        &mut self.memory[self.at..self.at + bytes]
    }
}

pub fn run(bench: &Bench) -> Result<()> {
    let mut walk = Walk {
        memory: recognisable(2 * GIB, 3),
        at: 0,
    };
    println!("µs a copy, median of {PAIRS}; `driver` is the faster of its two copies");
    for pattern in &PATTERNS {
        println!("{}", pattern.name);
        println!("    size   up: driver express /driver   down: driver express /driver");
        for bytes in SIZES {
            let mut on_device = bench.device.alloc::<u8>(bytes)?;
            print!("{:>8}", size(bytes));
            for is_upload in [true, false] {
                let place = on_device.device_ptr();
                let driver_async = |host: &mut [u8]| match is_upload {
                    true => bench.plain_async(up(host, place)),
                    false => bench.plain_async(down(place, host)),
                };
                let driver_sync = |host: &mut [u8]| match is_upload {
                    true => bench.plain_sync(up(host, place)),
                    false => bench.plain_sync(down(place, host)),
                };
                let [by_async, by_sync] = in_pairs(
                    &mut walk,
                    bytes,
                    pattern,
                    Duration::ZERO,
                    driver_async,
                    driver_sync,
                );
                let driver: &dyn Fn(&mut [u8]) = match by_async <= by_sync {
                    true => &driver_async,
                    false => &driver_sync,
                };
                let express = |host: &mut [u8]| match is_upload {
                    true => {
                        let copied = bench.stream.copy_to_device(host, &mut on_device);
                        copied.expect("an upload");
                        bench.stream.synchronize().expect("a wait");
                    }
                    false => {
                        let copied = bench.stream.copy_to_host(&on_device, host);
                        copied.expect("a download");
                    }
                };
                let [driver, express] =
                    in_pairs(&mut walk, bytes, pattern, pattern.pause, driver, express);
                print!("     {driver:11.1} {express:7.1} {:7.2}", driver / express);
            }
            println!();
        }
    }
    Ok(())
}

/// Medians in microseconds of two ways to copy, in turns.
fn in_pairs(
    walk: &mut Walk,
    bytes: usize,
    pattern: &Pattern,
    pause: Duration,
    one: impl Fn(&mut [u8]),
    mut other: impl FnMut(&mut [u8]),
) -> [f64; 2] {
    let (mut ones, mut others) = (Vec::new(), Vec::new());
    for round in 0..PAIRS + 5 {
        let mut measure = |copy: &mut dyn FnMut(&mut [u8])| {
            let host = walk.next(bytes, pattern.walks);
            if !pause.is_zero() {
                std::thread::sleep(pause);
            }
            let start = Instant::now();
            copy(host);
            start.elapsed()
        };
        let times = (measure(&mut |host| one(host)), measure(&mut other));
        if round >= 5 {
            ones.push(times.0);
            others.push(times.1);
        }
    }
    [ones, others].map(|times| median(times).as_secs_f64() * 1e6)
}
