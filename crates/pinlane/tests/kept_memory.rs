//! Device memory of dropped buffers, kept for the next ones.

mod common;

use pinlane::{Device, Error};
use pinlane_driver::ErrorKind;
use pinlane_sim::Sim;

const KIB: usize = 1 << 10;

fn with_memory(memory_bytes: usize) -> (Sim, Device) {
    let mut profile = common::profile();
    profile.device.memory_bytes = memory_bytes as u64;
    let sim = Sim::new(profile);
    let device = common::open(&sim);
    (sim, device)
}

/// Bytes on the device, and those of them that are kept.
fn held(device: &Device) -> (usize, usize) {
    let stats = device.stats();
    (stats.device_bytes as usize, stats.kept_bytes as usize)
}

#[test]
fn at_first_all_of_it_goes_back() {
    let sim = common::sim();
    let device = common::open(&sim);
    drop(device.alloc::<u8>(KIB).unwrap());
    assert_eq!(held(&device), (0, 0));
    drop(device);
    common::assert_clean(&sim);
}

#[test]
fn the_next_buffer_of_the_size_has_it() {
    let sim = common::sim();
    let device = common::open(&sim);
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
    common::assert_clean(&sim);
}

#[test]
fn nobody_gets_memory_that_is_still_in_use() {
    let sim = common::sim();
    let device = common::open(&sim);
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
    common::assert_clean(&sim);
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
    common::assert_clean(&sim);
}

#[test]
fn no_more_is_kept_than_was_allowed() {
    let sim = common::sim();
    let device = common::open(&sim);
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
    common::assert_clean(&sim);
}
