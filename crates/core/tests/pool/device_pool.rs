//! The device's own pool: exact sizes, and what is idle in it makes room for others.

use pinlane::{Error, PinnedPool};
use pinlane_core::internal::{exact_pool, pinned_store, take_idle};

use super::support::with_limit;

/// Not a size that a user's pool has.
const ODD_BYTES: usize = 3 * 4096 + 100;

#[test]
fn blocks_have_exactly_the_size_that_was_requested() {
    let sim = pinlane_testing::sim();
    let (device, budget) = with_limit(&sim, 1 << 20);
    let store = pinned_store(&device);
    for bytes in [1, 64, ODD_BYTES, 300_000] {
        let block = store.take::<u8>(bytes).unwrap();
        assert_eq!(device.stats().pinned_bytes, bytes as u64);
        assert_eq!(
            budget.in_use_bytes(),
            bytes.next_multiple_of(4096) as u64,
            "to the page"
        );
        let start = block.as_ptr();
        drop(block);
        let again = store.take::<u8>(bytes).unwrap();
        assert_eq!(again.as_ptr(), start, "the same block");
        drop(again);
        assert_eq!(device.trim(), bytes);
        assert_eq!((device.trim(), budget.in_use_bytes()), (0, 0));
    }
    drop(device);
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn idle_blocks_go_with_the_device() {
    let sim = pinlane_testing::sim();
    let (device, budget) = with_limit(&sim, 1 << 20);
    let stream = device.stream().unwrap();
    let mut target = device.alloc::<u8>(ODD_BYTES).unwrap();
    drop(pinned_store(&device).take::<u8>(4096).unwrap());
    let in_flight = pinned_store(&device).take::<u8>(ODD_BYTES).unwrap();
    drop(stream.upload(in_flight, &mut target).unwrap());
    drop((target, stream, device));
    assert_eq!(budget.in_use_bytes(), 0);
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn idle_blocks_make_room_for_every_allocation() {
    let sim = pinlane_testing::sim();
    let (device, _) = with_limit(&sim, 1 << 20);
    let fill = || {
        let blocks = [(); 4].map(|()| pinned_store(&device).take::<u8>(256 << 10).unwrap());
        drop(blocks);
        assert_eq!(pinned_store(&device).stats().cached_bytes, 1 << 20);
    };
    fill();
    drop(device.pinned::<u8>(1 << 20).unwrap());

    fill();
    let pool = PinnedPool::new(&device);
    drop(pool.take::<u8>(768 << 10).unwrap());
    assert_eq!(
        pinned_store(&device).stats().cached_bytes,
        256 << 10,
        "no more than was needed"
    );
    drop(pool);

    fill();
    drop(exact_pool(&device).take::<u8>(1 << 20).unwrap());

    fill();
    let held = pinned_store(&device).take::<u8>(256 << 10).unwrap();
    let error = pool_error(&device, 1 << 20);
    assert!(matches!(error, Error::OverBudget { .. }), "{error:?}");
    drop((held, device));
    pinlane_testing::assert_clean(&sim);
}

fn pool_error(device: &pinlane::Device, bytes: usize) -> Error {
    let taken = PinnedPool::new(device).take::<u8>(bytes);
    taken.map(drop).expect_err("too much")
}

#[test]
fn the_smallest_idle_block_that_fits_is_taken() {
    let sim = pinlane_testing::sim();
    let (device, _) = with_limit(&sim, 1 << 20);
    let pool = exact_pool(&device);
    let blocks = [5000, 3000, 9000].map(|bytes| pool.take::<u8>(bytes).unwrap());
    let smaller = blocks[0].as_ptr();
    drop(blocks);
    assert!(take_idle(&pool, 1..=2999).is_none());
    assert!(take_idle(&pool, 9001..=usize::MAX).is_none());
    let fitting = take_idle(&pool, 4000..=9000).expect("two of them fit");
    assert_eq!((fitting.as_ptr(), fitting.len()), (smaller, 4000));
    assert_eq!(pool.stats().in_use_bytes, 5000, "all of the block");
    drop((pool, device));
    drop(fitting); // it outlives both
    pinlane_testing::assert_clean(&sim);
}
