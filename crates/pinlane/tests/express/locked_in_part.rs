//! Memory that is page-locked in part, by whomever: the driver does not take it, the lanes do.

use pinlane_driver::{HostPtr, RegisterFlags};

use super::common;
use super::support::{CHUNK_BYTES, assert_same, pattern, small};

const PAGE: usize = 4096;

/// Ranges of a slice that are registered, of a small and of a large one.
fn cases() -> Vec<(usize, Vec<std::ops::Range<usize>>)> {
    let large = 5 * CHUNK_BYTES;
    vec![
        (3 * PAGE, vec![0..PAGE]),
        (3 * PAGE, vec![PAGE..2 * PAGE]),
        (3 * PAGE, vec![0..PAGE, 2 * PAGE..3 * PAGE]),
        (large, vec![0..PAGE]),
        (large, vec![0..PAGE, large - PAGE..large]),
    ]
}

#[test]
fn it_is_copied_all_the_same() {
    let (sim, device, stream) = small(2, 2);
    let driver = sim.driver();
    for (bytes, locked) in cases() {
        let mut source = pattern(bytes, bytes as u64);
        let must = source.clone();
        let mut back = vec![0u8; bytes];
        let mut bases = Vec::new();
        for memory in [&mut source, &mut back] {
            for range in &locked {
                let start = HostPtr::from(&mut memory[range.start]);
                // SAFETY: part of a vector that lives until it is unregistered.
                unsafe { driver.host_register(start, range.len(), RegisterFlags::default()) }
                    .unwrap();
                bases.push(start);
            }
        }
        let mut target = device.alloc::<u8>(bytes).unwrap();
        stream.copy_to_device(&source, &mut target).unwrap();
        stream.copy_to_host(&target, &mut back).unwrap();
        assert_same(
            &back,
            &must,
            &format!("{bytes} bytes, locked at {locked:?}"),
        );
        stream.synchronize().unwrap();
        for base in bases {
            // SAFETY: no work uses it any more.
            unsafe { driver.host_unregister(base) }.unwrap();
        }
    }
    drop((stream, device));
    common::assert_clean(&sim);
}
