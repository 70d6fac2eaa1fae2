//! What taking a block that is there and giving it back costs, on one thread and on several that
//! do it all the time: blocks of one size, which is the worst case.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use pinlane::model::Profile;
use pinlane::sim::Sim;
use pinlane::{Device, PinnedPool};

use crate::median;

const BYTES: usize = 4096;
const PER_ROUND: u32 = 100_000;
const ROUNDS: usize = 31;

pub fn run() -> pinlane::Result<()> {
    let sim = Sim::new(Profile::builtin("null").expect("built in"));
    let device = Device::open(&sim, 0)?;
    let pool = PinnedPool::new(&device);
    println!("one block of {BYTES} bytes taken and given back, median of {ROUNDS} rounds");
    for (threads, limit) in [
        (1, " (must be under 300)"),
        (2, ""),
        (4, " (must be under 1000)"),
        (8, ""),
        (16, ""),
    ] {
        let median_ns = median((0..ROUNDS).map(|_| round_ns(&pool, threads)).collect());
        println!("  {threads:>2} threads {median_ns:>8.1} ns{limit}");
    }
    let stats = pool.stats();
    println!("  {} hits, {} misses", stats.hits, stats.misses);
    println!(
        "  at most {} blocks out at a time",
        stats.high_water_bytes / BYTES as u64
    );
    Ok(())
}

/// Nanoseconds for one, as each of the threads sees it, in the mean.
fn round_ns(pool: &PinnedPool, threads: usize) -> f64 {
    let barrier = Barrier::new(threads);
    let work = || {
        // A block each, all at once: in the measurement none is pinned, and no more are out than
        // ever were.
        let block = pool.take::<u8>(BYTES).expect("a block");
        barrier.wait();
        drop(block);
        barrier.wait();
        let start = Instant::now();
        for _ in 0..PER_ROUND {
            drop(black_box(pool.take::<u8>(BYTES).expect("a block")));
        }
        start.elapsed().as_nanos() as f64 / f64::from(PER_ROUND)
    };
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let took = running.into_iter().map(|t| t.join().expect("no panic"));
        took.sum::<f64>() / threads as f64
    })
}
