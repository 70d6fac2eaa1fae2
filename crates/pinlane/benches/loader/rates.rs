//! Throughput when the consumer only drops the batches.

use std::time::Instant;

use pinlane::Device;
use pinlane::load::Loader;

use super::images::{Images, Stores, config};

pub fn run(device: &Device) -> anyhow::Result<()> {
    let images = Images::new();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{cpus} CPUs; second and third epoch; shares of the workers' time");
    for stores in [Stores::Plain, Stores::Streaming] {
        for workers in [cpus / 4, cpus / 2, cpus * 3 / 4, cpus - 1, cpus] {
            let workers = workers.max(1);
            let config = config().workers(workers);
            let loader = Loader::new(device, images.with(stores), config)?;
            rate(device, &loader, &format!("{stores:?}, {workers} workers"))?;
        }
    }
    rate(
        device,
        &Loader::new(device, images, config())?,
        "the default",
    )
}

/// Run three epochs and print their throughput.
fn rate(device: &Device, loader: &Loader, name: &str) -> anyhow::Result<()> {
    let mut rates = Vec::new();
    for epoch in 0..3 {
        let before = loader.stats().bytes;
        let start = Instant::now();
        for batch in loader.epoch(epoch)? {
            batch?;
        }
        device.synchronize()?;
        let bytes = loader.stats().bytes - before;
        rates.push(bytes as f64 / start.elapsed().as_nanos() as f64);
    }
    let stats = loader.stats();
    let busy = (stats.read_ns + stats.slot_wait_ns + stats.held_back_ns).max(1) as f64;
    println!(
        "{name:24} {:5.1} {:5.1} GB/s   read {:2.0}%, link {:2.0}%, consumer {:2.0}%   copies {:.1} GB/s   pinned {} MiB",
        rates[1],
        rates[2],
        100.0 * stats.read_ns as f64 / busy,
        100.0 * stats.slot_wait_ns as f64 / busy,
        100.0 * stats.held_back_ns as f64 / busy,
        stats.copy_bytes as f64 / stats.copy_ns.max(1) as f64,
        device.stats().pinned_bytes >> 20,
    );
    Ok(())
}
