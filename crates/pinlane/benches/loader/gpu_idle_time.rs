//! GPU idle time between kernels of 20 ms per batch.

use pinlane::load::Loader;
use pinlane::{Builtin, Device};

use super::images::{Images, config};

const KERNEL_NS: u64 = 20_000_000;

pub fn run(device: &Device) -> anyhow::Result<()> {
    let kernels = Builtin::load(device)?;
    let stream = device.stream()?;
    let event = || device.event_with_timing();
    // The actual duration of the kernel may differ a little from the requested one.
    let (start, end) = (event()?, event()?);
    kernels.spin(&stream, KERNEL_NS)?;
    stream.record(&start)?;
    for _ in 0..10 {
        kernels.spin(&stream, KERNEL_NS)?;
    }
    stream.record(&end)?;
    stream.synchronize()?;
    let kernel_ns = start.elapsed_ns(&end)? as f64 / 10.0;

    let images = Images::new();
    let mut labels = device.alloc::<i64>(config().batch)?;
    for workers in [None, Some(2)] {
        let config = config().workers(workers);
        let loader = Loader::new(device, images.clone(), config)?;
        let mut batches = 0;
        for batch in loader.epoch(0)? {
            let batch = batch?;
            if batches == 1 {
                stream.record(&start)?; // the first batch is not prefetched
            }
            kernels.spin(&stream, KERNEL_NS)?;
            let source = batch.field("label").expect("images have labels").typed()?;
            stream.copy_on_device(source, labels.range_mut(..batch.len()))?;
            batches += 1;
        }
        stream.record(&end)?;
        stream.synchronize()?;
        let total_ns = start.elapsed_ns(&end)? as f64;
        let idle = 1.0 - f64::from(batches - 1) * kernel_ns / total_ns;
        println!(
            "workers {workers:?}: {batches} kernels of {:.2} ms, idle {:.2}%",
            kernel_ns / 1e6,
            100.0 * idle
        );
    }
    Ok(())
}
