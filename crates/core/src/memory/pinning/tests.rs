//! Every way to allocate, with each step failing once.

use std::collections::HashMap;
use std::ptr::NonNull;
use std::result::Result;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, ThreadId};

use pinlane_driver::{Call, Driver, Intercepted, PointerKind};
use pinlane_model::Profile;
use pinlane_sim::{FaultKind, Faults, Sim};

use super::fault_in::{PIECE_BYTES, SLOW_PIECE_NS, SLOW_PIECES_MAX};
use super::page_syscalls::Errno;
use super::*;
use crate::memory::Budget;
use crate::{Device, helper_threads};

/// Pages that fail or are slow on demand. Memory is really mapped; time is fake.
#[derive(Default)]
struct FakePages {
    map_fails: bool,
    no_huge: bool,
    advise_fails: bool,
    /// Error that `populate` returns instead of running.
    populate_fails: Option<i32>,
    /// Number of leading huge pieces that are slow; all others take no time.
    slow_huge_pieces: u64,
    mapped_bytes: AtomicUsize,
    populated_bytes: AtomicUsize,
    touched_bytes: AtomicUsize,
    advised_huge: AtomicBool,
    /// Start offsets of the pieces for which huge pages were turned off.
    small_pieces: Mutex<Vec<usize>>,
    huge_pieces: AtomicU64,
    /// One clock per thread, so that a slow thread does not slow the others.
    clocks: Mutex<HashMap<ThreadId, u64>>,
}

/// Pages that work, except for what `set` changes.
fn fake(set: impl FnOnce(&mut FakePages)) -> &'static FakePages {
    let pages = Box::leak(Box::default());
    set(pages);
    pages
}

fn count(counter: &AtomicUsize) -> usize {
    counter.load(Ordering::Relaxed)
}

impl FakePages {
    fn fault_in(&self, start: NonNull<u8>, bytes: usize, counter: &AtomicUsize) {
        counter.fetch_add(bytes, Ordering::Relaxed);
        let small = self.small_pieces.lock().unwrap();
        let huge =
            self.advised_huge.load(Ordering::Relaxed) && !small.contains(&start.addr().get());
        if huge && self.huge_pieces.fetch_add(1, Ordering::Relaxed) < self.slow_huge_pieces {
            let mut clocks = self.clocks.lock().unwrap();
            *clocks.entry(thread::current().id()).or_default() += SLOW_PIECE_NS + 1;
        }
    }
}

impl Pages for FakePages {
    fn work(&self) -> bool {
        true
    }

    fn map(&self, bytes: usize) -> Result<NonNull<u8>, Errno> {
        if self.map_fails {
            return Err(Errno(libc::ENOMEM));
        }
        self.mapped_bytes.fetch_add(bytes, Ordering::Relaxed);
        System.map(bytes)
    }

    unsafe fn unmap(&self, start: NonNull<u8>, bytes: usize) {
        self.mapped_bytes.fetch_sub(bytes, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract.
        unsafe { System.unmap(start, bytes) };
    }

    fn have_huge(&self) -> bool {
        !self.no_huge
    }

    unsafe fn advise_huge(&self, start: NonNull<u8>, _: usize, yes: bool) -> Result<(), Errno> {
        if self.advise_fails {
            return Err(Errno(libc::EINVAL));
        }
        if yes {
            self.advised_huge.store(true, Ordering::Relaxed);
        } else {
            self.small_pieces.lock().unwrap().push(start.addr().get());
        }
        Ok(())
    }

    unsafe fn prefer_node(&self, _: NonNull<u8>, _: usize, _: u32) -> Result<(), Errno> {
        Err(Errno(libc::EPERM))
    }

    unsafe fn populate(&self, start: NonNull<u8>, bytes: usize) -> Result<(), Errno> {
        if let Some(code) = self.populate_fails {
            return Err(Errno(code));
        }
        self.fault_in(start, bytes, &self.populated_bytes);
        Ok(())
    }

    unsafe fn touch(&self, start: NonNull<u8>, bytes: usize) {
        self.fault_in(start, bytes, &self.touched_bytes);
    }

    fn now_ns(&self) -> u64 {
        let clocks = self.clocks.lock().unwrap();
        clocks.get(&thread::current().id()).copied().unwrap_or(0)
    }
}

/// Always fails these calls, and records all calls.
#[derive(Clone, Default)]
struct Failing {
    fails: Vec<(Call, ErrorKind)>,
    seen: Arc<Mutex<Vec<Call>>>,
}

// SAFETY: no test gives it a fatal error.
unsafe impl pinlane_driver::Hook for Failing {
    fn before(&self, call: Call) -> pinlane_driver::Result<()> {
        self.seen.lock().unwrap().push(call);
        match self.fails.iter().find(|(failing, _)| *failing == call) {
            Some((_, kind)) => Err(pinlane_driver::Error::new(kind.clone(), "injected")),
            None => Ok(()),
        }
    }
}

struct PinningRig {
    sim: Sim,
    device: Device,
    failing: Failing,
}

fn profile() -> Profile {
    Profile::builtin("pcie3-x16").expect("built in")
}

fn rig(fails: &[(Call, ErrorKind)]) -> PinningRig {
    let sim = Sim::new(profile());
    let failing = Failing {
        fails: fails.to_vec(),
        seen: Arc::default(),
    };
    let driver: Arc<dyn Driver> = Arc::new(Intercepted::new(sim.driver(), failing.clone()));
    PinningRig {
        device: Device::with_budget(driver, &Budget::with_limit(1 << 30)),
        sim,
        failing,
    }
}

impl PinningRig {
    fn pin(&self, bytes: usize, pages: &'static dyn Pages) -> crate::Result<Block> {
        Block::pin_with(&self.device.shared.core, bytes, HostFlags::default(), pages)
    }

    fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.failing.seen.lock().unwrap())
    }

    fn in_use_bytes(&self) -> u64 {
        self.device.budget().in_use_bytes()
    }

    /// Pins and drops memory, which takes these driver calls and leaves nothing mapped.
    #[track_caller]
    fn pin_and_drop(&self, bytes: usize, pages: &'static FakePages, calls: &[Call]) {
        drop(self.pin(bytes, pages).unwrap());
        assert_eq!(self.calls(), calls);
        assert_eq!(count(&pages.mapped_bytes), 0);
    }

    #[track_caller]
    fn assert_nothing_is_left(&self) {
        assert_eq!(self.in_use_bytes(), 0);
        assert_eq!(self.device.stats(), crate::DeviceStats::default());
        assert_eq!(self.sim.finish(), []);
    }
}

/// Pins and drops memory on a device without faults.
#[track_caller]
fn pin_and_drop(bytes: usize, pages: &'static FakePages, calls: &[Call]) {
    let rig = rig(&[]);
    rig.pin_and_drop(bytes, pages, calls);
    rig.assert_nothing_is_left();
}

/// Sixteen pieces.
const LARGE_BYTES: usize = 16 * PIECE_BYTES;

/// The calls of memory that the driver allocates, and of memory that is registered.
const ALLOCATED: [Call; 2] = [Call::HostAlloc, Call::HostFree];
const REGISTERED: [Call; 2] = [Call::HostRegister, Call::HostUnregister];

#[test]
fn what_is_mapped_and_registered() {
    let mut info = DeviceInfo::new(0, "any");
    info.can_register = true;
    let plain = HostFlags::default();
    let (mut mapped, mut combined) = (plain, plain);
    (mapped.mapped, combined.write_combined) = (true, true);
    assert!(may_be_fast(FAST_FROM_BYTES, plain, &info, false));
    assert!(may_be_fast(FAST_FROM_BYTES, mapped, &info, false));
    assert!(!may_be_fast(FAST_FROM_BYTES - 1, plain, &info, false));
    assert!(!may_be_fast(FAST_FROM_BYTES, combined, &info, false));
    assert!(!may_be_fast(FAST_FROM_BYTES, plain, &info, true));
    info.can_register = false;
    assert!(!may_be_fast(FAST_FROM_BYTES, plain, &info, false));
}

#[test]
#[cfg_attr(miri, ignore = "miri maps no memory")]
fn large_memory_is_mapped_and_registered_and_goes_the_same_way() {
    let rig = rig(&[]);
    let bytes = FAST_FROM_BYTES + 5000;
    let block = rig.pin(bytes, &System).unwrap();
    assert_eq!(rig.calls(), [Call::HostRegister]);
    assert_eq!(block.locked_bytes(), (FAST_FROM_BYTES + 8192) as u64);
    assert_eq!(rig.in_use_bytes(), block.locked_bytes());
    assert_eq!(rig.device.stats().pinned_bytes, bytes as u64);
    // SAFETY: the block holds that many bytes, and fresh memory is initialised.
    let contents = unsafe { std::slice::from_raw_parts(block.start().as_ptr(), bytes) };
    assert!(contents.iter().all(|&byte| byte == 0));
    let kind = rig.device.pointer_kind(contents).unwrap();
    assert_eq!(kind, PointerKind::Registered);
    rig.calls();
    drop(block);
    assert_eq!(rig.calls(), [Call::HostUnregister]);
    rig.assert_nothing_is_left();
}

