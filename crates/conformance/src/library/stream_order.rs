//! Order across streams, by construction.

use pinlane::{Builtin, Device, Result, StreamFlags};

use super::numbers;

pub(super) fn across_streams(device: &Device) -> Result<()> {
    let (one, two, three) = (device.stream()?, device.stream()?, device.stream()?);
    let kernels = Builtin::load(device)?;
    let mut on_device = device.alloc::<u32>(256)?;
    let there = one.upload(device.pinned_from(&numbers(256))?, &mut on_device)?;
    kernels.add(&two, 5, &mut on_device)?;
    let back = three.download(&on_device, device.pinned::<u32>(256)?)?;
    let (there, back) = (there.wait()?, back.wait()?);
    assert!(
        back.iter()
            .zip(&there[..])
            .all(|(b, t)| *b == t.wrapping_add(5))
    );
    Ok(())
}

pub(super) fn readers_and_writer(device: &Device) -> Result<()> {
    let (one, two, three) = (device.stream()?, device.stream()?, device.stream()?);
    let mut on_device = device.alloc::<u32>(256)?;
    one.copy_to_device(&numbers(256), &mut on_device)?;
    let kernels = Builtin::load(device)?;
    kernels.spin(&one, 100_000)?; // the first reader is slow
    let first = one.download(&on_device, device.pinned::<u32>(256)?)?;
    let second = two.download(&on_device, device.pinned::<u32>(256)?)?;
    three.fill_bytes(&mut on_device, 0xff)?; // must wait for both
    assert_eq!(&second.wait()?[..], &numbers(256)[..]);
    assert_eq!(&first.wait()?[..], &numbers(256)[..]);
    Ok(())
}

pub(super) fn sub_ranges(device: &Device) -> Result<()> {
    let (one, two, three) = (device.stream()?, device.stream()?, device.stream()?);
    let kernels = Builtin::load(device)?;
    let mut on_device = device.alloc::<u32>(200)?;
    let (front, back) = on_device.whole_mut().split_at(100);
    kernels.spin(&one, 100_000)?;
    let first = one.upload(device.pinned_from(&numbers(100))?, front)?;
    let second = two.upload(device.pinned_from(&numbers(100))?, back)?;
    // Reads a part of both, and so waits for both.
    let middle = three.download(on_device.range(90..110), device.pinned::<u32>(20)?)?;
    let middle = middle.wait()?;
    assert_eq!(middle[..10], numbers(100)[90..]);
    assert_eq!(middle[10..], numbers(100)[..10]);
    first.wait()?;
    second.wait()?;
    Ok(())
}

pub(super) fn stream_ordered(device: &Device) -> Result<()> {
    let (one, two) = (device.stream()?, device.stream()?);
    for round in 0..3u8 {
        let mut on_device = one.alloc::<u8>(4096)?;
        two.fill_bytes(&mut on_device, round)?;
        let back = one.download(&on_device, device.pinned::<u8>(4096)?)?;
        drop(on_device); // returned in order, behind the download
        assert!(back.wait()?.iter().all(|&byte| byte == round));
    }
    Ok(())
}

pub(super) fn default_stream(device: &Device) -> Result<()> {
    let blocking = device.stream_with(StreamFlags::default())?;
    let stream = device.default_stream();
    let mut on_device = device.alloc::<u32>(100)?;
    let there = stream.upload(device.pinned_from(&numbers(100))?, &mut on_device)?;
    let mut copy = device.alloc::<u32>(100)?;
    blocking.copy_on_device(&on_device, &mut copy)?;
    let back = device
        .default_stream()
        .download(&copy, device.pinned(100)?)?;
    assert_eq!(&back.wait()?[..], &there.wait()?[..]);
    device.synchronize()
}

pub(super) fn events(device: &Device) -> Result<()> {
    let (one, two) = (device.stream()?, device.stream()?);
    let kernels = Builtin::load(device)?;
    let (start, end) = (device.event_with_timing()?, device.event_with_timing()?);
    one.record(&start)?;
    kernels.spin(&one, 1_000_000)?;
    one.record(&end)?;
    two.wait(&end)?;
    two.synchronize()?;
    assert!(end.is_done()?);
    assert!(start.elapsed_ns(&end)? >= 0);
    let plain = device.event()?;
    one.record(&plain)?;
    plain.synchronize()?;
    assert!(one.is_idle()?);
    Ok(())
}
