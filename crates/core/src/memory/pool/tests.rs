//! Idle limits, with a fake clock, and blocks spread over several shards.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use pinlane_model::Profile;
use pinlane_sim::Sim;

use super::*;
use crate::Budget;

struct PoolRig {
    sim: Sim,
    device: Device,
    now_ns: Arc<AtomicU64>,
}

fn rig(set: impl FnOnce(PoolBuilder<'_>) -> PoolBuilder<'_>) -> (PoolRig, PinnedPool) {
    let sim = Sim::new(Profile::builtin("pcie3-x16").expect("built in"));
    let device = Device::with_budget(sim.driver(), &Budget::with_limit(1 << 30));
    let now_ns = Arc::new(AtomicU64::new(0));
    let time_ns = Arc::clone(&now_ns);
    let clock = Box::new(move || time_ns.load(Ordering::Relaxed));
    let pool = set(PinnedPool::builder(&device)).build_with(clock);
    let rig = PoolRig {
        sim,
        device,
        now_ns,
    };
    (rig, pool)
}

impl PoolRig {
    fn pass_ns(&self, ns: u64) {
        self.now_ns.fetch_add(ns, Ordering::Relaxed);
    }

    fn finish(self, pool: PinnedPool) {
        drop(pool);
        assert_eq!(self.device.budget().in_use_bytes(), 0);
        assert_eq!(self.device.stats(), crate::DeviceStats::default());
        assert_eq!(self.sim.finish(), []);
    }
}

fn take(pool: &PinnedPool, bytes: usize) -> PoolBuf<u8> {
    pool.take(bytes).unwrap()
}

/// Too large for a slab, and exactly a block size.
const LARGE: usize = 512 << 10;

#[test]
fn the_longest_idle_goes_first() {
    let (rig, pool) = rig(|builder| builder);
    let blocks: Vec<_> = (1..=3).map(|n| take(&pool, n * LARGE)).collect();
    let [first, second, third] = blocks.try_into().unwrap();
    for block in [second, first, third] {
        rig.pass_ns(10);
        drop(block);
    }
    assert_eq!(pool.stats().cached_bytes, 6 * LARGE as u64);
    pool.trim(5 * LARGE as u64);
    assert_eq!(
        pool.stats().cached_bytes,
        4 * LARGE as u64,
        "the second went"
    );
    pool.trim(4 * LARGE as u64);
    assert_eq!(pool.stats().cached_bytes, 4 * LARGE as u64, "nothing to do");
    pool.trim(3 * LARGE as u64);
    assert_eq!(
        pool.stats().pinned_bytes,
        3 * LARGE as u64,
        "then the first"
    );
    pool.trim(0);
    assert_eq!(pool.stats().pinned_bytes, 0);
    rig.finish(pool);
}

#[test]
fn no_more_stays_idle_than_may() {
    let (rig, pool) = rig(|builder| builder.idle_bytes_max(2 * LARGE as u64));
    let blocks: Vec<_> = (0..4).map(|_| take(&pool, LARGE)).collect();
    drop(blocks);
    let stats = pool.stats();
    assert_eq!(stats.cached_bytes, 2 * LARGE as u64);
    assert_eq!(stats.pinned_bytes, 2 * LARGE as u64);
    rig.finish(pool);
}

#[test]
fn what_was_idle_too_long_goes_with_the_next_take_or_give_back() {
    let (rig, pool) = rig(|builder| builder.idle_time_max(Duration::from_nanos(1000)));
    drop(take(&pool, LARGE));
    rig.pass_ns(1000);
    let other = take(&pool, 2 * LARGE);
    assert_eq!(pool.stats().cached_bytes, LARGE as u64, "not too long yet");
    rig.pass_ns(1001);
    drop(other);
    assert_eq!(
        pool.stats().cached_bytes,
        2 * LARGE as u64,
        "the first went"
    );
    rig.pass_ns(2000);
    let small = take(&pool, 4096);
    let stats = pool.stats();
    assert_eq!(
        stats.pinned_bytes,
        2 << 20,
        "the slab of the small one only"
    );
    drop(small);
    rig.finish(pool);
}

#[test]
fn a_slab_goes_when_all_its_blocks_are_idle() {
    let (rig, pool) = rig(|builder| builder);
    let (one, two) = (take(&pool, 4096), take(&pool, 4096));
    assert_eq!((pool.stats().misses, pool.stats().hits), (1, 1), "one slab");
    drop(one);
    pool.trim(0);
    assert_eq!(pool.stats().pinned_bytes, 2 << 20, "a block is out");
    drop(two);
    pool.trim(0);
    assert_eq!(
        pool.stats(),
        PoolStats {
            hits: 1,
            misses: 1,
            high_water_bytes: 8192,
            ..PoolStats::default()
        }
    );
    let again = take(&pool, 4096);
    assert_eq!(pool.stats().misses, 2);
    drop(again);
    rig.finish(pool);
}

/// Runs `work` on a new thread, which gets a different shard: threads are assigned round-robin.
fn elsewhere<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(work).join().expect("no panic"))
}

