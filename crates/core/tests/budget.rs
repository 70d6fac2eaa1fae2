//! Every kind of page-locked memory counts in the budget, as long as it is locked.

use pinlane::{Budget, Device, Error, Registered, ToPinned};
use pinlane_driver::{Call, ErrorKind, Hook, Intercepted, Result};
use pinlane_sim::Sim;

const PAGE_BYTES: u64 = 4096;

fn with_limit(sim: &Sim, bytes: u64) -> (Device, Budget) {
    let budget = Budget::with_limit(bytes);
    (Device::with_budget(sim.driver(), &budget), budget)
}

#[test]
fn every_kind_counts_with_its_whole_pages_until_it_is_gone() {
    let sim = pinlane_testing::sim();
    let (device, budget) = with_limit(&sim, 1 << 30);
    let counts = |made: &dyn Fn() -> Box<dyn std::any::Any>, pages: u64, what: &str| {
        let made = made();
        assert_eq!(budget.in_use_bytes(), pages * PAGE_BYTES, "{what}");
        drop(made);
        let idle_bytes = budget.idle_bytes();
        assert_eq!(budget.in_use_bytes(), idle_bytes, "{what}, gone");
        device.trim();
        assert_eq!(budget.in_use_bytes(), 0, "{what}, not even idle");
    };
    counts(&|| Box::new(device.pinned::<u8>(1).unwrap()), 1, "pinned");
    counts(
        &|| Box::new(device.pinned::<u8>(4097).unwrap()),
        2,
        "pinned",
    );
    counts(&|| Box::new(device.pinned::<u8>(0).unwrap()), 0, "nothing");
    let large = (2 << 20) + 1;
    counts(
        &|| Box::new(device.pinned::<u8>(large).unwrap()),
        513,
        "large",
    );
    counts(
        &|| Box::new(device.mapped::<u8>(large).unwrap()),
        513,
        "mapped",
    );
    let combined = || device.write_combined::<u8>(large).unwrap();
    counts(&|| Box::new(combined()), 513, "write-combined");
    counts(
        &|| Box::new([7u32; 10].to_pinned(&device).unwrap()),
        1,
        "copied",
    );
    drop(device);
    pinlane_testing::assert_clean(&sim);
}

/// Memory of this many bytes at this offset from a page's border.
struct Misplaced {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Misplaced {
    fn new(offset: usize, len: usize) -> Self {
        let memory = vec![0; len + 2 * PAGE_BYTES as usize];
        let start = memory.as_ptr().align_offset(PAGE_BYTES as usize) + offset;
        Self { memory, start, len }
    }
}

// SAFETY: a fixed range of a `Vec` that nobody resizes.
unsafe impl pinlane::StableMemory for Misplaced {
    type Element = u8;

