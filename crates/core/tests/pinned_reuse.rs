//! Memory of dropped pinned buffers is used again, counts to the page, and never stands in the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pinlane::{Budget, Device, Error, PinnedBuf, PinnedPool};
use pinlane_core::internal::pinned_store;
use pinlane_driver::{Call, ErrorKind, Hook, Intercepted};
use pinlane_sim::Sim;

const PAGE: usize = 4096;
const MIB: usize = 1 << 20;

/// What a device keeps at most.
const IDLE_BYTES_MAX: u64 = 64 << 20;

/// Larger buffers are not kept.
const REUSED_BYTES_MAX: usize = 4 << 20;

fn with_limit(sim: &Sim, bytes: usize) -> (Device, Budget) {
    let budget = Budget::with_limit(bytes as u64);
    (Device::with_budget(sim.driver(), &budget), budget)
}

fn pinned(device: &Device, bytes: usize) -> PinnedBuf<u8> {
    device.pinned(bytes).unwrap()
}

fn is_over_budget<T>(result: pinlane::Result<T>) -> bool {
    matches!(result, Err(Error::OverBudget { .. }))
}

#[test]
fn a_dropped_buffer_serves_the_next_one_of_as_many_pages() {
    let sim = pinlane_testing::sim();
    let (device, budget) = with_limit(&sim, 64 * MIB);
    for (first, second) in [(1, PAGE), (PAGE, 100), (64 * 1024, 64 * 1024 - 4095)] {
        let buffer = pinned(&device, first);
        assert_eq!(buffer.as_ptr().addr() % PAGE, 0);
        let (start, in_use_bytes) = (buffer.as_ptr(), budget.in_use_bytes());
        drop(buffer);
        let before = sim.trace_hash();
        let again = pinned(&device, second);
        assert_eq!((again.as_ptr(), again.len()), (start, second));
        assert_eq!(sim.trace_hash(), before, "the driver was not called");
        assert_eq!(budget.in_use_bytes(), in_use_bytes);
        let words = device.pinned::<u32>(1).unwrap();
        assert_ne!(words.as_ptr().cast(), start, "in use");
        drop((again, words));
        device.trim();
    }
    let one_page = pinned(&device, PAGE);
    let start = one_page.as_ptr();
    drop(one_page);
    assert_ne!(pinned(&device, PAGE + 1).as_ptr(), start, "too small");
    drop(device);
    pinlane_testing::assert_clean(&sim);
}

