//! A budget caps pinned memory. Beyond it: an error, a wait, or pageable memory.

use std::time::Duration;

use pinlane::{Budget, Device, ErrorKind, PinnedPool, Result};

fn main() -> Result<()> {
    let budget = Budget::with_limit(4 << 20); // by default half of what is available
    let device = Device::sim("pcie3-x16")?.limited_to(&budget);

    let first = device.pinned::<u8>(3 << 20)?;
    println!(
        "in use: {} of {} MiB",
        budget.in_use_bytes() >> 20,
        budget.limit_bytes()? >> 20
    );

    let error = device.pinned::<u8>(2 << 20).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OverBudget);
    println!("refused: {error}");

    let pool = PinnedPool::new(&device);
    let waited = pool.take_within::<u8>(2 << 20, Duration::from_millis(1));
    println!(
        "after waiting 1 ms: {}",
        if waited.is_ok() {
            "pinned"
        } else {
            "still refused"
        }
    );

    let fallback = pool.take_or_pageable::<u8>(2 << 20)?;
    println!(
        "or pageable memory: {} bytes, pinned: {}",
        fallback.len(),
        fallback.is_pinned()
    );

    drop(first);
    println!("with room again: {}", pool.take::<u8>(2 << 20).is_ok());
    Ok(())
}
