//! Eight threads that upload at once for a minute.

use std::time::{Duration, Instant};

use pinlane::Result;

use crate::support::{Bench, MIB, recognisable};

const THREADS: usize = 8;
const BYTES: usize = 32 * MIB;

pub fn run(bench: &Bench) -> Result<()> {
    let seconds = std::env::var("SECONDS_OF_THREADS").ok();
    let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(60);
    let until = Instant::now() + Duration::from_secs(seconds);
    let done: Vec<Vec<Duration>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || one_thread(bench, thread, until).expect("a thread")))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    let counts: Vec<usize> = done.iter().map(Vec::len).collect();
    let all: usize = counts.iter().sum();
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    let mut times: Vec<Duration> = done.into_iter().flatten().collect();
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!(
        "{THREADS} threads, {seconds} s, {} MiB each: {all} uploads, {:.1} GB/s in all, {least} to {most} a thread ({:.2}x)",
        BYTES / MIB,
        (all * BYTES) as f64 / seconds as f64 / 1e9,
        *most as f64 / *least as f64,
    );
    println!(
        "upload time: p50 {:.2}, p99 {:.2}, longest {:.2} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    );
    Ok(())
}

fn one_thread(bench: &Bench, thread: usize, until: Instant) -> Result<Vec<Duration>> {
    let stream = bench.device.stream()?;
    let mut source = recognisable(BYTES, thread as u64 + 10);
    let mut on_device = bench.device.alloc::<u8>(BYTES)?;
    let mut times = Vec::new();
    while Instant::now() < until {
        // Different each time, so that nothing that was lost goes unnoticed.
        let count = times.len() as u64;
        source[..8].copy_from_slice(&count.to_le_bytes());
        source[BYTES - 8..].copy_from_slice(&count.to_le_bytes());
        let start = Instant::now();
        stream.copy_to_device(&source, &mut on_device)?;
        stream.synchronize()?;
        times.push(start.elapsed());
        if count.is_multiple_of(64) {
            assert!(
                stream.copy_to_vec(&on_device)? == source,
                "thread {thread}: lost bytes"
            );
        }
    }
    Ok(times)
}
