//! Round trips with every kind of buffer.

use memmap2::MmapMut;
use pinlane::{Device, MappedCopies, Result};

use super::numbers;

pub(super) fn round_trip(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let mut on_device = device.alloc::<u32>(1000)?;
    let there = stream.upload(device.pinned_from(&numbers(1000))?, &mut on_device)?;
    let buffer = there.wait()?;
    let mut back = device.pinned::<u32>(1000)?;
    back.fill(0);
    let back = stream.download(&on_device, back)?.wait()?;
    assert_eq!(&back[..], &buffer[..]);
    Ok(())
}

pub(super) fn timed(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let stopwatch = device.stopwatch()?;
    let mut on_device = device.alloc::<u32>(1000)?;
    let source = device.pinned_from(&numbers(1000))?;
    let sent = stream.timed(&stopwatch).upload(source, &mut on_device)?;
    stopwatch.elapsed_ns()?;
    let buffer = sent.wait()?;
    let back = device.pinned::<u32>(1)?;
    let place = on_device.range(7..8);
    let back = stream.timed(&stopwatch).download(place, back)?.wait()?;
    stopwatch.elapsed_ns()?;
    assert_eq!(back[0], buffer[7]);
    Ok(())
}

/// Copies by a kernel, on two streams and of two sizes.
pub(super) fn mapped_copies(device: &Device) -> Result<()> {
    if !device.info().can_map_host {
        return Ok(());
    }
    let (stream, other) = (device.stream()?, device.stream()?);
    let mut copies = MappedCopies::load(device)?;
    let mut on_device = device.alloc::<u8>(4_001)?;
    let (mut there, mut back) = (device.mapped::<u8>(4_001)?, device.mapped::<u8>(4_001)?);
    for bytes in [4_001, 17] {
        there.fill(bytes as u8);
        back.fill(0);
        let place = on_device.range_mut(..bytes);
        let sent = copies.to_device(&stream, there, place)?;
        let place = on_device.range(..bytes);
        back = copies.to_host(&other, place, back)?.wait()?;
        there = sent.wait()?;
        assert_eq!(back[..bytes], there[..bytes]);
        assert!(back[bytes..].iter().all(|byte| *byte == 0));
    }
    Ok(())
}

/// Write-combined memory cannot be read, but it can be uploaded again.
pub(super) fn write_combined_sink(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let (mut first, mut second) = (device.alloc::<u32>(500)?, device.alloc::<u32>(500)?);
    stream.copy_to_device(&numbers(500), &mut first)?;
    let sink = device.write_combined::<u32>(501)?.into_sink();
    let part = stream.download(&first, sink.part(1..))?.wait()?;
    let part = stream.upload(part, &mut second)?.wait()?;
    assert_eq!(stream.copy_to_vec(&second)?, numbers(500));
    assert_eq!(part.into_whole().into_inner().len(), 501);
    Ok(())
}

pub(super) fn registered(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let mut on_device = device.alloc::<u32>(300)?;
    let source = device.register(numbers(300))?;
    let source = stream.upload(source, &mut on_device)?.wait()?;
    let target = device.register(vec![0u32; 300].into_boxed_slice())?;
    let target = stream.download(&on_device, target)?.wait()?;
    assert_eq!(&target[..], &source[..]);
    assert_eq!(source.into_inner()?, numbers(300));
    assert_eq!(&*target.into_inner()?, &numbers(300)[..]);
    Ok(())
}

pub(super) fn read_only(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let mut on_device = device.alloc::<u32>(64)?;
    let source = device.register_read_only(numbers(64))?;
    let source = stream.upload(source, &mut on_device)?.wait()?;
    assert_eq!(stream.copy_to_vec(&on_device)?, &source[..]);
    assert_eq!(source.into_inner()?.0, numbers(64));
    Ok(())
}

pub(super) fn mapping(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let mut on_device = device.alloc::<u8>(3 * 4096)?;
    let mut anonymous = MmapMut::map_anon(3 * 4096).expect("memory");
    anonymous.fill(6);
    let source = stream.upload(device.register(anonymous)?, &mut on_device)?;
    let mut source = source.wait()?;
    source.fill(0);
    let target = stream.download(&on_device, source)?.wait()?;
    let anonymous: MmapMut = target.into_inner()?;
    assert!(anonymous.iter().all(|&byte| byte == 6));
    Ok(())
}

pub(super) fn write_combined(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let mut on_device = device.alloc::<u32>(64)?;
    let mut source = device.write_combined::<u32>(64)?;
    source.fill(7);
    source.write(10, &[1, 2, 3]);
    stream.upload(source, &mut on_device)?.wait()?;
    assert_eq!(stream.copy_to_vec(&on_device)?[9..14], [7, 1, 2, 3, 7]);
    Ok(())
}

pub(super) fn parts(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let mut on_device = device.alloc::<u32>(20)?;
    stream.fill_bytes(&mut on_device, 0)?;
    let buffer = device.pinned_from(&numbers(100))?;
    let part = stream
        .upload(buffer.part(30..40), on_device.range_mut(5..15))?
        .wait()?;
    assert_eq!(part.bounds(), 30..40);
    let back = stream.copy_to_vec(&on_device)?;
    assert_eq!(back[5..15], part.into_whole()[30..40]);
    assert_eq!((back[4], back[15]), (0, 0));
    Ok(())
}

pub(super) fn pageable(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let mut on_device = stream.alloc::<u32>(500)?;
    stream.copy_to_device(&numbers(500), &mut on_device)?;
    let mut back = vec![0; 500];
    stream.copy_to_host(&on_device, &mut back)?;
    assert_eq!(back, numbers(500));
    Ok(())
}

pub(super) fn nothing(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let mut on_device = device.alloc::<u32>(0)?;
    let there = stream
        .upload(device.pinned::<u32>(0)?, &mut on_device)?
        .wait()?;
    assert!(there.is_empty());
    assert!(device.register(Vec::<u32>::new())?.into_inner()?.is_empty());
    stream.copy_to_device(&[], &mut on_device)?;
    stream.copy_to_host(&on_device, &mut [])?;
    assert!(stream.alloc::<u64>(0)?.is_empty());
    assert!(device.mapped::<u8>(0)?.is_empty());
    Ok(())
}
