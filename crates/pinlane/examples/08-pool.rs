//! Pinned blocks from a pool, and what happens when there is no more.
//!
//! `cargo run -p pinlane --example 08-pool`

use std::time::Duration;

use pinlane::{Budget, Device, Error, HostBuf, PinnedPool};
use pinlane_model::Profile;
use pinlane_sim::Sim;

fn main() -> pinlane::Result<()> {
    let sim = Sim::new(Profile::builtin("pcie4-x16").expect("a built-in profile"));
    // By default half of what the machine has to spare; here 8 MiB, to see its end.
    let device = Device::with_budget(sim.driver(), &Budget::with_limit(8 << 20));
    println!("SIMULATED: {}", device.info().name);
    let stream = device.stream()?;
    let pool = PinnedPool::new(&device);
    let mut on_device = device.alloc::<u8>(3 << 20)?;

    // A block goes back when it is dropped; one in flight goes back when its copy is done. Where the
    // budget has no room for another, that is what this waits for.
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
