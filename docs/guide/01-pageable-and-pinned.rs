//! The same 64 MiB from pageable memory, from pinned memory, and through the express lane.

use pinlane::{Device, Result, Stream};

const LEN: usize = 16 << 20; // 16 Mi floats are 64 MiB

/// Runs `copy` and prints how fast it was, by the device's clock.
fn measure<R>(
    name: &str,
    device: &Device,
    stream: &Stream,
    copy: impl FnOnce() -> Result<R>,
) -> Result<R> {
    let (start, end) = (device.event_with_timing()?, device.event_with_timing()?);
    stream.record(&start)?;
    let copied = copy()?;
    stream.record(&end)?;
    end.synchronize()?;
    let gb_per_s = (4 * LEN) as f64 / start.elapsed_ns(&end)? as f64;
    println!("{name:<13} {gb_per_s:>5.1} GB/s");
    Ok(copied)
}

fn main() -> Result<()> {
    let device = Device::sim("pcie3-x16")?;
    let stream = device.stream()?;
    let mut on_device = device.alloc::<f32>(LEN)?;

    let pageable = vec![1.0f32; LEN];
    measure("pageable", &device, &stream, || {
        stream.driver_copy_to_device(&pageable, &mut on_device)
    })?;

    let pinned = device.pinned_from(&pageable)?;
    let transfer = measure("pinned", &device, &stream, || {
        Ok(stream.upload(pinned, &mut on_device)?)
    })?;
    transfer.wait()?;

    measure("express lane", &device, &stream, || {
        stream.copy_to_device(&pageable, &mut on_device)
    })
}
