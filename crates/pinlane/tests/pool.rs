//! The pool: what it hands out, when it takes it back, and that nothing is left of it.

mod common;

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use pinlane::{
    Budget, Device, Error, HostBuf, PinnedPool, PinnedSource, PoolBuf, PoolStats, Stats,
};
use pinlane_sim::Sim;

const SLAB_BYTES: u64 = 2 << 20;

/// How long to wait for what comes: a test that is broken fails rather than hangs.
const PATIENCE: Duration = Duration::from_secs(30);

fn with_limit(sim: &Sim, bytes: u64) -> (Device, Budget) {
    let budget = Budget::with_limit(bytes);
    (Device::with_budget(sim.driver(), &budget), budget)
}

/// Numbers that a seed decides (SplitMix64).
struct Choice(u64);

impl Choice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

#[test]
fn a_block_is_reused_after_it_was_given_back_and_not_before() {
    let sim = common::sim();
    let device = common::open(&sim);
    let pool = PinnedPool::new(&device);
    let first = pool.take::<u32>(1000).unwrap();
    let second = pool.take::<u32>(1000).unwrap();
    let address = first.as_ptr();
    assert_ne!(address, second.as_ptr());
    drop(first);
    let again = pool.take::<f32>(990).unwrap();
    assert_eq!(
        again.as_ptr().cast(),
        address,
        "the warmest, whatever the elements"
    );
    let stats = pool.stats();
    assert_eq!((stats.hits, stats.misses), (2, 1));
    assert_eq!(stats.in_use_bytes, 2 * 4096);
    assert_eq!(stats.high_water_bytes, 2 * 4096);
    assert_eq!(stats.in_use_bytes + stats.cached_bytes, SLAB_BYTES);
    assert_eq!(stats.pinned_bytes, SLAB_BYTES);
    assert_eq!(device.stats().pinned_bytes, SLAB_BYTES);
    drop((again, second, pool, device));
    common::assert_clean(&sim);
}

#[test]
fn a_block_in_flight_is_not_handed_out_and_afterwards_it_is() {
    let sim = common::sim();
    let device = common::open(&sim);
    let stream = device.stream().unwrap();
    let mut target = device.alloc::<u8>(512 << 10).unwrap();
    let pool = PinnedPool::new(&device);
    let buffer = pool.take::<u8>(512 << 10).unwrap();
    let address = buffer.as_ptr();
    sim.hold();
    drop(stream.upload(buffer, &mut target).unwrap());
    let other = pool.take::<u8>(512 << 10).unwrap();
    assert_ne!(other.as_ptr(), address, "in flight");
    assert_eq!(pool.stats().misses, 2);
    sim.release();
    while !stream.is_idle().unwrap() {}
    assert_eq!(
        device.stats().parked,
        1,
        "landed, and nobody has looked yet"
    );
    let again = pool.take::<u8>(512 << 10).unwrap();
    assert_eq!(again.as_ptr(), address, "landed");
    assert_eq!((pool.stats().hits, pool.stats().misses), (1, 2));
    drop((other, again, pool, target, stream, device));
    common::assert_clean(&sim);
}

#[test]
fn a_pool_holds_no_device_open_and_a_parked_block_no_pool() {
    let sim = common::sim();
    let device = common::open(&sim);
    let stream = device.stream().unwrap();
    let mut target = device.alloc::<u8>(100).unwrap();
    let pool = PinnedPool::new(&device);
    drop(stream.upload(pool.take(100).unwrap(), &mut target).unwrap());
    drop(pool);
    drop((target, stream, device)); // the shutdown waits for what is parked
    common::assert_clean(&sim);
}

#[test]
fn blocks_outlive_the_pool_and_the_device() {
    let sim = common::sim();
    let (device, budget) = with_limit(&sim, 1 << 30);
    let pool = PinnedPool::new(&device);
    let mut one = pool.take::<u64>(100).unwrap();
    let two = pool.take::<u64>(1 << 17).unwrap();
    drop((pool, device));
    one.fill(5);
    assert_eq!(one.iter().sum::<u64>(), 500);
    drop(one);
    assert!(budget.in_use_bytes() > 0);
    drop(two);
    assert_eq!(budget.in_use_bytes(), 0);
    common::assert_clean(&sim);
}