#[test]
#[cfg_attr(miri, ignore = "miri maps no memory")]
fn the_mapping_goes_with_the_block() {
    let (rig, pages) = (rig(&[]), fake(|_| {}));
    let block = rig.pin(LARGE_BYTES, pages).unwrap();
    assert_eq!(count(&pages.mapped_bytes), LARGE_BYTES);
    assert_eq!(count(&pages.populated_bytes), LARGE_BYTES);
    assert_eq!(count(&pages.touched_bytes), 0);
    assert!(pages.advised_huge.load(Ordering::Relaxed));
    assert_eq!(pages.small_pieces.lock().unwrap().len(), 0);
    drop(block);
    assert_eq!(count(&pages.mapped_bytes), 0);
    rig.assert_nothing_is_left();
}

#[test]
fn small_memory_is_the_drivers() {
    pin_and_drop(FAST_FROM_BYTES - 1, fake(|_| {}), &ALLOCATED);
}

/// The calls when registering fails.
const FALLEN_BACK: [Call; 3] = [Call::HostRegister, Call::HostAlloc, Call::HostFree];

#[test]
#[cfg_attr(miri, ignore = "miri maps no memory")]
fn refused_registration_falls_back_and_is_not_tried_again() {
    for kind in [ErrorKind::RegistrationRefused, ErrorKind::NotSupported] {
        let (rig, pages) = (rig(&[(Call::HostRegister, kind.clone())]), fake(|_| {}));
        rig.pin_and_drop(LARGE_BYTES, pages, &FALLEN_BACK);
        let stray = rig.device.take_stray_errors();
        assert!(
            matches!(&stray[..], [Error::Driver(error)] if error.kind == kind),
            "{stray:?}"
        );
        rig.pin_and_drop(LARGE_BYTES, pages, &ALLOCATED);
        rig.assert_nothing_is_left();
    }
}

#[test]
#[cfg_attr(miri, ignore = "miri maps no memory")]
fn registration_that_fails_for_the_moment_is_tried_again() {
    let rig = rig(&[(Call::HostRegister, ErrorKind::OutOfMemory)]);
    for _ in 0..2 {
        rig.pin_and_drop(LARGE_BYTES, fake(|_| {}), &FALLEN_BACK);
    }
    assert_eq!(rig.device.take_stray_errors().len(), 2);
    rig.assert_nothing_is_left();
}

#[test]
#[cfg_attr(miri, ignore = "miri maps no memory")]
fn when_both_ways_fail_the_error_is_the_drivers_and_nothing_is_left() {
    let rig = rig(&[
        (Call::HostRegister, ErrorKind::RegistrationRefused),
        (Call::HostAlloc, ErrorKind::OutOfMemory),
    ]);
    let pages = fake(|_| {});
    let error = rig.pin(LARGE_BYTES, pages).map(drop).unwrap_err();
    assert!(matches!(&error, Error::Driver(error) if error.kind == ErrorKind::OutOfMemory));
    assert_eq!(count(&pages.mapped_bytes), 0);
    rig.assert_nothing_is_left();
}

#[test]
#[cfg_attr(miri, ignore = "miri maps no memory")]
fn a_lost_device_is_not_asked_again() {
    let faults = Faults::none().with(FaultKind::LostDevice, 1000);
    let sim = Sim::builder().profile(profile()).seed(1).faults(faults);
    let sim = sim.build();
    let device = Device::with_budget(sim.driver(), &Budget::with_limit(1 << 30));
    let pages = fake(|_| {});
    let core = &device.shared.core;
    let pinned = Block::pin_with(core, LARGE_BYTES, HostFlags::default(), pages);
    let error = pinned.map(drop).unwrap_err();
    assert!(
        matches!(&error, Error::Driver(error) if error.is_fatal() && error.call.contains("egister")),
        "{error:?}"
    );
    assert_eq!(count(&pages.mapped_bytes), 0);
    assert_eq!(device.budget().in_use_bytes(), 0);
}

#[test]
#[cfg_attr(miri, ignore = "miri maps no memory")]
fn memory_that_the_system_does_not_give_is_left_to_the_driver() {
    let no_map = fake(|pages| pages.map_fails = true);
    let no_pages = fake(|pages| pages.populate_fails = Some(libc::ENOMEM));
    for pages in [no_map, no_pages] {
        pin_and_drop(LARGE_BYTES, pages, &ALLOCATED);
    }
}

#[test]
#[cfg_attr(miri, ignore = "miri maps no memory")]
fn without_huge_pages_small_ones_do() {
    let off = fake(|pages| pages.no_huge = true);
    let refused = fake(|pages| pages.advise_fails = true);
    for pages in [off, refused] {
        pin_and_drop(LARGE_BYTES, pages, &REGISTERED);
        assert!(!pages.advised_huge.load(Ordering::Relaxed));
        assert_eq!(count(&pages.populated_bytes), LARGE_BYTES);
    }
}

