//! The fixed cost of a copy.

use pinlane::Device;

use crate::median::median_by_key;

/// Copies whose median counts.
const COPIES: usize = 15;

/// Keeps the stream busy while the measured copy is submitted: the loader also submits its copies ahead.
const AHEAD_BYTES: usize = 4 << 20;

/// The time of a 1-byte copy to the device, by the device's clock.
pub(super) fn one_byte_ns(device: &Device) -> pinlane::Result<u64> {
    let stream = device.stream()?;
    let stopwatch = device.stopwatch()?;
    let mut target = device.alloc::<u8>(1)?;
    let mut source = device.pinned::<u8>(1)?;
    let mut ahead_target = device.alloc::<u8>(AHEAD_BYTES)?;
    let mut ahead_source = device.pinned::<u8>(AHEAD_BYTES)?;
    let mut times = Vec::with_capacity(COPIES);
    for _ in 0..COPIES {
        let ahead = stream.upload(ahead_source, &mut ahead_target)?;
        let copy = stream.timed(&stopwatch).upload(source, &mut target)?;
        source = copy.wait()?;
        ahead_source = ahead.wait()?;
        times.push(stopwatch.elapsed_ns()?);
    }
    Ok(median_by_key(times, |ns| *ns))
}
