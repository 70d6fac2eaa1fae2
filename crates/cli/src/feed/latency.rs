//! What a copy takes whatever its size.

use pinlane::Device;

/// Copies that are tried; the middle one counts.
const COPIES: usize = 15;

/// Time of a copy of one byte to the device, by the device's clock.
pub(super) fn one_byte_ns(device: &Device) -> pinlane::Result<u64> {
    let stream = device.stream()?;
    let stopwatch = device.stopwatch()?;
    let mut target = device.alloc::<u8>(1)?;
    let mut source = device.pinned::<u8>(1)?;
    let mut times = Vec::with_capacity(COPIES);
    for _ in 0..COPIES {
        let sent = stream.timed(&stopwatch).upload(source, &mut target)?;
        source = sent.wait()?;
        times.push(stopwatch.elapsed_ns()?);
    }
    times.sort_unstable();
    Ok(times[COPIES / 2])
}
