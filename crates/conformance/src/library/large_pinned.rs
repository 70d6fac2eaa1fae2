//! Pinned memory that is large enough for the library to map and register it itself.

use pinlane::{Device, Result, ToPinned};

use super::numbers;

/// Size of a buffer that is pinned the fast way, not a multiple of a page. Under miri the driver
/// allocates all memory, and this much would take minutes.
const LARGE_BYTES: usize = if cfg!(miri) { 5000 } else { (2 << 20) + 5000 };

pub(super) fn pinned(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let mut on_device = device.alloc::<u8>(LARGE_BYTES)?;
    let mut source = device.pinned::<u8>(LARGE_BYTES)?;
    source.fill(1);
    source[LARGE_BYTES - 1] = 2;
    let source = stream.upload(source, &mut on_device)?.wait()?;
    let back = stream.download(&on_device, device.pinned::<u8>(LARGE_BYTES)?)?;
    let back = back.wait()?;
    assert!(back[..] == source[..]);
    assert_eq!(back[LARGE_BYTES - 1], 2);
    // A dropped transfer keeps it until it is done.
    drop(stream.upload(source, &mut on_device)?);
    Ok(())
}

pub(super) fn mapped(device: &Device) -> Result<()> {
    if !device.info().can_map_host {
        return Ok(());
    }
    let mut buffer = device.mapped::<u8>(LARGE_BYTES)?;
    assert_ne!(buffer.device_ptr().0, 0);
    buffer.fill(3);
    let stream = device.stream()?;
    let mut on_device = device.alloc::<u8>(LARGE_BYTES)?;
    let mut buffer = stream.upload(buffer, &mut on_device)?.wait()?;
    buffer.fill(0);
    let buffer = stream.download(&on_device, buffer)?.wait()?;
    assert!(buffer.iter().all(|&byte| byte == 3));
    Ok(())
}

pub(super) fn to_pinned(device: &Device) -> Result<()> {
    let values = numbers(if cfg!(miri) { 1000 } else { 600_000 });
    let copied = values.to_pinned(device)?;
    assert!(copied[..] == values[..]);
    assert_eq!([1u8, 2, 3].to_pinned(device)?[..], [1, 2, 3]);
    let in_place = device.pin(values)?;
    assert!(in_place[..] == copied[..]);
    assert_eq!(in_place.into_inner()?.len(), copied.len());
    Ok(())
}
