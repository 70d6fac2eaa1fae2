//! What a copy takes whatever its size.

use pinlane::Device;

/// Copies that are tried; the middle one counts.
const COPIES: usize = 15;

/// What keeps the stream busy while the copy behind it is submitted, so that the host's time for that is not
/// measured: the loader's copies are submitted ahead, too.
const AHEAD_BYTES: usize = 4 << 20;

/// Time of a copy of one byte to the device, by the device's clock.
pub(super) fn one_byte_ns(device: &Device) -> pinlane::Result<u64> {
    let stream = device.stream()?;
    let stopwatch = device.stopwatch()?;
    let mut target = device.alloc::<u8>(1)?;
    let mut source = device.pinned::<u8>(1)?;
    let mut before = device.alloc::<u8>(AHEAD_BYTES)?;
    let mut ahead = device.pinned::<u8>(AHEAD_BYTES)?;
    let mut times = Vec::with_capacity(COPIES);
    for _ in 0..COPIES {
        let first = stream.upload(ahead, &mut before)?;
        let sent = stream.timed(&stopwatch).upload(source, &mut target)?;
        source = sent.wait()?;
        ahead = first.wait()?;
        times.push(stopwatch.elapsed_ns()?);
    }
    times.sort_unstable();
    Ok(times[COPIES / 2])
}
