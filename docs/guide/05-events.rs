//! Events mark places in a stream: to measure time on the device, and to order streams by hand.

use pinlane::{Builtin, Device, Result};

fn main() -> Result<()> {
    let device = Device::sim("pcie3-x16")?;
    let kernels = Builtin::load(&device)?;
    let (first, second) = (device.stream()?, device.stream()?);
    let (start, end) = (device.event_with_timing()?, device.event_with_timing()?);
    let last = device.event_with_timing()?;

    first.record(&start)?;
    kernels.spin(&first, 250_000)?; // busy for 250 µs
    first.record(&end)?;

    // `second` touches no buffer of `first`, so nothing orders the two. The event does.
    second.wait(&end)?;
    kernels.spin(&second, 100_000)?;
    second.record(&last)?;

    println!("fired when recorded: {}", end.is_done()?);
    end.synchronize()?;
    println!("fired after synchronize: {}", end.is_done()?);
    let microseconds = start.elapsed_ns(&end)? / 1000;
    println!("between the events: {microseconds} µs");
    last.synchronize()?;
    let microseconds = start.elapsed_ns(&last)? / 1000;
    println!("until the second stream was done: {microseconds} µs");
    Ok(())
}