#[test]
#[cfg_attr(miri, ignore = "miri maps no memory")]
fn huge_pages_that_crawl_are_given_up_for_the_rest() {
    let pages = fake(|pages| pages.slow_huge_pieces = u64::MAX);
    let bytes = LARGE_BYTES * 4;
    pin_and_drop(bytes, pages, &REGISTERED);
    let huge = pages.huge_pieces.load(Ordering::Relaxed);
    let small = pages.small_pieces.lock().unwrap().len() as u64;
    assert_eq!(huge + small, (bytes / PIECE_BYTES) as u64);
    // Each thread may be in the middle of a piece when the last slow one is counted.
    let threads = helper_threads::helpers_at_most() as u64 + 1;
    let at_least = u64::from(SLOW_PIECES_MAX);
    assert!((at_least..at_least + threads).contains(&huge), "{huge}");
    assert_eq!(count(&pages.populated_bytes), bytes);
}

#[test]
#[cfg_attr(miri, ignore = "miri maps no memory")]
fn one_slow_piece_is_forgiven() {
    let pages = fake(|pages| pages.slow_huge_pieces = u64::from(SLOW_PIECES_MAX) - 1);
    pin_and_drop(LARGE_BYTES, pages, &REGISTERED);
    assert_eq!(pages.small_pieces.lock().unwrap().len(), 0);
}

#[test]
#[cfg_attr(miri, ignore = "miri maps no memory")]
fn a_kernel_that_cannot_populate_is_helped_by_touching() {
    let pages = fake(|pages| pages.populate_fails = Some(libc::EINVAL));
    pin_and_drop(LARGE_BYTES + 1, pages, &REGISTERED);
    let touched = count(&pages.touched_bytes);
    assert_eq!(touched, LARGE_BYTES + page_bytes());
}

#[test]
#[cfg_attr(miri, ignore = "miri maps no memory")]
fn touching_faults_every_page_in() {
    let bytes = 3 * page_bytes();
    let mapping = Mapping::new(&System, bytes).unwrap();
    let resident = || {
        let mut pages = [0u8; 3];
        let start = mapping.start.as_ptr().cast();
        // SAFETY: one byte for each page of the mapping.
        let code = unsafe { libc::mincore(start, bytes, pages.as_mut_ptr()) };
        assert_eq!(code, 0);
        pages.iter().filter(|&&page| page & 1 == 1).count()
    };
    assert_eq!(resident(), 0);
    // SAFETY: the whole mapping, which nothing else uses.
    unsafe { System.touch(mapping.start, bytes) };
    assert_eq!(resident(), 3);
}

#[test]
#[cfg_attr(miri, ignore = "miri maps no memory")]
fn memory_that_cannot_be_unregistered_stays_mapped_and_counted() {
    let rig = rig(&[(Call::HostUnregister, ErrorKind::InvalidValue)]);
    let pages = fake(|_| {});
    drop(rig.pin(LARGE_BYTES, pages).unwrap());
    let [register, unregister] = REGISTERED;
    assert_eq!(rig.calls(), [register, unregister, unregister], "twice");
    assert_eq!(count(&pages.mapped_bytes), LARGE_BYTES);
    assert_eq!(rig.in_use_bytes(), LARGE_BYTES as u64);
    assert_eq!(rig.device.stats().pinned_bytes, LARGE_BYTES as u64);
    assert_eq!(rig.device.take_stray_errors().len(), 2);
}

#[test]
fn over_the_budget_nobody_is_asked() {
    let rig = rig(&[]);
    let pages = fake(|_| {});
    for bytes in [(1 << 30) + 1, 1 << 40, isize::MAX as usize - 4095] {
        let error = rig.pin(bytes, pages).map(drop).unwrap_err();
        assert!(matches!(error, Error::OverBudget { .. }), "{error:?}");
    }
    let error = rig.pin(usize::MAX, pages).map(drop).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error:?}");
    assert_eq!(rig.calls(), []);
    assert_eq!(count(&pages.populated_bytes), 0);
    rig.assert_nothing_is_left();
}

#[test]
#[cfg_attr(miri, ignore = "miri maps no memory")]
fn mappings_begin_at_a_huge_page_and_take_a_node() {
    let bytes = 3 * page_bytes();
    let mapping = Mapping::new(&System, bytes).unwrap();
    assert_eq!(mapping.start.addr().get() % HUGE_PAGE_BYTES, 0);
    // SAFETY: the mapping's own range.
    let far = unsafe { System.prefer_node(mapping.start, bytes, 1 << 20) };
    assert_eq!(far, Err(Errno(libc::EINVAL)));
    // SAFETY: as above.
    let near = unsafe { System.prefer_node(mapping.start, bytes, 0) };
    // Containers may forbid it, and kernels may be built without it.
    let refusals = [libc::EPERM, libc::ENOSYS].map(|code| Err(Errno(code)));
    assert!(near.is_ok() || refusals.contains(&near), "{near:?}");
}
