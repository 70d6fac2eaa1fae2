//! `Device::pinned` and the drop of its buffer, beside the driver's allocation and its free.

use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use pinlane::driver::{Driver, HostFlags};
use pinlane::model::Profile;
use pinlane::sim::Sim;
use pinlane::{Device, Result};

use crate::median;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

const SIZES: [usize; 14] = [
    256,
    4 * KIB,
    16 * KIB,
    64 * KIB,
    128 * KIB,
    256 * KIB,
    512 * KIB,
    MIB,
    2 * MIB,
    4 * MIB,
    8 * MIB,
    16 * MIB,
    32 * MIB,
    64 * MIB,
];

/// Buffers that live at the same time, and their sizes. The last are more than a device keeps.
const HELD: [(usize, usize); 6] = [
    (100, 256),
    (100, 4 * KIB),
    (100, 64 * KIB),
    (100, 256 * KIB),
    (100, MIB),
    (20_000, 4 * KIB),
];

/// The sizes that are allocated once in a while.
const SMALL_SIZES: [usize; 5] = [256, 4 * KIB, 64 * KIB, 256 * KIB, MIB];

pub fn run() -> Result<()> {
    let device = match pinlane::cuda::Cuda::load() {
        Ok(cuda) => Device::open(&cuda, 0)?,
        Err(_) => Device::open(&Sim::new(Profile::builtin("null").expect("built in")), 0)?,
    };
    let rig = Rig {
        // SAFETY: what is pinned through it is a few buffers at a time, freed at once.
        driver: Arc::clone(unsafe { pinlane::raw::driver(&device) }),
        device,
    };
    println!("{}; µs for a buffer and its end", rig.device.info().name);
    rig.one_at_a_time();
    rig.once_in_a_while();
    rig.many_at_once();
    rig.threads();
    let stats = rig.device.stats();
    println!(
        "idle at the end: {} KiB of {} KiB pinned",
        stats.idle_pinned_bytes / 1024,
        stats.pinned_bytes / 1024
    );
    Ok(())
}

struct Rig {
    device: Device,
    driver: Arc<dyn Driver>,
}

impl Rig {
    fn one_at_a_time(&self) {
        println!("\none at a time; first: nothing is idle");
        println!("    size     driver   first: allocated + dropped     again");
        for bytes in SIZES {
            let rounds = match bytes {
                ..=65_536 => 2001,
                65_537..=1_048_576 => 201,
                _ => 21,
            };
            let (mut driver, mut again) = (Vec::new(), Vec::new());
            let (mut allocated, mut dropped) = (Vec::new(), Vec::new());
            for _ in 0..rounds {
                driver.push(micros(|| self.driver_pair(bytes)));
                self.device.trim();
                let mut buffer = None;
                allocated.push(micros(|| buffer = Some(self.pinned(bytes))));
                dropped.push(micros(|| drop(black_box(buffer.take()))));
                driver.push(micros(|| self.driver_pair(bytes)));
                again.push(micros(|| drop(black_box(self.pinned(bytes)))));
            }
            println!(
                "{:>8} {:>10.2} {:>17.2} + {:>7.2} {:>9.2}",
                size(bytes),
                median(driver),
                median(allocated),
                median(dropped),
                median(again),
            );
        }
    }

    fn once_in_a_while(&self) {
        println!("\none every 5 ms");
        println!("    size     driver       ours");
        for bytes in SMALL_SIZES {
            let (mut driver, mut ours) = (Vec::new(), Vec::new());
            for _ in 0..51 {
                thread::sleep(Duration::from_millis(5));
                driver.push(micros(|| self.driver_pair(bytes)));
                thread::sleep(Duration::from_millis(5));
                ours.push(micros(|| drop(black_box(self.pinned(bytes)))));
            }
            let (driver, ours) = (median(driver), median(ours));
            println!("{:>8} {driver:>10.2} {ours:>10.2}", size(bytes));
        }
    }

    fn many_at_once(&self) {
        println!("\nmany at once, µs for each; first: nothing is idle");
        println!("    size   buffers     driver      first      again");
        for (held, bytes) in HELD {
            let each = |micros: Vec<f64>| median(micros) / held as f64;
            let (mut driver, mut first, mut again) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..11 {
                driver.push(micros(|| self.driver_many(held, bytes)));
                self.device.trim();
                first.push(micros(|| self.pinned_many(held, bytes)));
                again.push(micros(|| self.pinned_many(held, bytes)));
            }
            println!(
                "{:>8} {held:>9} {:>10.2} {:>10.2} {:>10.2}",
                size(bytes),
                each(driver),
                each(first),
                each(again)
            );
        }
    }

    fn threads(&self) {
        println!("\nseveral threads");
        println!("    size threads     driver       ours");
        for bytes in [4 * KIB, 64 * KIB, MIB] {
            for threads in [2, 4, 8, 16] {
                let pairs = if bytes < MIB { 2000 } else { 50 };
                let driver = in_threads(threads, pairs, || self.driver_pair(bytes));
                let ours = in_threads(threads, pairs, || drop(black_box(self.pinned(bytes))));
                println!(
                    "{:>8} {threads:>7} {driver:>10.2} {ours:>10.2}",
                    size(bytes)
                );
            }
        }
    }

    fn pinned(&self, bytes: usize) -> pinlane::PinnedBuf<u8> {
        self.device.pinned(bytes).expect("pinned memory")
    }

    fn pinned_many(&self, held: usize, bytes: usize) {
        let held: Vec<_> = (0..held).map(|_| self.pinned(bytes)).collect();
        drop(black_box(held));
    }

    fn driver_pair(&self, bytes: usize) {
        let memory = self.driver.host_alloc(bytes, HostFlags::default());
        let memory = black_box(memory.expect("pinned memory"));
        // SAFETY: allocated above, and used by nobody.
        unsafe { self.driver.host_free(memory) }.expect("freed");
    }

    fn driver_many(&self, held: usize, bytes: usize) {
        let alloc = |_| self.driver.host_alloc(bytes, HostFlags::default());
        let held: Vec<_> = (0..held).map(alloc).collect();
        for memory in black_box(held) {
            // SAFETY: as above.
            unsafe { self.driver.host_free(memory.expect("pinned memory")) }.expect("freed");
        }
    }
}

/// Microseconds for one, as each of the threads sees it, in the mean.
fn in_threads(threads: usize, pairs: u32, pair: impl Fn() + Sync) -> f64 {
    let barrier = Barrier::new(threads);
    let work = || {
        pair();
        barrier.wait();
        micros(|| (0..pairs).for_each(|_| pair())) / f64::from(pairs)
    };
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let took = running
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        took.sum::<f64>() / threads as f64
    })
}

fn micros(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / 1e3
}

fn size(bytes: usize) -> String {
    match bytes {
        MIB.. => format!("{} MiB", bytes / MIB),
        KIB.. => format!("{} KiB", bytes / KIB),
        _ => format!("{bytes} B"),
    }
}