/// Random sizes, allocated and dropped in random order. What is not idle is what the buffers need, to the
/// page, and a buffer that fits beside them is always had.
#[test]
fn live_buffers_count_to_the_page_whatever_was_there_before() {
    let sim = pinlane_testing::sim();
    let limit = 2 * MIB;
    let (device, budget) = with_limit(&sim, limit);
    let mut live: Vec<PinnedBuf<u8>> = Vec::new();
    let mut random = 1u64;
    let mut next = |below: usize| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) as usize % below
    };
    for _ in 0..2000 {
        let pages = |live: &[PinnedBuf<u8>]| -> usize {
            live.iter().map(|buffer| buffer.len().div_ceil(PAGE)).sum()
        };
        if next(3) == 0 && !live.is_empty() {
            live.swap_remove(next(live.len()));
        } else {
            let bytes = 1 + next(400_000) / (1 + next(100));
            let fits = pages(&live) * PAGE + bytes.next_multiple_of(PAGE) <= limit;
            match device.pinned::<u8>(bytes) {
                Ok(buffer) => live.push(buffer),
                Err(Error::OverBudget { .. }) => assert!(!fits, "{bytes} were refused"),
                Err(error) => panic!("{error}"),
            }
            assert!(pages(&live) * PAGE <= limit);
        }
        let used_bytes = budget.in_use_bytes() - budget.idle_bytes();
        assert_eq!(used_bytes, (pages(&live) * PAGE) as u64);
        assert!(budget.in_use_bytes() <= limit as u64);
        let stats = device.stats();
        assert_eq!(stats.pinned_bytes, budget.in_use_bytes());
        assert_eq!(stats.idle_pinned_bytes, budget.idle_bytes());
    }
    drop(live);
    device.trim();
    assert_eq!(budget.in_use_bytes(), 0);
    drop(device);
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn idle_memory_makes_room_for_every_kind() {
    let sim = pinlane_testing::sim();
    let (device, budget) = with_limit(&sim, MIB);
    let other = Device::with_budget(sim.driver(), &budget);
    let pool = PinnedPool::new(&other);
    let stream = other.stream().unwrap();
    let mut target = other.alloc::<u8>(100).unwrap();
    type Kind<'a> = (&'a str, Box<dyn FnMut() + 'a>);
    let kinds: [Kind<'_>; 9] = [
        ("another size", Box::new(|| drop(pinned(&device, MIB)))),
        ("another device", Box::new(|| drop(pinned(&other, 100)))),
        (
            "mapped",
            Box::new(|| drop(other.mapped::<u8>(MIB).unwrap())),
        ),
        (
            "write-combined",
            Box::new(|| drop(device.write_combined::<u8>(1).unwrap())),
        ),
        (
            "not portable",
            Box::new(|| drop(device.pinned_with::<u8>(1, false).unwrap())),
        ),
        (
            "registered",
            Box::new(|| {
                drop(
                    device
                        .register(vec![0u8; 2 * PAGE])
                        .map_err(|f| f.error)
                        .unwrap(),
                )
            }),
        ),
        (
            "of a pool",
            Box::new(|| {
                drop(pool.take::<u8>(MIB).unwrap());
                pool.trim(0);
            }),
        ),
        (
            "of the program",
            Box::new(|| drop(budget.reserve(MIB as u64).unwrap())),
        ),
        (
            "of the express lane",
            Box::new(|| {
                stream.copy_to_device(&[7; 100], &mut target).unwrap();
                other.trim();
            }),
        ),
    ];
    for (name, mut make) in kinds {
        drop([(); 16].map(|()| pinned(&device, 16 * PAGE)));
        assert_eq!(budget.idle_bytes(), MIB as u64, "all is idle before {name}");
        make();
        device.trim();
        other.trim();
        assert_eq!(budget.in_use_bytes(), 0, "{name}");
    }
    drop((pool, stream, target, device, other));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn no_more_is_freed_than_is_needed_and_nothing_in_vain() {
    let sim = pinlane_testing::sim();
    let (device, budget) = with_limit(&sim, MIB);
    drop([(); 16].map(|()| pinned(&device, 16 * PAGE)));
    let large = pinned(&device, 3 * 16 * PAGE);
    assert_eq!(budget.idle_bytes(), (13 * 16 * PAGE) as u64);
    assert!(is_over_budget(device.pinned::<u8>(14 * 16 * PAGE)));
    assert!(is_over_budget(device.pinned::<u8>(MIB + 1)));
    assert!(is_over_budget(budget.reserve(13 * 16 * 4096 + 1)));
    assert_eq!(budget.idle_bytes(), (13 * 16 * PAGE) as u64, "in vain");
    drop(large);
}

#[test]
fn the_smallest_limits_are_used_up() {
    let sim = pinlane_testing::sim();
    for pages in [1, 2, 16] {
        let (device, budget) = with_limit(&sim, pages * PAGE);
        for _ in 0..3 {
            let whole = pinned(&device, pages * PAGE);
            assert!(is_over_budget(device.pinned::<u8>(1)));
            drop(whole);
            let small: Vec<_> = (0..pages).map(|_| pinned(&device, 1)).collect();
            assert!(is_over_budget(device.pinned::<u8>(1)));
            assert_eq!(budget.in_use_bytes(), (pages * PAGE) as u64);
            drop(small);
        }
        assert!(is_over_budget(device.pinned::<u8>(pages * PAGE + 1)));
    }
    let (device, _) = with_limit(&sim, PAGE - 1);
    assert!(is_over_budget(device.pinned::<u8>(1)));
    assert!(device.pinned::<u8>(0).is_ok());
    drop(device);
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn a_wait_ends_when_a_buffer_is_dropped() {
    let sim = pinlane_testing::sim();
    let (_device, budget) = with_limit(&sim, MIB);
    let held = pinned(&_device, MIB);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| budget.reserve_within(1, Duration::from_secs(30)).map(drop));
        drop(held);
        waiting.join().unwrap().unwrap();
    });
}

