//! Fill the next batch while this one is copied: two buffers, and no race.

use std::collections::VecDeque;

use pinlane::{Device, Result, Transfer};

const BATCHES: usize = 6;
const LEN: usize = 1 << 16;

fn main() -> Result<()> {
    let device = Device::sim("pcie3-x16")?;
    let stream = device.stream()?;
    let mut on_device = device.alloc::<u32>(LEN)?;
    let mut idle = vec![device.pinned::<u32>(LEN)?, device.pinned::<u32>(LEN)?];
    let mut in_flight: VecDeque<Transfer<_>> = VecDeque::new();
    let mut seen = device.alloc::<u32>(BATCHES)?;

    for batch in 0..BATCHES {
        // A buffer that is not in flight: an idle one, or the oldest, when its copy is done.
        let mut buffer = match idle.pop() {
            Some(buffer) => buffer,
            None => in_flight.pop_front().expect("two are in flight").wait()?,
        };
        buffer.fill(batch as u32); // decode, read, augment …
        in_flight.push_back(stream.upload(buffer, &mut on_device)?);
        // Stands for the training step: work on the device, after the copy, without a wait.
        stream.copy_on_device(on_device.range(..1), seen.range_mut(batch..batch + 1))?;
    }
    println!(
        "batches as the device saw them: {:?}",
        stream.copy_to_vec(&seen)?
    );
    Ok(())
}
