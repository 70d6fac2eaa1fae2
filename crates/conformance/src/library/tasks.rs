//! Transfers that are awaited, alone and together, or cancelled.

use pinlane::{Device, Result};

use super::{block_on, numbers};

pub(super) fn awaited(device: &Device) -> Result<()> {
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

pub(super) fn awaited_together(device: &Device) -> Result<()> {
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

pub(super) fn cancelled(device: &Device) -> Result<()> {
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
