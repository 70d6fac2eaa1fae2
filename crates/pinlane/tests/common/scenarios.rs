//! One small program for each thing the library does. Each returns the first error that it meets,
//! checks what it got, and gives everything back.

use std::mem::ManuallyDrop;
use std::time::Duration;

use pinlane::kernel::{In, Out};
use pinlane::{Builtin, Device, LaunchShape, Result, StreamFlags};

use super::block_on;

pub type Scenario = (&'static str, fn(&Device) -> Result<()>);

pub const ALL: &[Scenario] = &[
    ("round trip", round_trip),
    ("registered", registered),
    ("read-only", read_only),
    ("write-combined", write_combined),
    ("mapped and held", mapped),
    ("parts", parts),
    ("scope", scope),
    ("scope with leaked transfers", scope_leaked),
    ("pageable", pageable),
    ("order across streams", across_streams),
    ("readers and a writer", readers_and_writer),
    ("sub-ranges", sub_ranges),
    ("stream-ordered memory", stream_ordered),
    ("dropped transfer", dropped_transfer),
    ("dropped device buffer", dropped_device_buffer),
    ("dropped module", dropped_module),
    ("dropped stream", dropped_stream),
    ("awaited", awaited),
    ("awaited together", awaited_together),
    ("cancelled", cancelled),
    ("timed out", timed_out),
    ("events", events),
    ("default stream", default_stream),
    ("nothing", nothing),
];

fn numbers(len: u32) -> Vec<u32> {
    (0..len).map(|i| i.wrapping_mul(2_654_435_761)).collect()
}

fn round_trip(device: &Device) -> Result<()> {
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

fn registered(device: &Device) -> Result<()> {
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

fn read_only(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let mut on_device = device.alloc::<u32>(64)?;
    let source = device.register_read_only(numbers(64))?;
    let source = stream.upload(source, &mut on_device)?.wait()?;
    let mut back = vec![0; 64];
    stream.copy_to_host(&on_device, &mut back)?;
    assert_eq!(back, &source[..]);
    assert_eq!(source.into_inner()?.0, numbers(64));
    Ok(())
}

fn write_combined(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let mut on_device = device.alloc::<u32>(64)?;
    let mut source = device.write_combined::<u32>(64)?;
    source.fill(7);
    source.write(10, &[1, 2, 3]);
    stream.upload(source, &mut on_device)?.wait()?;
    let mut back = [0; 64];
    stream.copy_to_host(&on_device, &mut back)?;
    assert_eq!(back[9..14], [7, 1, 2, 3, 7]);
    Ok(())
}

fn mapped(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let module = device.load_ptx(pinlane_kernels::PTX)?;
    let copy = module.kernel::<(u64, pinlane::DevicePtr, Out<u8>)>("pinlane_copy_u8")?;
    let mut on_device = device.alloc::<u8>(100)?;
    let mut mapped = device.mapped::<u8>(100)?;
    mapped.fill(9);
    let values = (100, mapped.device_ptr(), on_device.whole_mut());
    // SAFETY: these are its parameters, and `mapped` is held until it is done.
    unsafe { stream.launch(&copy, LaunchShape::for_items(100), values)? };
    let mapped = match stream.hold(mapped) {
        Ok(held) => held.wait()?,
        Err(failed) => {
            // Not held: nobody may free it before the kernel is done.
            device.synchronize()?;
            return Err(failed.error);
        }
    };
    let mut back = [0; 100];
    stream.copy_to_host(&on_device, &mut back)?;
    assert_eq!(back, mapped[..]);
    Ok(())
}

fn parts(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let mut on_device = device.alloc::<u32>(20)?;
    stream.fill_bytes(&mut on_device, 0)?;
    let buffer = device.pinned_from(&numbers(100))?;
    let part = stream
        .upload(buffer.part(30..40), on_device.range_mut(5..15))?
        .wait()?;
    assert_eq!(part.bounds(), 30..40);
    let mut back = [0; 20];
    stream.copy_to_host(&on_device, &mut back)?;
    assert_eq!(back[5..15], part.into_whole()[30..40]);
    assert_eq!((back[4], back[15]), (0, 0));
    Ok(())
}

fn scope(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let source = device.pinned_from(&numbers(100))?;
    let mut target = device.pinned::<u32>(60)?;
    target.fill(0);
    let mut on_device = device.alloc::<u32>(100)?;
    device.scope(|scope| {
        scope.upload(&stream, &source, &mut on_device)?;
        let (front, back) = target.range_mut(..).split_at(30);
        let front = scope.download(&stream, on_device.range(..30), front)?;
        scope.download(&stream, on_device.range(70..), back)?;
        let mut front = front.wait()?; // ours again inside of the scope
        assert_eq!(front[..], source[..30]);
        front[0] = 77;
        Ok(())
    })?;
    assert_eq!(target[0], 77);
    assert_eq!(target[30..], source[70..]);
    Ok(())
}

fn scope_leaked(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let source = device.pinned_from(&numbers(50))?;
    let mut on_device = device.alloc::<u32>(50)?;
    device.scope(|scope| {
        let _leaked = ManuallyDrop::new(scope.upload(&stream, &source, &mut on_device)?);
        Ok(())
    })?;
    drop(source); // not in flight any more
    Ok(())
}

fn pageable(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let mut on_device = stream.alloc::<u32>(500)?;
    stream.copy_to_device(&numbers(500), &mut on_device)?;
    let mut back = vec![0; 500];
    stream.copy_to_host(&on_device, &mut back)?;
    assert_eq!(back, numbers(500));
    Ok(())
}

fn across_streams(device: &Device) -> Result<()> {
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

fn readers_and_writer(device: &Device) -> Result<()> {
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

fn sub_ranges(device: &Device) -> Result<()> {
    let (one, two, three) = (device.stream()?, device.stream()?, device.stream()?);
    let kernels = Builtin::load(device)?;
    let mut on_device = device.alloc::<u32>(200)?;
    let (front, back) = on_device.whole_mut().split_at(100);
    kernels.spin(&one, 100_000)?;
    let first = one.upload(device.pinned_from(&numbers(100))?, front)?;
    let second = two.upload(device.pinned_from(&numbers(100))?, back)?;
    // Reads a bit of both, and so waits for both.
    let middle = three.download(on_device.range(90..110), device.pinned::<u32>(20)?)?;
    let middle = middle.wait()?;
    assert_eq!(middle[..10], numbers(100)[90..]);
    assert_eq!(middle[10..], numbers(100)[..10]);
    first.wait()?;
    second.wait()?;
    Ok(())
}

fn stream_ordered(device: &Device) -> Result<()> {
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

fn dropped_transfer(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let mut on_device = device.alloc::<u32>(100)?;
    drop(stream.upload(device.pinned_from(&numbers(100))?, &mut on_device)?);
    let mut back = vec![0; 100];
    stream.copy_to_host(&on_device, &mut back)?;
    assert_eq!(back, numbers(100));
    Ok(())
}

fn dropped_device_buffer(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let mut on_device = device.alloc::<u32>(100)?;
    let there = stream.upload(device.pinned_from(&numbers(100))?, &mut on_device)?;
    drop(on_device);
    there.wait()?;
    Ok(())
}

fn dropped_module(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let mut on_device = device.alloc::<f32>(100)?;
    stream.copy_to_device(&[1.0; 100], &mut on_device)?;
    let mut target = device.alloc::<f32>(100)?;
    stream.copy_to_device(&[2.0; 100], &mut target)?;
    {
        let module = device.load_ptx(pinlane_kernels::PTX)?;
        let saxpy = module.kernel::<(u64, f32, In<f32>, Out<f32>)>("pinlane_saxpy_f32")?;
        let values = (100, 3.0, on_device.whole(), target.whole_mut());
        // SAFETY: these are its parameters, and it touches the 100 elements only.
        unsafe { stream.launch(&saxpy, LaunchShape::for_items(100), values)? };
    }
    let mut back = [0.0; 100];
    stream.copy_to_host(&target, &mut back)?;
    assert_eq!(back, [5.0; 100]);
    Ok(())
}

fn dropped_stream(device: &Device) -> Result<()> {
    let mut on_device = device.alloc::<u32>(100)?;
    let there = {
        let stream = device.stream()?;
        stream.upload(device.pinned_from(&numbers(100))?, &mut on_device)?
    };
    let back = device.stream()?.download(&on_device, device.pinned(100)?)?;
    assert_eq!(&back.wait()?[..], &there.wait()?[..]);
    Ok(())
}

fn awaited(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let mut on_device = device.alloc::<u32>(100)?;
    block_on(async {
        let source = device.pinned_from(&numbers(100))?;
        stream.upload(source, &mut on_device)?.await?;
        let back = stream.download(&on_device, device.pinned(100)?)?.await?;
        assert_eq!(&back[..], &numbers(100)[..]);
        Ok(())
    })
}

fn awaited_together(device: &Device) -> Result<()> {
    let (one, two) = (device.stream()?, device.stream()?);
    let (mut a, mut b) = (device.alloc::<u32>(100)?, device.alloc::<u32>(5000)?);
    let slow = one.upload(device.pinned_from(&numbers(5000))?, &mut b)?;
    let fast = two.upload(device.pinned_from(&numbers(100))?, &mut a)?;
    block_on(async {
        let fast = fast.await;
        let slow = slow.await;
        assert_eq!(&slow?[..], &numbers(5000)[..]);
        assert_eq!(&fast?[..], &numbers(100)[..]);
        Ok(())
    })
}

fn cancelled(device: &Device) -> Result<()> {
    use std::future::Future;
    use std::task::{Context, Waker};
    let stream = device.stream()?;
    let mut on_device = device.alloc::<u32>(100)?;
    let mut there = Box::pin(stream.upload(device.pinned_from(&numbers(100))?, &mut on_device)?);
    let polled = there.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    drop(there); // polled, then dropped, as `select!` does
    if let std::task::Poll::Ready(result) = polled {
        result?;
    }
    stream.synchronize()
}

fn timed_out(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let kernels = Builtin::load(device)?;
    kernels.spin(&stream, 50_000_000)?;
    let held = stream.hold(vec![1u8, 2, 3])?;
    held.wait_timeout(Duration::from_millis(1))?;
    while !held.wait_timeout(Duration::from_secs(1))? {}
    assert!(held.is_done()?);
    assert_eq!(held.wait()?, [1, 2, 3]);
    Ok(())
}

fn events(device: &Device) -> Result<()> {
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

fn default_stream(device: &Device) -> Result<()> {
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

fn nothing(device: &Device) -> Result<()> {
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