#[test]
fn a_buffer_dropped_in_flight_is_used_again_after_its_copy() {
    let sim = pinlane_testing::sim();
    let (device, _) = with_limit(&sim, MIB);
    let stream = device.stream().unwrap();
    let mut on_device = device.alloc::<u8>(PAGE).unwrap();
    sim.hold();
    let buffer = device.pinned_from(&[3; PAGE]).unwrap();
    let start = buffer.as_ptr();
    drop(stream.upload(buffer, &mut on_device).unwrap());
    let mut other = pinned(&device, PAGE);
    assert_ne!(other.as_ptr(), start, "still in flight");
    other.fill(9);
    sim.release();
    stream.synchronize().unwrap();
    let again = pinned(&device, PAGE);
    assert_eq!(again.as_ptr(), start);
    assert_eq!(stream.copy_to_vec(&on_device).unwrap(), [3; PAGE]);
    drop((again, other, on_device, stream, device));
    pinlane_testing::assert_clean(&sim);
}

/// Nothing but the budget waits for the copy here: the buffer is still the transfer's.
#[test]
fn a_buffer_in_flight_makes_no_room() {
    let sim = pinlane_testing::sim();
    let (device, budget) = with_limit(&sim, MIB);
    let stream = device.stream().unwrap();
    let mut on_device = device.alloc::<u8>(MIB).unwrap();
    sim.hold();
    drop(stream.upload(pinned(&device, MIB), &mut on_device).unwrap());
    assert!(is_over_budget(device.pinned::<u8>(1)));
    assert_eq!(
        (budget.in_use_bytes(), budget.idle_bytes()),
        (MIB as u64, 0)
    );
    sim.release();
    stream.synchronize().unwrap();
    drop(pinned(&device, 1));
    drop((on_device, stream, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn so_much_stays_idle_and_no_more() {
    let sim = pinlane_testing::sim();
    let (device, budget) = with_limit(&sim, 1 << 30);
    drop(pinned(&device, REUSED_BYTES_MAX + 1));
    assert_eq!(budget.in_use_bytes(), 0, "too large to keep");
    let all = IDLE_BYTES_MAX as usize / REUSED_BYTES_MAX;
    let mut held: Vec<_> = (0..all)
        .map(|_| pinned(&device, REUSED_BYTES_MAX))
        .collect();
    held.push(pinned(&device, 1));
    drop(held.drain(1..all));
    held.swap_remove(0);
    assert_eq!(budget.idle_bytes(), IDLE_BYTES_MAX, "as much as may be");
    drop(held);
    let idle_bytes = budget.idle_bytes();
    assert!(idle_bytes < IDLE_BYTES_MAX, "{idle_bytes}");
    assert!(idle_bytes >= IDLE_BYTES_MAX / 2, "{idle_bytes}");
    assert_eq!(budget.in_use_bytes(), idle_bytes);
    let before = sim.trace_hash();
    drop(pinned(&device, 1));
    assert_eq!(sim.trace_hash(), before, "the last one is still there");
    assert_eq!(device.trim() as u64, idle_bytes);
    drop(device);
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn memory_that_only_one_device_may_use_is_not_reused() {
    let sim = pinlane_testing::sim();
    let (device, budget) = with_limit(&sim, MIB);
    drop(device.pinned_with::<u8>(1, false).unwrap());
    drop(device.mapped::<u8>(1).unwrap());
    drop(device.write_combined::<u8>(1).unwrap());
    assert_eq!(budget.in_use_bytes(), 0);
}

#[test]
fn buffers_that_outlive_the_device_are_freed_at_once() {
    let sim = pinlane_testing::sim();
    let (device, budget) = with_limit(&sim, MIB);
    let buffers = [1, PAGE, 2 * PAGE].map(|bytes| pinned(&device, bytes));
    let of_a_load = pinned_store(&device).take::<u8>(3 * PAGE).unwrap();
    drop(pinned(&device, 1));
    assert_eq!(budget.idle_bytes(), PAGE as u64);
    drop(device);
    assert_eq!(budget.in_use_bytes(), 7 * PAGE as u64, "nothing is idle");
    drop(of_a_load);
    for (buffer, left_pages) in buffers.into_iter().zip([3, 2, 0]) {
        drop(buffer);
        assert_eq!(budget.in_use_bytes(), left_pages * PAGE as u64);
    }
    pinlane_testing::assert_clean(&sim);
}

/// Answers in a forked child as libcuda does.
struct NotInChildren {
    parent: u32,
}

// SAFETY: its only error is not fatal.
unsafe impl Hook for NotInChildren {
    fn before(&self, call: Call) -> pinlane_driver::Result<()> {
        match call {
            Call::HostAlloc if std::process::id() != self.parent => {
                Err(pinlane_driver::Error::new(ErrorKind::Forked, "injected"))
            }
            _ => Ok(()),
        }
    }
}

/// What the driver page-locked in the parent need not be mapped in a child.
#[test]
fn a_forked_child_gets_no_memory_of_its_parent() {
    let sim = pinlane_testing::sim();
    let parent = std::process::id();
    let driver = Intercepted::new(sim.driver(), NotInChildren { parent });
    let device = Device::with_budget(Arc::new(driver), &Budget::with_limit(MIB as u64));
    drop(pinned(&device, PAGE));
    // SAFETY: the child makes one call, which takes no lock that another thread holds, and exits.
    let child = unsafe {
        let child = libc::fork();
        if child == 0 {
            let refused = device.pinned::<u8>(PAGE).is_err();
            libc::_exit(if refused { 7 } else { 1 });
        }
        child
    };
    let mut status = 0;
    // SAFETY: `status` outlives the call, and the child is ours.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(libc::WEXITSTATUS(status), 7);
    drop(pinned(&device, PAGE));
    drop(device);
    pinlane_testing::assert_clean(&sim);
}

/// A driver that is out of memory once.
struct OutOfMemoryOnce(AtomicBool);

// SAFETY: it returns no fatal error.
unsafe impl Hook for OutOfMemoryOnce {
    fn before(&self, call: Call) -> pinlane_driver::Result<()> {
        if call == Call::HostAlloc && self.0.swap(false, Ordering::Relaxed) {
            return Err(pinlane_driver::Error::new(ErrorKind::OutOfMemory, "test"));
        }
        Ok(())
    }
}

#[test]
fn idle_memory_makes_room_when_the_driver_is_out_of_memory() {
    let sim = pinlane_testing::sim();
    let hook = Arc::new(OutOfMemoryOnce(AtomicBool::new(false)));
    let driver = Intercepted::new(sim.driver(), Arc::clone(&hook));
    let budget = Budget::with_limit(MIB as u64);
    let device = Device::with_budget(Arc::new(driver), &budget);
    let refuse = || hook.0.store(true, Ordering::Relaxed);
    drop(pinned(&device, PAGE));
    refuse();
    let buffer = pinned(&device, 2 * PAGE);
    assert_eq!(budget.idle_bytes(), 0, "given up");
    refuse();
    let error = device.pinned::<u8>(3 * PAGE).unwrap_err();
    assert_eq!(
        error.kind(),
        pinlane::ErrorKind::OutOfMemory,
        "nothing is idle"
    );
    drop((buffer, device));
    pinlane_testing::assert_clean(&sim);
}
