//! Runs many seeds: `cargo xtask seeds --count 1000000`, or one: `--seed N`.

use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use pinlane_torture::run;

/// Which seeds to run.
struct Seeds {
    first: u64,
    count: u64,
}

/// Totals of all seeds.
#[derive(Default)]
struct Totals {
    seeds: u64,
    transfers: u64,
    bytes_checked: u64,
    deaths: u64,
    faults: BTreeMap<String, u64>,
}

fn main() -> Result<()> {
    let seeds = parse_args(std::env::args().skip(1))?;
    let next = AtomicU64::new(seeds.first);
    let end = seeds.first.saturating_add(seeds.count);
    let totals = Mutex::new(Totals::default());
    let failed = Mutex::new(None);
    let started = Instant::now();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| work(&next, end, &totals, &failed));
        }
        report_progress(scope, &next, end, seeds.first, started);
    });
    if let Some((seed, wrong)) = failed.into_inner().expect("no panic") {
        bail!("seed {seed}: {wrong}\nreplay with: cargo xtask seeds --seed {seed}");
    }
    let totals = totals.into_inner().expect("no panic");
    println!(
        "{} seeds, {} transfers, {} bytes compared, {} devices lost, in {:.1} s",
        totals.seeds,
        totals.transfers,
        totals.bytes_checked,
        totals.deaths,
        started.elapsed().as_secs_f64()
    );
    for (kind, count) in &totals.faults {
        println!("  {kind}: {count}");
    }
    Ok(())
}

fn parse_args(mut args: impl Iterator<Item = String>) -> Result<Seeds> {
    let mut seeds = Seeds {
        first: 0,
        count: 1_000_000,
    };
    while let Some(flag) = args.next() {
        let mut value = || -> Result<u64> {
            let text = args
                .next()
                .with_context(|| format!("{flag} needs a number"))?;
            text.parse()
                .with_context(|| format!("{flag}: {text} is not a number"))
        };
        match flag.as_str() {
            "--count" => seeds.count = value()?,
            "--first" => seeds.first = value()?,
            "--seed" => (seeds.first, seeds.count) = (value()?, 1),
            _ => bail!("unknown flag {flag}; use --count N, --first N or --seed N"),
        }
    }
    Ok(seeds)
}

fn work(next: &AtomicU64, end: u64, totals: &Mutex<Totals>, failed: &Mutex<Option<(u64, String)>>) {
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            return;
        }
        let outcome = catch_unwind(|| run(seed)).unwrap_or_else(|_| Err("panicked".into()));
        match outcome {
            Ok(outcome) => {
                let mut totals = totals.lock().expect("no panic while locked");
                totals.seeds += 1;
                totals.transfers += outcome.transfers;
                totals.bytes_checked += outcome.bytes_checked;
                totals.deaths += outcome.deaths;
                for (kind, count) in outcome.faults {
                    *totals.faults.entry(format!("{kind:?}")).or_default() += count;
                }
            }
            Err(wrong) => {
                // Stop at the first failure.
                next.store(end, Ordering::Relaxed);
                failed
                    .lock()
                    .expect("no panic while locked")
                    .get_or_insert((seed, wrong));
                return;
            }
        }
    }
}

fn report_progress<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    next: &'scope AtomicU64,
    end: u64,
    first: u64,
    started: Instant,
) {
    scope.spawn(move || {
        let mut printed = Instant::now();
        while next.load(Ordering::Relaxed) < end {
            thread::sleep(Duration::from_millis(20));
            if printed.elapsed() > Duration::from_secs(10) {
                printed = Instant::now();
                let done = next.load(Ordering::Relaxed).min(end) - first;
                let rate = done as f64 / started.elapsed().as_secs_f64();
                eprintln!("{done} seeds, {rate:.0} a second");
            }
        }
    });
}
