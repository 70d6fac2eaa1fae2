//! Pinned memory from a pool.

use pinlane::{Device, PinnedPool, Result};

use super::numbers;

pub(super) fn reused(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let pool = PinnedPool::new(device);
    let mut on_device = device.alloc::<u32>(1000)?;
    for round in 0..3 {
        let mut source = pool.take::<u32>(1000)?;
        source.copy_from_slice(&numbers(1000));
        source[0] = round;
        let source = stream.upload(source, &mut on_device)?.wait()?;
        let back = stream.download(&on_device, pool.take::<u32>(1000)?)?;
        assert_eq!(back.wait()?[..], source[..]);
    }
    let stats = pool.stats();
    assert_eq!((stats.in_use_bytes, stats.hits, stats.misses), (0, 5, 1));
    pool.trim(0);
    Ok(())
}

/// Batches that are never waited for: each block returns by itself, and none is reused in flight.
pub(super) fn in_flight(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let pool = PinnedPool::new(device);
    let mut batches = device.alloc::<u32>(8 * 1000)?;
    for batch in 0..8u32 {
        let mut buffer = pool.take::<u32>(1000)?;
        buffer.fill(batch);
        let start = batch as usize * 1000;
        drop(stream.upload(buffer, batches.range_mut(start..start + 1000))?);
    }
    let back = stream.copy_to_vec(&batches)?;
    for (batch, values) in (0u32..).zip(back.chunks(1000)) {
        assert!(values.iter().all(|&value| value == batch));
    }
    Ok(())
}
