//! Dropping what the device still uses.

use std::mem::ManuallyDrop;
use std::time::Duration;

use pinlane::kernel::{In, Out};
use pinlane::{Builtin, Device, LaunchShape, Result};

use super::numbers;

pub(super) fn scope(device: &Device) -> Result<()> {
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

pub(super) fn scope_registered(device: &Device) -> Result<()> {
    if !device.info().can_register {
        return Ok(());
    }
    let stream = device.stream()?;
    let source = numbers(5000);
    let mut target = vec![0; 5000];
    let mut on_device = device.alloc::<u32>(5000)?;
    device.scope(|scope| {
        let pinned = scope.register_read_only(&source)?;
        scope.upload(&stream, pinned, &mut on_device)?;
        let pinned = scope.register(&mut target)?;
        let (front, back) = pinned.split_at(1000);
        let _leaked = ManuallyDrop::new(scope.download(&stream, on_device.range(..1000), front)?);
        scope.download(&stream, on_device.range(1000..), back)?;
        Ok(())
    })?;
    assert_eq!(target, source);
    Ok(())
}

pub(super) fn scope_leaked(device: &Device) -> Result<()> {
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

pub(super) fn dropped_transfer(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let mut on_device = device.alloc::<u32>(100)?;
    drop(stream.upload(device.pinned_from(&numbers(100))?, &mut on_device)?);
    assert_eq!(stream.copy_to_vec(&on_device)?, numbers(100));
    Ok(())
}

pub(super) fn dropped_device_buffer(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let mut on_device = device.alloc::<u32>(100)?;
    let there = stream.upload(device.pinned_from(&numbers(100))?, &mut on_device)?;
    drop(on_device);
    there.wait()?;
    Ok(())
}

/// A buffer that is dropped while it is written keeps its memory until the write is done. The next
/// buffers of its size reuse it afterwards.
pub(super) fn kept_device_memory(device: &Device) -> Result<()> {
    let (late, stream) = (device.stream()?, device.stream()?);
    let kernels = Builtin::load(device)?;
    device.keep_device_memory(1 << 20);
    let mut first = device.alloc::<u32>(1000)?;
    let ptr = first.device_ptr();
    kernels.spin(&late, 20_000_000)?;
    let there = late.upload(device.pinned_from(&numbers(1000))?, &mut first)?;
    drop(first);
    let mut second = device.alloc::<u32>(1000)?;
    stream.copy_to_device(&[7; 1000], &mut second)?;
    there.wait()?;
    assert_eq!(stream.copy_to_vec(&second)?, [7; 1000]);
    device.reclaim();
    // Unless the first transfer was done before the second buffer was allocated.
    if second.device_ptr() != ptr {
        assert_eq!(device.alloc::<u32>(1000)?.device_ptr(), ptr);
    }
    Ok(())
}

pub(super) fn dropped_module(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let mut on_device = device.alloc::<f32>(100)?;
    stream.copy_to_device(&[1.0; 100], &mut on_device)?;
    let mut target = device.alloc::<f32>(100)?;
    stream.copy_to_device(&[2.0; 100], &mut target)?;
    {
        let module = device.load_ptx(pinlane_kernels::PTX)?;
        let saxpy = module.kernel::<(u64, f32, In<f32>, Out<f32>)>("pinlane_saxpy_f32")?;
        let values = (100, 3.0, on_device.whole(), target.whole_mut());
        // SAFETY: these are its parameters, and it accesses only the 100 elements.
        unsafe { stream.launch(&saxpy, LaunchShape::for_items(100), values)? };
    }
    assert_eq!(stream.copy_to_vec(&target)?, [5.0; 100]);
    Ok(())
}

pub(super) fn dropped_stream(device: &Device) -> Result<()> {
    let mut on_device = device.alloc::<u32>(100)?;
    let there = {
        let stream = device.stream()?;
        stream.upload(device.pinned_from(&numbers(100))?, &mut on_device)?
    };
    let back = device.stream()?.download(&on_device, device.pinned(100)?)?;
    assert_eq!(&back.wait()?[..], &there.wait()?[..]);
    Ok(())
}

pub(super) fn mapped(device: &Device) -> Result<()> {
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
            // Not held here; it must not be freed before the kernel is done.
            device.synchronize()?;
            return Err(failed.error);
        }
    };
    assert_eq!(stream.copy_to_vec(&on_device)?, mapped[..]);
    Ok(())
}

pub(super) fn timed_out(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let kernels = Builtin::load(device)?;
    kernels.spin(&stream, 200_000)?;
    let held = stream.hold(device.pinned_from(&[1u8, 2, 3])?)?;
    held.wait_timeout(Duration::from_micros(10))?;
    while !held.wait_timeout(Duration::from_secs(1))? {}
    assert!(held.is_done()?);
    assert_eq!(held.wait()?[..], [1, 2, 3]);
    Ok(())
}
