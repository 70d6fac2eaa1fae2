//! The budget: refusals, room that is made, waits, and pageable memory instead.

use std::thread;
use std::time::Duration;

use pinlane::{Error, HostBuf, PinnedPool};
use pinlane_core::internal::pinned_store;

use super::support::{PATIENCE, with_limit};

#[test]
fn over_the_budget_is_an_error_and_the_driver_is_not_asked() {
    let sim = pinlane_testing::sim();
    let (device, _) = with_limit(&sim, 3 << 20);
    let pool = PinnedPool::new(&device);
    let held = pool.take::<u8>(2 << 20).unwrap();
    let before = sim.trace_hash();
    let error = pool.take::<u8>(2 << 20).map(drop).unwrap_err();
    let (requested_bytes, in_use_bytes, limit_bytes) = match error {
        Error::OverBudget {
            requested_bytes,
            in_use_bytes,
            limit_bytes,
            ..
        } => (requested_bytes, in_use_bytes, limit_bytes),
        other => panic!("{other}"),
    };
    assert_eq!((requested_bytes, in_use_bytes), (2 << 20, 2 << 20));
    assert_eq!(limit_bytes, 3 << 20);
    for bytes in [1 << 40, isize::MAX as usize / 2] {
        let error = pool.take::<u8>(bytes).map(drop).unwrap_err();
        assert!(matches!(error, Error::OverBudget { .. }), "{error:?}");
    }
    assert_eq!(sim.trace_hash(), before, "no call was made");
    drop((held, pool, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn idle_memory_makes_room_for_another_size() {
    let sim = pinlane_testing::sim();
    let (device, budget) = with_limit(&sim, 4 << 20);
    let pool = PinnedPool::new(&device);
    drop(pool.take::<u8>(3 << 20).unwrap());
    assert_eq!(budget.in_use_bytes(), 3 << 20);
    let other = pool.take::<u8>(2 << 20).unwrap();
    assert_eq!(budget.in_use_bytes(), 2 << 20, "the idle one went");
    drop((other, pool, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn a_hopeless_request_frees_nothing() {
    let sim = pinlane_testing::sim();
    let (device, _) = with_limit(&sim, 4 << 20);
    let pool = PinnedPool::new(&device);
    drop(pool.take::<u8>(3 << 20).unwrap());
    assert!(pool.take::<u8>(5 << 20).is_err());
    assert_eq!(pool.stats().cached_bytes, 3 << 20);
    // It would fit the limit, but not with what is in use.
    let held = device.pinned::<u8>(1 << 20).unwrap();
    assert!(pool.take::<u8>(7 << 19).is_err());
    assert_eq!(pool.stats().cached_bytes, 3 << 20);
    drop(held);
}

#[test]
fn room_is_made_in_whole_pages() {
    let sim = pinlane_testing::sim();
    let (device, budget) = with_limit(&sim, 2 * 4096);
    drop([(); 2].map(|()| pinned_store(&device).take::<u8>(100).unwrap()));
    assert_eq!(budget.in_use_bytes(), 2 * 4096);
    drop(pinned_store(&device).take::<u8>(4097).unwrap());
    assert_eq!(budget.in_use_bytes(), 2 * 4096);
    drop(device);
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn a_block_is_had_where_its_slab_does_not_fit() {
    let sim = pinlane_testing::sim();
    let (device, budget) = with_limit(&sim, 8192);
    let pool = PinnedPool::new(&device);
    let one = pool.take::<u8>(100).unwrap();
    let two = pool.take::<u8>(100).unwrap();
    assert_eq!(budget.in_use_bytes(), 8192);
    assert!(pool.take::<u8>(100).is_err());
    drop((one, two, pool, device));
    assert_eq!(budget.in_use_bytes(), 0);
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn a_wait_ends_when_a_block_comes_back() {
    let sim = pinlane_testing::sim();
    let (device, _) = with_limit(&sim, 1 << 20);
    let pool = PinnedPool::new(&device);
    let held = pool.take::<u8>(1 << 20).unwrap();
    let address = held.as_ptr().addr();
    thread::scope(|scope| {
        let pool = &pool;
        let waiting = scope.spawn(|| {
            let taken = pool.take_within::<u8>(1 << 20, PATIENCE).unwrap();
            taken.as_ptr().addr()
        });
        drop(held);
        assert_eq!(waiting.join().unwrap(), address);
    });
}

#[test]
fn a_wait_ends_when_a_block_in_flight_has_landed() {
    let sim = pinlane_testing::sim();
    let (device, _) = with_limit(&sim, 1 << 20);
    let stream = device.stream().unwrap();
    let mut target = device.alloc::<u8>(1 << 20).unwrap();
    let pool = PinnedPool::new(&device);
    sim.hold();
    let buffer = pool.take::<u8>(1 << 20).unwrap();
    drop(stream.upload(buffer, &mut target).unwrap());
    let timed_out = pool.take_within::<u8>(1 << 20, Duration::from_millis(5));
    assert!(matches!(timed_out, Err(Error::OverBudget { .. })));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| pool.take_within::<u8>(1 << 20, PATIENCE).map(drop));
        sim.release();
        waiting.join().unwrap().unwrap();
    });
    assert_eq!(pool.stats().misses, 1);
}

#[test]
fn a_wait_ends_when_other_pinned_memory_goes() {
    let sim = pinlane_testing::sim();
    let (device, _) = with_limit(&sim, 1 << 20);
    let pool = PinnedPool::new(&device);
    let other = device.pinned::<u8>(4096).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| pool.take_within::<u8>(1 << 20, PATIENCE).map(drop));
        drop(other);
        waiting.join().unwrap().unwrap();
    });
}

#[test]
fn over_the_budget_pageable_memory_serves_who_wants_it() {
    let sim = pinlane_testing::sim();
    let (device, _) = with_limit(&sim, 1 << 20);
    let pool = PinnedPool::new(&device);
    let pinned = pool.take_or_pageable::<u16>(1 << 19).unwrap();
    assert!(pinned.is_pinned());
    let mut pageable = pool.take_or_pageable::<u16>(1 << 19).unwrap();
    assert!(matches!(&pageable, HostBuf::Pageable(values) if values.len() == 1 << 19));
    pageable[7] = 3;
    assert_eq!((pageable[6], pageable[7]), (0, 3));
    // More than there is, pinned or not.
    let error = pool.take_or_pageable::<u8>(1 << 60).map(drop).unwrap_err();
    assert!(matches!(error, Error::OverBudget { .. }), "{error:?}");
    let error = pool.take_or_pageable::<u64>(usize::MAX / 2).map(drop);
    assert!(matches!(error, Err(Error::TooLarge { .. })), "{error:?}");
}