    fn parts(&self) -> (*const u8, usize) {
        (self.memory[self.start..].as_ptr(), self.len)
    }
}

// SAFETY: as above, through `&mut`.
unsafe impl pinlane::StableMemoryMut for Misplaced {
    fn parts_mut(&mut self) -> (*mut u8, usize) {
        (self.memory[self.start..].as_mut_ptr(), self.len)
    }
}

#[test]
fn registered_memory_counts_with_all_pages_that_it_touches() {
    let sim = pinlane_testing::sim();
    let (device, budget) = with_limit(&sim, 1 << 30);
    for (offset, len, pages) in [(0, 4096, 1), (0, 4097, 2), (4095, 2, 2), (1, 4096, 2)] {
        let registered = device.pin(Misplaced::new(offset, len)).unwrap();
        let expected = pages * PAGE_BYTES;
        assert_eq!(budget.in_use_bytes(), expected, "{len} from {offset}");
        drop(registered);
        assert_eq!(budget.in_use_bytes(), 0);
        let registered = device.register_read_only(Misplaced::new(offset, len));
        assert_eq!(budget.in_use_bytes(), expected, "{len} from {offset}");
        drop(
            registered
                .unwrap()
                .into_inner()
                .map_err(|failed| failed.error),
        );
        assert_eq!(budget.in_use_bytes(), 0, "given back with the memory");
    }
    drop(device);
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn over_the_budget_memory_comes_back_and_the_driver_is_not_asked() {
    let sim = pinlane_testing::sim();
    let (device, budget) = with_limit(&sim, 2 * PAGE_BYTES);
    let before = sim.trace_hash();
    let failed = device.register(vec![5u8; 100_000]).map(drop).unwrap_err();
    assert!(matches!(failed.error, Error::OverBudget { .. }));
    assert_eq!(failed.memory.len(), 100_000);
    for len in [8193, 1 << 40, isize::MAX as usize] {
        let errors = [
            device.pinned::<u8>(len).map(drop).unwrap_err(),
            device.mapped::<u8>(len).map(drop).unwrap_err(),
            device.write_combined::<u8>(len).map(drop).unwrap_err(),
        ];
        for error in errors {
            let typed = matches!(error, Error::OverBudget { .. } | Error::TooLarge { .. });
            assert!(typed, "{len}: {error:?}");
        }
    }
    assert_eq!(sim.trace_hash(), before, "no call was made");
    assert_eq!(budget.in_use_bytes(), 0);
    assert!(device.pinned::<u8>(8192).is_ok());
}

#[test]
fn devices_share_a_budget_where_they_are_told_to() {
    let sim = pinlane_testing::sim();
    let budget = Budget::with_limit(2 * PAGE_BYTES);
    let one = Device::with_budget(sim.driver(), &budget);
    let two = Device::with_budget(sim.driver(), &budget);
    let held = one.pinned::<u8>(8192).unwrap();
    assert!(two.pinned::<u8>(1).is_err());
    drop(held);
    assert!(two.pinned::<u8>(1).is_ok());
    assert_eq!(two.budget().limit_bytes(), Ok(8192));
}

#[test]
fn a_limit_set_later_counts_from_then_on() {
    let sim = pinlane_testing::sim();
    let (device, budget) = with_limit(&sim, 1 << 20);
    let kept = device.pinned::<u8>(64 << 10).unwrap();
    drop(device.pinned::<u8>(128 << 10).unwrap()); // stays pinned, for the next one
    assert_eq!(budget.in_use_bytes(), 192 << 10);

    budget.set_limit(96 << 10);
    assert_eq!(budget.limit_bytes(), Ok(96 << 10));
    assert_eq!(budget.in_use_bytes(), 64 << 10, "idle memory made room");
    device.pinned::<u8>(33 << 10).unwrap_err();

    budget.set_limit(32 << 10); // less than is in use
    assert_eq!(budget.in_use_bytes(), 64 << 10);
    device.pinned::<u8>(1).unwrap_err();
    drop(kept);
    device.pinned::<u8>(32 << 10).unwrap();

    budget.set_limit(u64::MAX);
    device.pinned::<u8>(2 << 20).unwrap();
}

#[test]
fn a_limited_device_counts_against_its_own_budget_and_stands_alone() {
    let sim = pinlane_testing::sim();
    let (device, budget) = with_limit(&sim, 1 << 30);
    let small = Budget::with_limit(PAGE_BYTES);
    let limited = device.limited_to(&small);
    let held = limited.pinned::<u8>(1).unwrap();
    assert!(limited.pinned::<u8>(1).is_err());
    assert_eq!(small.in_use_bytes(), PAGE_BYTES);
    assert_eq!(budget.in_use_bytes(), 0);

    // The driver is the same, but streams, events and buffers do not mix.
    let (stream, event) = (limited.stream().unwrap(), device.event().unwrap());
    let mut target = device.alloc::<u8>(1).unwrap();
    assert_eq!(stream.record(&event), Err(Error::WrongDevice));
    assert_eq!(stream.wait(&event), Err(Error::WrongDevice));
    let refused = stream.upload(held, &mut target).unwrap_err();
    assert_eq!(Error::from(refused), Error::WrongDevice);

    drop(device); // the limited one stays open
    assert!(limited.pinned::<u8>(1).is_ok());
    drop((stream, event, target, limited));
    assert!(sim.finish().is_empty());
}

/// Refuses to give memory back.
struct Sticky;

// SAFETY: its only error is not fatal.
unsafe impl Hook for Sticky {
    fn before(&self, call: Call) -> Result<()> {
        match call {
            Call::HostFree | Call::HostUnregister => {
                let kind = ErrorKind::Other { code: 1 };
                Err(pinlane_driver::Error::new(kind, "injected"))
            }
            _ => Ok(()),
        }
    }
}

#[test]
fn what_the_driver_does_not_take_back_stays_counted() {
    let sim = pinlane_testing::sim();
    let budget = Budget::with_limit(1 << 30);
    let driver = std::sync::Arc::new(Intercepted::new(sim.driver(), Sticky));
    let device = Device::with_budget(driver, &budget);
    drop(device.pinned::<u8>(1).unwrap());
    device.trim();
    assert_eq!(
        (budget.in_use_bytes(), budget.idle_bytes()),
        (PAGE_BYTES, 0)
    );
    let registered: Registered<_> = device.register(Misplaced::new(0, 4096)).unwrap();
    let failed = registered.into_inner().map(drop).unwrap_err();
    assert_eq!(budget.in_use_bytes(), 2 * PAGE_BYTES, "registered still");
    drop(failed);
    assert_eq!(budget.in_use_bytes(), 2 * PAGE_BYTES);
}
