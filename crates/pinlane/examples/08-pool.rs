//! Pinned blocks from a pool, and what happens when the budget is used up.

use std::time::Duration;

use pinlane::{Budget, Device, Error, HostBuf, PinnedPool};

fn main() -> pinlane::Result<()> {
    let name = std::env::args().nth(1).unwrap_or("sim:h200".into());
    // By default, half of what the machine has available; here 8 MiB, to reach the limit.
    let device = Device::named(&name)?.limited_to(&Budget::with_limit(8 << 20));
    println!("{}", device.info().name);
    let stream = device.stream()?;
    let pool = PinnedPool::new(&device);
    let mut on_device = device.alloc::<u8>(3 << 20)?;

    // A block returns to the pool when it is dropped or, in flight, when its copy is done. Without room in
    // the budget, `take_within` waits for that.
    for round in 0..10 {
        let mut block = pool.take_within::<u8>(3 << 20, Duration::from_secs(1))?;
        block.fill(round);
        drop(stream.upload(block, &mut on_device).map_err(Error::from)?);
    }
    let stats = pool.stats();
    println!("{} hits, {} misses", stats.hits, stats.misses);

    stream.synchronize()?;

    // Past the budget: an error, a wait, or ordinary memory.
    let _one = pool.take::<u8>(3 << 20)?;
    let _two = pool.take::<u8>(3 << 20)?;
    match pool.take::<u8>(3 << 20) {
        Err(error @ Error::OverBudget { .. }) => println!("{error}"),
        other => panic!("expected an error, got {other:?}"),
    }
    assert!(
        pool.take_within::<u8>(3 << 20, Duration::from_millis(10))
            .is_err()
    );
    let spare = pool.take_or_pageable::<u8>(3 << 20)?;
    assert!(matches!(spare, HostBuf::Pageable(_)));
    stream.copy_to_device(&spare, &mut on_device)?; // the express lane takes either
    Ok(())
}