#[test]
fn waste_is_bounded_for_every_size() {
    let sim = common::sim();
    let (device, _) = with_limit(&sim, 1 << 30);
    let pool = PinnedPool::new(&device);
    let mut bytes = 64;
    while bytes <= 16 << 20 {
        let buffer = pool.take::<u8>(bytes).unwrap();
        assert_eq!(buffer.len(), bytes);
        assert_eq!(buffer.as_ptr().addr() % 64, 0);
        let block = pool.stats().in_use_bytes;
        let waste = block - bytes as u64;
        // Below 512 bytes the blocks are whole cache lines.
        assert!(waste <= block / 8 || waste < 64, "{bytes} in {block}");
        drop(buffer);
        pool.trim(0);
        bytes += 1 + bytes / if cfg!(miri) { 2 } else { 29 };
    }
    drop((pool, device));
    common::assert_clean(&sim);
}

#[test]
fn elements_are_aligned_or_refused() {
    #[derive(Clone, Copy)]
    #[repr(C, align(1024))]
    struct Page([u8; 1024]);
    #[derive(Clone, Copy)]
    #[repr(C, align(8192))]
    struct TwoPages([u8; 8192]);
    // SAFETY: plain bytes without padding, any values of which are valid.
    unsafe impl bytemuck::Zeroable for Page {}
    // SAFETY: as above.
    unsafe impl pinlane::Pod for Page {}
    // SAFETY: as above.
    unsafe impl bytemuck::Zeroable for TwoPages {}
    // SAFETY: as above.
    unsafe impl pinlane::Pod for TwoPages {}

    let sim = common::sim();
    let device = common::open(&sim);
    let pool = PinnedPool::new(&device);
    let blocks: Vec<_> = (1..20).map(|len| pool.take::<Page>(len).unwrap()).collect();
    for block in &blocks {
        assert_eq!(block.as_ptr().addr() % 1024, 0);
        assert_eq!(block[0].0.len(), 1024);
    }
    let refused = pool.take::<TwoPages>(1).map(|buffer| buffer[0].0[0]);
    assert_eq!(refused.unwrap_err(), Error::TooAligned { align: 8192 });
}

#[test]
fn nothing_costs_nothing() {
    let sim = common::sim();
    let device = common::open(&sim);
    let pool = PinnedPool::new(&device);
    let nothing = pool.take::<u64>(0).unwrap();
    assert!(nothing.is_empty());
    drop(nothing);
    assert_eq!(pool.stats(), PoolStats::default());
    assert!(matches!(
        pool.take::<u64>(usize::MAX / 4),
        Err(Error::TooLarge { .. })
    ));
}

#[test]
fn over_the_budget_is_an_error_and_the_driver_is_not_asked() {
    let sim = common::sim();
    let (device, _) = with_limit(&sim, 3 << 20);
    let pool = PinnedPool::new(&device);
    let held = pool.take::<u8>(2 << 20).unwrap();
    let before = sim.trace_hash();
    let error = pool.take::<u8>(2 << 20).map(drop).unwrap_err();
    let expected = Error::OverBudget {
        requested_bytes: 2 << 20,
        in_use_bytes: 2 << 20,
        limit_bytes: 3 << 20,
    };
    assert_eq!(error, expected);
    for bytes in [1 << 40, isize::MAX as usize / 2] {
        let error = pool.take::<u8>(bytes).map(drop).unwrap_err();
        assert!(matches!(error, Error::OverBudget { .. }), "{error:?}");
    }
    assert_eq!(sim.trace_hash(), before, "no call was made");
    drop((held, pool, device));
    common::assert_clean(&sim);
}

#[test]
fn idle_memory_makes_room_for_another_size() {
    let sim = common::sim();
    let (device, budget) = with_limit(&sim, 4 << 20);
    let pool = PinnedPool::new(&device);
    drop(pool.take::<u8>(3 << 20).unwrap());
    assert_eq!(budget.in_use_bytes(), 3 << 20);
    let other = pool.take::<u8>(2 << 20).unwrap();
    assert_eq!(budget.in_use_bytes(), 2 << 20, "the idle one went");
    drop((other, pool, device));
    common::assert_clean(&sim);
}

#[test]
fn a_hopeless_request_frees_nothing() {
    let sim = common::sim();
    let (device, _) = with_limit(&sim, 4 << 20);
    let pool = PinnedPool::new(&device);
    drop(pool.take::<u8>(3 << 20).unwrap());
    assert!(pool.take::<u8>(5 << 20).is_err());
    assert_eq!(pool.stats().cached_bytes, 3 << 20);
}

#[test]
fn a_block_is_had_where_its_slab_does_not_fit() {
    let sim = common::sim();
    let (device, budget) = with_limit(&sim, 8192);
    let pool = PinnedPool::new(&device);
    let one = pool.take::<u8>(100).unwrap();
    let two = pool.take::<u8>(100).unwrap();
    assert_eq!(budget.in_use_bytes(), 8192);
    assert!(pool.take::<u8>(100).is_err());
    drop((one, two, pool, device));
    assert_eq!(budget.in_use_bytes(), 0);
    common::assert_clean(&sim);
}

