//! Copies that a kernel does in mapped host memory, and write-combined memory as a target.

use pinlane::{Error, MappedCopies};

const LEN: usize = 100_003;

fn pattern(salt: u8) -> Vec<u8> {
    (0..LEN as u32)
        .map(|i| (i.wrapping_mul(0x9e37_79b9) >> 24) as u8 ^ salt)
        .collect()
}

#[test]
fn there_and_back_for_every_length() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let stream = device.stream().unwrap();
    let mut copies = MappedCopies::load(&device).unwrap();
    let mut on_device = device.alloc::<u8>(LEN).unwrap();
    let (mut there, mut back) = (device.mapped(LEN).unwrap(), device.mapped(LEN).unwrap());
    for (salt, bytes) in [0, 1, 15, 16, 17, 4096, 16_384, 65_537, LEN]
        .into_iter()
        .enumerate()
    {
        there.copy_from_slice(&pattern(salt as u8));
        back.fill(0);
        let place = on_device.range_mut(..bytes);
        there = copies
            .to_device(&stream, there, place)
            .unwrap()
            .wait()
            .unwrap();
        let place = on_device.range(..bytes);
        back = copies
            .to_host(&stream, place, back)
            .unwrap()
            .wait()
            .unwrap();
        assert_eq!(back[..bytes], there[..bytes], "{bytes} bytes");
        assert!(back[bytes..].iter().all(|byte| *byte == 0), "{bytes} bytes");
    }
    drop((there, back, on_device, copies, stream, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn another_stream_waits_for_the_kernel() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
    let mut copies = MappedCopies::load(&device).unwrap();
    let mut on_device = device.alloc::<u8>(LEN).unwrap();
    let mut there = device.mapped(LEN).unwrap();
    there.copy_from_slice(&pattern(9));
    let transfer = copies.to_device(&first, there, &mut on_device).unwrap();
    // Dropped in flight: the buffer is parked, and the copy goes on.
    drop(transfer);
    let mut back = vec![0; LEN];
    second.copy_to_host(&on_device, &mut back).unwrap();
    assert_eq!(back, pattern(9));
    drop((on_device, copies, first, second, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn too_short_a_buffer_is_refused_and_comes_back() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let stream = device.stream().unwrap();
    let mut copies = MappedCopies::load(&device).unwrap();
    let mut on_device = device.alloc::<u8>(8).unwrap();
    let short = device.mapped::<u8>(7).unwrap();
    let error = copies
        .to_device(&stream, short, &mut on_device)
        .unwrap_err();
    assert!(matches!(error.error, Error::LengthMismatch { .. }));
    let error = copies
        .to_host(&stream, &on_device, error.buffer.unwrap())
        .unwrap_err();
    assert_eq!(error.buffer.unwrap().len(), 7);
    drop((on_device, copies, stream, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn memory_of_another_device_is_refused_and_comes_back() {
    let sim = pinlane_testing::sim();
    let (device, other) = (pinlane_testing::open(&sim), pinlane_testing::open(&sim));
    let stream = device.stream().unwrap();
    let mut copies = MappedCopies::load(&device).unwrap();
    let mut on_device = device.alloc::<u8>(8).unwrap();
    // Its address is that of the device that it was got from.
    let foreign = other.mapped::<u8>(8).unwrap();
    let error = copies
        .to_device(&stream, foreign, &mut on_device)
        .unwrap_err();
    assert_eq!(error.error, Error::WrongDevice);
    let error = copies
        .to_host(&stream, &on_device, error.buffer.unwrap())
        .unwrap_err();
    assert_eq!(error.error, Error::WrongDevice);
    drop((error, on_device, copies, stream, device, other));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn a_sink_passes_on_what_it_got() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let stream = device.stream().unwrap();
    let (mut source, mut target) = (device.alloc(LEN).unwrap(), device.alloc(LEN).unwrap());
    stream.copy_to_device(&pattern(3), &mut source).unwrap();
    let sink = device.write_combined::<u8>(LEN + 5).unwrap().into_sink();
    let part = stream.download(&source, sink.part(..LEN)).unwrap();
    let part = part.wait().unwrap();
    let part = stream.upload(part, &mut target).unwrap().wait().unwrap();
    assert_eq!(stream.copy_to_vec(&target).unwrap(), pattern(3));
    let mut buffer = part.into_whole().into_inner();
    buffer.write(0, &[1, 2, 3]);
    drop((buffer, source, target, stream, device));
    pinlane_testing::assert_clean(&sim);
}
