//! Work on hand-written streams is recorded with its engine, stream and times.

use pinlane::record::Recorder;
use pinlane::{Builtin, Device};
use pinlane_report::timeline::{SpanKind, Track};

const LEN: usize = 1 << 20;

#[test]
fn copies_and_kernels_of_two_streams() -> pinlane::Result<()> {
    let (device, recorder) = Recorder::new(&Device::sim("pcie3-x16")?);
    let kernels = Builtin::load(&device)?;
    let streams = [device.stream()?, device.stream()?];
    let mut buffers = [device.alloc::<u32>(LEN)?, device.alloc::<u32>(LEN)?];
    for (stream, buffer) in streams.iter().zip(&mut buffers) {
        let there = stream.upload(device.pinned::<u32>(LEN)?, &mut *buffer)?;
        kernels.add(stream, 1, &mut *buffer)?;
        stream.download(&*buffer, there.wait()?)?.wait()?;
    }
    let recording = recorder.finish("two streams")?;
    let spans = recording.timeline().spans();
    let of = |kind| spans.iter().filter(move |span| span.kind == kind);
    for kind in [
        SpanKind::HostToDevice,
        SpanKind::Kernel,
        SpanKind::DeviceToHost,
    ] {
        let streams: Vec<_> = of(kind).map(|span| span.stream).collect();
        assert_eq!(streams, [Some(0), Some(1)], "{kind:?}");
    }
    for copy in of(SpanKind::HostToDevice) {
        assert_eq!((copy.track, copy.bytes), (Track::HostToDevice(0), 4 << 20));
        // 4 MiB at 12 GB/s.
        assert!((300_000..500_000).contains(&copy.duration_ns()), "{copy:?}");
    }
    assert!(of(SpanKind::Kernel).all(|span| !span.label.is_empty()));
    Ok(())
}

#[test]
fn finishing_twice_starts_anew() -> pinlane::Result<()> {
    let (device, recorder) = Recorder::new(&Device::sim("pcie3-x16")?);
    let stream = device.stream()?;
    let mut on_device = device.alloc::<u8>(LEN)?;
    stream.copy_to_device(&vec![1; LEN], &mut on_device)?;
    assert!(!recorder.finish("first")?.timeline().spans().is_empty());
    let second = recorder.finish("second")?;
    assert!(second.timeline().spans().is_empty());
    assert!(second.to_string().contains("SIMULATED"));
    Ok(())
}

#[test]
fn a_pause_records_nothing() -> pinlane::Result<()> {
    let (device, recorder) = Recorder::new(&Device::sim("pcie3-x16")?);
    recorder.pause();
    let (first, second) = (device.stream()?, device.stream()?);
    let mut on_device = device.alloc::<u8>(LEN)?;
    first.copy_to_device(&vec![1; LEN], &mut on_device)?;
    recorder.resume();
    drop(second.copy_to_vec(&on_device)?);
    recorder.pause();
    first.copy_to_device(&vec![1; LEN], &mut on_device)?;
    let recording = recorder.finish("the second")?;
    let spans = recording.timeline().spans();
    assert!(!spans.is_empty());
    for span in spans {
        let found = (span.kind, span.stream);
        assert_eq!(found, (SpanKind::DeviceToHost, Some(0)));
    }
    assert!(recording.svg().starts_with("<svg") && recording.svg().contains("SIMULATED"));
    Ok(())
}

#[test]
fn every_format_is_chosen_by_the_extension() -> pinlane::Result<()> {
    let (device, recorder) = Recorder::new(&Device::sim("pcie3-x16")?);
    drop(device.stream()?.copy_to_vec(&device.alloc::<u8>(LEN)?)?);
    let recording = recorder.finish("a copy")?;
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (extension, start) in [("svg", "<svg"), ("html", "<!doctype html>"), ("json", "{")] {
        let path = folder.join(format!("recording.{extension}"));
        recording.save(&path).expect("a file");
        let text = std::fs::read_to_string(&path).expect("text");
        assert!(text.to_lowercase().starts_with(start), "{extension}");
    }
    let error = recording.save("recording.pdf").unwrap_err();
    assert!(error.to_string().contains(".svg"), "{error}");
    Ok(())
}

#[test]
fn nothing_is_left_behind() {
    let sim = pinlane_testing::sim();
    let (device, recorder) = Recorder::new(&pinlane_testing::open(&sim));
    let stream = device.stream().expect("a stream");
    let mut on_device = device.alloc::<u8>(LEN).expect("memory");
    stream
        .copy_to_device(&vec![1; LEN], &mut on_device)
        .expect("a copy");
    drop((on_device, stream, recorder, device)); // not finished
    pinlane_testing::assert_clean(&sim);
}