#[test]
fn a_slab_of_which_the_blocks_lie_at_several_desks_goes_as_one() {
    let (rig, pool) = rig(|builder| builder);
    let one = take(&pool, 4096);
    let two = take(&pool, 4096);
    let single = take(&pool, LARGE);
    rig.pass_ns(10);
    drop(one);
    rig.pass_ns(10);
    elsewhere(|| drop(single));
    rig.pass_ns(10);
    elsewhere(|| drop(two));
    pool.trim((2 << 20) + 1);
    let cached_bytes = pool.stats().cached_bytes;
    assert_eq!(cached_bytes, 2 << 20, "the single one was idle for longer");
    pool.trim(0);
    assert_eq!(pool.stats().pinned_bytes, 0);
    // The slab number is reused, and nothing of the old slab is left in any shard.
    let again = take(&pool, 4096);
    pool.trim(0);
    assert_eq!(pool.stats().pinned_bytes, 2 << 20, "in use");
    drop(again);
    pool.trim(0);
    assert_eq!(pool.stats().pinned_bytes, 0);
    rig.finish(pool);
}

#[test]
fn a_slab_is_idle_since_its_last_block_came_back_wherever_that_was() {
    let (rig, pool) = rig(|builder| builder);
    let moved = take(&pool, LARGE);
    let stays = take(&pool, 2 * LARGE);
    rig.pass_ns(10);
    drop(moved);
    rig.pass_ns(10);
    drop(stays);
    rig.pass_ns(10);
    elsewhere(|| drop(take(&pool, LARGE)));
    assert_eq!(pool.stats().misses, 2, "it was found");
    pool.trim(3 * LARGE as u64 - 1);
    assert_eq!(pool.stats().cached_bytes, LARGE as u64, "it was used last");
    rig.finish(pool);
}

#[test]
fn no_more_stays_idle_than_may_at_all_desks_together() {
    let (rig, pool) = rig(|builder| builder.idle_bytes_max(2 * LARGE as u64));
    let blocks: Vec<_> = (0..40).map(|_| take(&pool, LARGE)).collect();
    for block in blocks {
        rig.pass_ns(1);
        elsewhere(|| drop(block));
        assert!(pool.stats().cached_bytes <= 2 * LARGE as u64);
    }
    assert_eq!(pool.stats().pinned_bytes, 2 * LARGE as u64);
    rig.finish(pool);
}

#[test]
fn blocks_of_a_slab_in_use_push_out_what_is_idle() {
    let (rig, pool) = rig(|builder| builder.idle_bytes_max((2 << 20) + LARGE as u64));
    let (small, single) = (take(&pool, 4096), take(&pool, LARGE));
    drop(single);
    let others: Vec<_> = (0..4).map(|_| take(&pool, 256 << 10)).collect();
    assert_eq!(
        pool.stats().pinned_bytes,
        (4 << 20) + LARGE as u64,
        "two slabs and the single one, of which too much is idle"
    );
    let [first, rest @ ..] = <[_; 4]>::try_from(others).unwrap();
    drop(first);
    assert_eq!(pool.stats().pinned_bytes, 4 << 20, "the single one went");
    // Idle memory still exceeds the limit, but no whole slab is idle. Once one is, it is freed.
    for block in rest {
        assert_eq!(pool.stats().pinned_bytes, 4 << 20);
        drop(block);
    }
    assert_eq!(pool.stats().pinned_bytes, 2 << 20);
    // Below the limit again, a slab may stay idle until the limit is exceeded once more.
    let single = take(&pool, LARGE);
    drop(single);
    assert_eq!(pool.stats().pinned_bytes, (2 << 20) + LARGE as u64);
    let other = take(&pool, 128 << 10);
    let another = take(&pool, 128 << 10);
    drop(another);
    assert_eq!(pool.stats().pinned_bytes, 4 << 20, "the single one went");
    drop((small, other));
    rig.finish(pool);
}

#[test]
fn where_a_desk_is_busy_it_is_waited_for_before_anything_is_pinned() {
    let (rig, pool) = rig(|builder| builder);
    drop(take(&pool, LARGE));
    let busy = pool.store().shards.open_all();
    thread::scope(|scope| {
        let taking = scope.spawn(|| pool.take::<u8>(LARGE).map(drop));
        // Long enough for a call that wrongly does not wait.
        let start = Instant::now();
        while !taking.is_finished() && start.elapsed() < Duration::from_millis(50) {
            thread::yield_now();
        }
        drop(busy);
        taking.join().expect("no panic").unwrap();
    });
    assert_eq!((pool.stats().hits, pool.stats().misses), (1, 1));
    rig.finish(pool);
}