#[test]
fn a_wait_ends_when_a_block_comes_back() {
    let sim = common::sim();
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
    let sim = common::sim();
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
    let sim = common::sim();
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
    let sim = common::sim();
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

#[test]
fn blocks_are_for_every_device() {
    let sim = Sim::builder().profile(common::profile()).devices(2).build();
    let one = Device::open(&sim, 0).unwrap();
    let two = Device::open(&sim, 1).unwrap();
    let stream = two.stream().unwrap();
    let mut target = two.alloc::<u8>(100).unwrap();
    let buffer = PinnedPool::new(&one).take::<u8>(100).unwrap();
    let buffer = stream.upload(buffer, &mut target).unwrap().wait().unwrap();
    drop((buffer, target, stream, one, two));
    common::assert_clean(&sim);
}

#[test]
fn pieces_go_through_scopes_and_parts() {
    let sim = common::sim();
    let device = common::open(&sim);
    let stream = device.stream().unwrap();
    let pool = PinnedPool::new(&device);
    let mut on_device = device.alloc::<u32>(10).unwrap();
    let mut source = pool.take::<u32>(100).unwrap();
    source.iter_mut().zip(0..).for_each(|(value, i)| *value = i);
    let part = stream.upload(source.part(20..30), &mut on_device).unwrap();
    let source = part.wait().unwrap().into_whole();
    let mut back = pool.take::<u32>(10).unwrap();
    device
        .scope(|scope| {
            scope.download(&stream, on_device.range(..5), back.range_mut(..5))?;
            scope.upload(&stream, source.range(..10), &mut on_device)?;
            Ok(())
        })
        .unwrap();
    assert_eq!(back[..5], [20, 21, 22, 23, 24]);
    drop((source, back, pool, on_device, stream, device));
    common::assert_clean(&sim);
}

/// Many threads, any sizes, a tight budget: no block is in two hands, and the books balance.
#[test]
fn stress() {
    let sim = common::sim();
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
    assert_eq!(device.stats(), Stats::default());
    drop((pool, device));
    assert_eq!(budget.in_use_bytes(), 0);
    common::assert_clean(&sim);
}

fn hammer(pool: &PinnedPool, over: &AtomicUsize, seed: u64, rounds: usize) {
    let mut choice = Choice(seed);
    let mut held: Vec<(PoolBuf<u64>, u64)> = Vec::new();
    for round in 0..rounds {
        let magnitude = 3 + choice.below(15);
        let len = 1 + choice.below(1 << magnitude);
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
        while held.len() > choice.below(12) {
            let (buffer, mark) = held.swap_remove(choice.below(held.len()));
            assert_eq!((buffer[0], buffer[buffer.len() - 1]), (mark, mark));
        }
        if choice.below(200) == 0 {
            pool.trim(1 << 20);
        }
    }
}

/// As many threads as there are, and more than there are places to put blocks.
const CROWD: usize = if cfg!(miri) { 3 } else { 24 };

#[test]
fn what_other_threads_gave_back_is_taken_before_anything_is_pinned() {
    let sim = common::sim();
    let device = common::open(&sim);
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
    common::assert_clean(&sim);
}

#[test]
fn the_high_water_mark_is_of_all_threads_together() {
    let sim = common::sim();
    let device = common::open(&sim);
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
    common::assert_clean(&sim);
}

/// All threads want the same size, one block at a time, and hand some on to be given back by
/// others. Memory is pinned only when every block is out, so there are never more than hands.
#[test]
fn a_crowd_pins_no_more_blocks_than_it_holds() {
    let sim = common::sim();
    let device = common::open(&sim);
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
    common::assert_clean(&sim);
}

#[test]
fn blocks_of_one_slab_do_not_overlap() {
    let sim = common::sim();
    let device = common::open(&sim);
    let pool = PinnedPool::new(&device);
    let bytes = 200 << 10;
    let blocks: Vec<_> = (0..25).map(|_| pool.take::<u8>(bytes).unwrap()).collect();
    let mut starts: Vec<_> = blocks.iter().map(|block| block.start().addr()).collect();
    starts.sort_unstable();
    assert!(starts.windows(2).all(|pair| pair[0] + bytes <= pair[1]));
    assert_eq!(starts.iter().collect::<HashSet<_>>().len(), 25);
    for block in &blocks {
        let address = block.start().addr() as u64;
        let allocation = sim.allocation(address).expect("the driver knows it");
        let end = address + bytes as u64;
        assert!(end <= allocation.base + allocation.bytes, "all inside");
    }
}
