//! Many threads at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;

use pinlane::{DeviceStats, Error, PinnedPool, PinnedSource, PoolBuf};
use pinlane_testing::SplitMix64;

use super::support::with_limit;

#[test]
fn stress() {
    let sim = pinlane_testing::sim();
    let (device, budget) = with_limit(&sim, 24 << 20);
    let pool = PinnedPool::builder(&device)
        .idle_bytes_max(16 << 20)
        .build();
    let over = AtomicUsize::new(0);
    let (threads, rounds) = if cfg!(miri) { (2, 30) } else { (4, 3000) };
    thread::scope(|scope| {
        for seed in 0..threads {
            let (pool, over) = (&pool, &over);
            scope.spawn(move || hammer(pool, over, seed, rounds));
        }
    });
    let stats = pool.stats();
    assert_eq!(stats.in_use_bytes, 0);
    assert!(stats.cached_bytes <= stats.pinned_bytes);
    assert_eq!(stats.pinned_bytes, budget.in_use_bytes());
    assert!(stats.high_water_bytes <= 24 << 20);
    let taken = threads * rounds as u64 - over.into_inner() as u64;
    assert_eq!(stats.hits + stats.misses, taken);
    pool.trim(0);
    let stats = pool.stats();
    assert_eq!((stats.cached_bytes, stats.pinned_bytes), (0, 0));
    assert_eq!(device.stats(), DeviceStats::default());
    drop((pool, device));
    assert_eq!(budget.in_use_bytes(), 0);
    pinlane_testing::assert_clean(&sim);
}

fn hammer(pool: &PinnedPool, over: &AtomicUsize, seed: u64, rounds: usize) {
    let mut choice = SplitMix64::new(seed);
    let mut held: Vec<(PoolBuf<u64>, u64)> = Vec::new();
    for round in 0..rounds {
        let magnitude = 3 + choice.index(15);
        let len = 1 + choice.index(1 << magnitude);
        match pool.take::<u64>(len) {
            Ok(mut buffer) => {
                let mark = (seed << 32) + round as u64;
                buffer[0] = mark;
                buffer[len - 1] = mark;
                held.push((buffer, mark));
            }
            Err(Error::OverBudget { .. }) => {
                over.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => panic!("{error}"),
        }
        while held.len() > choice.index(12) {
            let (buffer, mark) = held.swap_remove(choice.index(held.len()));
            assert_eq!((buffer[0], buffer[buffer.len() - 1]), (mark, mark));
        }
        if choice.index(200) == 0 {
            pool.trim(1 << 20);
        }
    }
}

/// As many threads as there are, and more than there are places to put blocks.
const CROWD: usize = if cfg!(miri) { 3 } else { 24 };

#[test]
fn what_other_threads_gave_back_is_taken_before_anything_is_pinned() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let pool = PinnedPool::new(&device);
    for bytes in [512 << 10, 4096] {
        let before = pool.stats();
        let blocks: Vec<_> = (0..CROWD)
            .map(|_| pool.take::<u8>(bytes).unwrap())
            .collect();
        let first_misses = pool.stats().misses;
        thread::scope(|scope| {
            for block in blocks {
                scope.spawn(move || drop(block));
            }
        });
        let again: Vec<_> = (0..CROWD)
            .map(|_| pool.take::<u8>(bytes).unwrap())
            .collect();
        let stats = pool.stats();
        assert_eq!(stats.misses, first_misses);
        let taken = stats.hits + stats.misses - before.hits - before.misses;
        assert_eq!(taken, 2 * CROWD as u64);
        drop(again);
    }
    drop((pool, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn the_high_water_mark_is_of_all_threads_together() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let pool = PinnedPool::new(&device);
    let high_water = || pool.stats().high_water_bytes;
    let take = |bytes| pool.take::<u8>(bytes).unwrap();
    let elsewhere = |work: &(dyn Fn() + Sync)| {
        thread::scope(|scope| scope.spawn(work).join().unwrap());
    };
    // One after the other, each on a thread of its own: only one is out at a time.
    for _ in 0..CROWD {
        elsewhere(&|| drop(take(1 << 20)));
    }
    assert_eq!(high_water(), 1 << 20);
    // At the same time.
    let blocks: Vec<_> = (0..3).map(|_| take(1 << 20)).collect();
    elsewhere(&|| drop(take(1 << 20)));
    assert_eq!(high_water(), 4 << 20);
    thread::scope(|scope| {
        for block in blocks {
            scope.spawn(move || drop(block));
        }
    });
    // As much in other sizes, and a little more.
    let other = (take(3 << 20), take(512 << 10));
    elsewhere(&|| drop(take(512 << 10)));
    assert_eq!(high_water(), 4 << 20);
    elsewhere(&|| drop((take(512 << 10), take(64))));
    assert_eq!(high_water(), (4 << 20) + 64);
    drop(other);
    let stats = pool.stats();
    assert_eq!(
        (stats.in_use_bytes, stats.high_water_bytes),
        (0, (4 << 20) + 64)
    );
    drop((pool, device));
    pinlane_testing::assert_clean(&sim);
}

/// All threads want the same size, one block at a time, and hand some on to be given back by
/// others. Memory is pinned only when every block is out, so there are never more than hands.
#[test]
fn a_crowd_pins_no_more_blocks_than_it_holds() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let pool = PinnedPool::new(&device);
    let bytes = 512 << 10;
    let rounds = if cfg!(miri) { 20 } else { 1000 };
    // As many blocks may lie in here as there are threads.
    let (hand_on, handed_on) = mpsc::sync_channel(CROWD);
    let handed_on = Mutex::new(handed_on);
    thread::scope(|scope| {
        for _ in 0..CROWD {
            let (pool, handed_on, hand_on) = (&pool, &handed_on, hand_on.clone());
            scope.spawn(move || {
                for round in 0..rounds {
                    let block = pool.take::<u8>(bytes).unwrap();
                    let kept = match round % 3 {
                        0 => hand_on.try_send(block).err(),
                        _ => None,
                    };
                    let other = handed_on.lock().unwrap().try_recv();
                    drop((kept, other));
                }
            });
        }
    });
    drop(handed_on);
    let stats = pool.stats();
    // In each hand a block of its own and one of another's, and those in the channel.
    let blocks_max = 3 * CROWD as u64;
    assert!(stats.misses <= blocks_max, "{stats:?}");
    assert_eq!(stats.hits + stats.misses, (CROWD * rounds) as u64);
    assert_eq!(stats.in_use_bytes, 0);
    assert_eq!(stats.cached_bytes, stats.misses * bytes as u64);
    assert!(stats.high_water_bytes <= stats.cached_bytes);
    pool.trim(0);
    drop((pool, device));
    pinlane_testing::assert_clean(&sim);
}
