//! Runs many seeds: `cargo xtask seeds --count 1000000`, or one: `--seed N`.

use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Parser;
use pinlane_torture::{Outcome, run};

/// Runs random programs on the simulated GPU.
#[derive(Parser)]
struct Args {
    /// Number of seeds
    #[arg(long, default_value_t = 1_000_000)]
    count: u64,
    /// First seed
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Run this seed only
    #[arg(long)]
    seed: Option<u64>,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let (first, count) = args.seed.map_or((args.first, args.count), |seed| (seed, 1));
    let (next, end) = (AtomicU64::new(first), first.saturating_add(count));
    let results = Mutex::new(Results::default());
    let started = Instant::now();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| work(&next, end, &results));
        }
        print_progress(&next, first, end, started);
    });
    let Results {
        seeds,
        total,
        failed,
    } = results.into_inner().expect("no panic");
    if let Some((seed, error)) = failed {
        bail!("seed {seed}: {error}\nreplay with: cargo xtask seeds --seed {seed}");
    }
    println!(
        "{seeds} seeds, {} transfers, {} bytes compared, {} devices lost, in {:.1} s",
        total.transfers,
        total.bytes_checked,
        total.deaths,
        started.elapsed().as_secs_f64()
    );
    for (kind, count) in &total.faults {
        println!("  {kind:?}: {count}");
    }
    Ok(())
}

/// What the seeds did so far.
#[derive(Default)]
struct Results {
    seeds: u64,
    total: Outcome,
    failed: Option<(u64, String)>,
}

/// Runs seeds until the end, or the first failure.
fn work(next: &AtomicU64, end: u64, results: &Mutex<Results>) {
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            return;
        }
        let outcome = catch_unwind(|| run(seed)).unwrap_or_else(|_| Err("panicked".into()));
        let mut results = results.lock().expect("no panic while locked");
        match outcome {
            Ok(outcome) => {
                results.seeds += 1;
                results.total.add(&outcome);
            }
            Err(error) => {
                next.store(end, Ordering::Relaxed);
                results.failed.get_or_insert((seed, error));
                return;
            }
        }
    }
}

fn print_progress(next: &AtomicU64, first: u64, end: u64, started: Instant) {
    let mut printed = Instant::now();
    while next.load(Ordering::Relaxed) < end {
        thread::sleep(Duration::from_millis(20));
        if printed.elapsed() > Duration::from_secs(10) {
            printed = Instant::now();
            let done = next.load(Ordering::Relaxed).min(end) - first;
            let rate = done as f64 / started.elapsed().as_secs_f64();
            eprintln!("{done} seeds, {rate:.0} per second");
        }
    }
}
