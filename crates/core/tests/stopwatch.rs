//! A stopwatch tells what a copy takes, and nothing but that.

use pinlane::{Device, Error};
use pinlane_model::{Direction, HostKind, Profile};
use pinlane_sim::Sim;

fn profile() -> Profile {
    Profile::builtin("pcie3-x16").expect("built in")
}

#[test]
fn the_time_is_that_of_the_copy() -> pinlane::Result<()> {
    let sim = Sim::new(profile());
    let device = Device::open(&sim, 0)?;
    let (stream, stopwatch) = (device.stream()?, device.stopwatch()?);
    for bytes in [1 << 20, 64 << 20] {
        let mut there = device.alloc::<u8>(bytes)?;
        // Work before it, and the host's own pace, are not part of it.
        stream.fill_bytes(&mut there, 1)?;
        let must_ns = |direction| profile().copy_ns(direction, HostKind::Pinned, bytes as u64);
        let buffer = device.pinned::<u8>(bytes)?;
        let sent = stream.timed(&stopwatch).upload(buffer, &mut there)?;
        let buffer = sent.wait()?;
        let up_ns = stopwatch.elapsed_ns()?;
        let sent = stream.timed(&stopwatch).download(&there, buffer)?;
        let down_ns = stopwatch.elapsed_ns()?;
        drop(sent);
        for (ns, direction) in [
            (up_ns, Direction::HostToDevice),
            (down_ns, Direction::DeviceToHost),
        ] {
            // From one engine to another there is a hand-over, and the host has to submit.
            let most_ns = must_ns(direction) + 20_000;
            assert!((must_ns(direction)..most_ns).contains(&ns), "{ns}");
        }
    }
    Ok(())
}

#[test]
fn a_stopwatch_of_another_device_is_refused_and_the_buffer_comes_back() -> pinlane::Result<()> {
    let (sim, other) = (Sim::new(profile()), Sim::new(profile()));
    let (device, other) = (Device::open(&sim, 0)?, Device::open(&other, 0)?);
    let (stream, stopwatch) = (device.stream()?, other.stopwatch()?);
    let mut there = device.alloc::<u8>(3)?;
    let buffer = device.pinned_from(&[1, 2, 3])?;
    let refused = stream.timed(&stopwatch).upload(buffer, &mut there);
    let failure = refused.expect_err("of another device");
    assert_eq!(failure.error, Error::WrongDevice);
    let buffer = failure.buffer.expect("it comes back");
    assert_eq!(&buffer[..], [1, 2, 3]);
    let refused = stream.timed(&stopwatch).download(&there, buffer);
    let failure = refused.expect_err("of another device");
    assert_eq!(failure.error, Error::WrongDevice);
    let buffer = failure.buffer.expect("it comes back");
    assert_eq!(&buffer[..], [1, 2, 3]);
    Ok(())
}
