//! Transfers that are awaited, alone and together, or cancelled.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

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
    let stream = device.stream()?;
    let mut on_device = device.alloc::<u32>(100)?;
    let there = stream.upload(device.pinned_from(&numbers(100))?, &mut on_device)?;
    if let Poll::Ready(result) = poll_and_drop(there) {
        result?;
    }
    stream.synchronize()
}

/// Polls a future once and drops it, as `select!` does.
fn poll_and_drop<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

pub(super) fn events_and_streams(device: &Device) -> Result<()> {
    let (one, two) = (device.stream()?, device.stream()?);
    let (mut a, mut b) = (device.alloc::<u32>(5000)?, device.alloc::<u32>(100)?);
    let slow = one.upload(device.pinned_from(&numbers(5000))?, &mut a)?;
    let event = device.event()?;
    one.record(&event)?;
    let fast = two.upload(device.pinned_from(&numbers(100))?, &mut b)?;
    block_on(async {
        two.finished().await?;
        assert!(fast.is_done()?);
        event.completed().await?;
        assert!(slow.is_done()?);
        event.completed().await // at once
    })?;
    if let Poll::Ready(result) = poll_and_drop(one.finished()) {
        result?;
    }
    let never_recorded = device.event()?;
    block_on(never_recorded.completed())
}

pub(super) fn in_scope(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let source = device.pinned_from(&numbers(100))?;
    let mut back = device.pinned(100)?;
    let mut on_device = device.alloc::<u32>(100)?;
    device.scope(|scope| {
        block_on(async {
            scope.upload(&stream, &source, &mut on_device)?.await?;
            let back = scope.download(&stream, &on_device, &mut back)?.await?;
            assert_eq!(back[..], source[..]);
            Ok(())
        })
    })
}
