//! Fill the next batch while this one is copied: two buffers, and no race.

use pinlane::{Device, Result};

const BATCHES: u32 = 6;
const LEN: usize = 1 << 16;

fn main() -> Result<()> {
    let device = Device::sim("pcie3-x16")?;
    let stream = device.stream()?;
    let mut on_device = device.alloc::<u32>(LEN)?;
    let mut idle = vec![device.pinned::<u32>(LEN)?, device.pinned::<u32>(LEN)?];
    let mut in_flight = std::collections::VecDeque::new();
    let mut sums = Vec::new();

    for batch in 0..BATCHES {
        // A buffer that is not in flight: an idle one, or the oldest, when its copy is done.
        let mut buffer = match idle.pop() {
            Some(buffer) => buffer,
            None => {
                let oldest: pinlane::Transfer<_> =
                    in_flight.pop_front().expect("two are in flight");
                oldest.wait()?
            }
        };
        buffer.fill(batch); // decode, read, augment …
        in_flight.push_back(stream.upload(buffer, &mut on_device)?);
        // Stands for the training step: it runs in stream order, after the copy.
        let first = stream.copy_to_vec(on_device.range(..1))?[0];
        sums.push(first);
    }
    println!("batches as the device saw them: {sums:?}");
    Ok(())
}
