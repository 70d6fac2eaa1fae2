//! Device memory of dropped buffers, kept for the next ones.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use pinlane::{Device, Error};
use pinlane_driver::{Call, ErrorKind, Hook, Intercepted, Result};
use pinlane_sim::Sim;

const KIB: usize = 1 << 10;

fn with_memory(memory_bytes: usize) -> (Sim, Device) {
    let mut profile = pinlane_testing::profile();
    profile.device.memory_bytes = memory_bytes as u64;
    let sim = Sim::new(profile);
    let device = pinlane_testing::open(&sim);
    (sim, device)
}

/// Bytes on the device, and those of them that are kept.
fn held(device: &Device) -> (usize, usize) {
    let stats = device.stats();
    (stats.device_bytes as usize, stats.kept_bytes as usize)
}

#[test]
fn at_first_all_of_it_goes_back() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    drop(device.alloc::<u8>(KIB).unwrap());
    assert_eq!(held(&device), (0, 0));
    drop(device);
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn the_next_buffer_of_the_size_has_it() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    device.keep_device_memory(u64::MAX);
    let first = device.alloc::<u32>(KIB).unwrap();
    let (ptr, other) = (first.device_ptr(), device.alloc::<u32>(KIB).unwrap());
    drop(first);
    assert_eq!(held(&device), (8 * KIB, 4 * KIB));
    let larger = device.alloc::<u8>(4 * KIB + 1).unwrap();
    assert_ne!(larger.device_ptr(), ptr, "there is no room for it");
    // Of another type, and a little less.
    let next = device.alloc::<u8>(4 * KIB - 100).unwrap();
    assert_eq!((next.device_ptr(), next.len()), (ptr, 4 * KIB - 100));
    assert_eq!(held(&device).1, 0);
    drop((next, other, larger));
    assert_eq!(held(&device), (12 * KIB + 1, 12 * KIB + 1));
    assert_eq!(device.trim(), 12 * KIB + 1);
    assert_eq!(held(&device), (0, 0));
    // Still allowed.
    drop(device.alloc::<u8>(KIB).unwrap());
    assert_eq!(held(&device), (KIB, KIB));
    drop(device); // frees what it kept
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn nobody_gets_memory_that_is_still_in_use() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    device.keep_device_memory(u64::MAX);
    let stream = device.stream().unwrap();
    let source = device.pinned_from(&[7u8; KIB]).unwrap();
    let mut first = device.alloc::<u8>(KIB).unwrap();
    let ptr = first.device_ptr();
    sim.hold();
    let there = stream.upload(source, &mut first).unwrap();
    drop(first);
    assert_eq!(held(&device), (KIB, 0), "in flight");
    let second = device.alloc::<u8>(KIB).unwrap();
    assert_ne!(second.device_ptr(), ptr);
    sim.release();
    drop(there.wait().unwrap());
    device.synchronize().unwrap();
    assert_eq!(held(&device), (2 * KIB, KIB));
    assert_eq!(device.alloc::<u8>(KIB).unwrap().device_ptr(), ptr);
    drop((stream, second, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn it_goes_back_when_there_is_no_memory_left() {
    let (sim, device) = with_memory(10 * KIB);
    device.keep_device_memory(u64::MAX);
    drop(device.alloc::<u8>(6 * KIB).unwrap());
    assert_eq!(held(&device), (6 * KIB, 6 * KIB));
    let large = device.alloc::<u8>(8 * KIB).unwrap();
    assert_eq!(held(&device), (8 * KIB, 0));
    let full = device.alloc::<u8>(8 * KIB).expect_err("nothing is kept");
    let is_full =
        |error: &Error| matches!(error, Error::Driver(it) if it.kind == ErrorKind::OutOfMemory);
    assert!(is_full(&full), "{full}");
    drop(large);
    // In stream order, too.
    let stream = device.stream().unwrap();
    let ordered = stream.alloc::<u8>(9 * KIB).unwrap();
    assert_eq!(held(&device), (9 * KIB, 0));
    drop((ordered, stream, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn no_more_is_kept_than_was_allowed() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    device.keep_device_memory(5 * KIB as u64);
    let buffers = [4, 2, 3, 6].map(|kib| device.alloc::<u8>(kib * KIB).unwrap());
    let [four, two, three, six] = buffers;
    drop(four);
    assert_eq!(held(&device).1, 4 * KIB);
    drop(two); // the older one makes room
    assert_eq!(held(&device), (11 * KIB, 2 * KIB));
    drop(three);
    assert_eq!(held(&device), (11 * KIB, 5 * KIB));
    drop(six); // would never fit
    assert_eq!(held(&device), (5 * KIB, 5 * KIB));
    device.keep_device_memory(3 * KIB as u64);
    assert_eq!(held(&device), (3 * KIB, 3 * KIB));
    device.keep_device_memory(0);
    assert_eq!(held(&device), (0, 0));
    drop(device);
    pinlane_testing::assert_clean(&sim);
}

/// One that finds nothing kept, since the other one has just taken it, tries again as well.
#[test]
fn several_threads_that_need_it_all_get_it() {
    let rounds = if cfg!(miri) { 3 } else { 500 };
    for _ in 0..rounds {
        let (sim, device) = with_memory(10 * KIB);
        device.keep_device_memory(u64::MAX);
        drop(device.alloc::<u8>(8 * KIB).unwrap());
        thread::scope(|scope| {
            let threads = [(); 2].map(|()| scope.spawn(|| device.alloc::<u8>(4 * KIB)));
            let _both = threads.map(|thread| thread.join().unwrap().expect("there is room"));
        });
        drop(device);
        pinlane_testing::assert_clean(&sim);
    }
}

/// Panics at the next such call, once armed.
struct Panics {
    call: Call,
    armed: Arc<AtomicBool>,
}

// SAFETY: it gives no errors.
unsafe impl Hook for Panics {
    fn before(&self, call: Call) -> Result<()> {
        if call == self.call && self.armed.swap(false, Ordering::Relaxed) {
            panic!("the driver's");
        }
        Ok(())
    }
}

/// A device that keeps memory, and what arms its driver.
fn panicking_at(call: Call, sim: &Sim) -> (Device, Arc<AtomicBool>) {
    let armed = Arc::new(AtomicBool::new(false));
    let hook = Panics {
        call,
        armed: Arc::clone(&armed),
    };
    let device = Device::from_driver(Arc::new(Intercepted::new(sim.driver(), hook)));
    device.keep_device_memory(u64::MAX);
    (device, armed)
}

#[test]
fn a_panic_of_the_driver_costs_one_block_and_no_other() {
    let sim = pinlane_testing::sim();
    let (device, armed) = panicking_at(Call::DeviceFree, &sim);
    let buffers: Vec<_> = (1..=5).map(|kib| device.alloc::<u8>(kib * KIB)).collect();
    drop(buffers);
    assert_eq!(held(&device), (15 * KIB, 15 * KIB));
    armed.store(true, Ordering::Relaxed);
    let trimmed = catch_unwind(AssertUnwindSafe(|| device.trim()));
    assert!(trimmed.is_err(), "the panic goes on");
    assert_eq!(held(&device), (KIB, 0), "the oldest one is lost");
    drop(device);
    assert_eq!(sim.finish().len(), 1);
}

/// Neither what was kept nor what is still in flight, whatever panics.
#[test]
fn a_panic_at_the_end_leaks_nothing_but_what_panicked() {
    for call in [Call::DeviceFree, Call::HostFree] {
        let sim = pinlane_testing::sim();
        let (device, armed) = panicking_at(call, &sim);
        drop([1, 2, 3].map(|kib| device.alloc::<u8>(kib * KIB).unwrap()));
        let stream = device.stream().unwrap();
        let source = device.pinned_from(&[7u8; 5 * KIB]).unwrap();
        let mut target = device.alloc::<u8>(5 * KIB).unwrap();
        sim.hold();
        drop(stream.upload(source, &mut target).unwrap());
        drop((target, stream));
        assert_eq!(device.stats().parked, 2, "the source and the target");
        sim.release();
        armed.store(true, Ordering::Relaxed);
        assert!(catch_unwind(AssertUnwindSafe(|| drop(device))).is_err());
        let left = sim.finish();
        assert_eq!(left.len(), 1, "{call:?}: {left:#?}");
    }
}

/// Whoever measures puts the limit back as it was; allocations are measured as they come.
#[test]
#[cfg_attr(miri, ignore = "takes miri minutes")]
fn a_calibration_measures_the_driver_and_not_what_is_kept() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    device.keep_device_memory(1 << 30);
    let profile = pinlane::calibrate::calibrate(&device, &|| sim.now_ns()).unwrap();
    let must_ns = pinlane_testing::profile().calls.device_alloc_ns;
    assert_eq!(profile.calls.device_alloc_ns, must_ns);
    assert_eq!(held(&device).1, 0);
    assert_eq!(device.keep_device_memory(0), 1 << 30);
    drop(device);
    pinlane_testing::assert_clean(&sim);
}
