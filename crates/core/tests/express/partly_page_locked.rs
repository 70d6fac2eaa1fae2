//! Memory that is only partly page-locked. The driver refuses it; the express lane stages it.

use pinlane_driver::{HostPtr, RegisterFlags};

use pinlane_testing::{CHUNK_BYTES, assert_same, pattern, small};

const PAGE: usize = 4096;

/// Length of a slice, and the pages of it that are registered.
fn cases() -> [(usize, &'static [usize]); 5] {
    const LARGE: usize = 5 * CHUNK_BYTES;
    [
        (3 * PAGE, &[0]),
        (3 * PAGE, &[1]),
        (3 * PAGE, &[0, 2]),
        (LARGE, &[0]),
        (LARGE, &[0, LARGE / PAGE - 1]),
    ]
}

#[test]
fn partly_page_locked_memory_is_copied() {
    let (sim, device, stream) = small(2, 2);
    let driver = sim.driver();
    for (bytes, locked) in cases() {
        let mut source = pattern(bytes, bytes as u64);
        let expected = source.clone();
        let mut back = vec![0u8; bytes];
        let mut bases = Vec::new();
        for memory in [&mut source, &mut back] {
            for page in locked {
                let start = HostPtr::from(&mut memory[page * PAGE]);
                // SAFETY: part of a vector that lives until it is unregistered.
                unsafe { driver.host_register(start, PAGE, RegisterFlags::default()) }.unwrap();
                bases.push(start);
            }
        }
        let mut target = device.alloc::<u8>(bytes).unwrap();
        stream.copy_to_device(&source, &mut target).unwrap();
        stream.copy_to_host(&target, &mut back).unwrap();
        assert_same(
            &back,
            &expected,
            &format!("{bytes} bytes, pages {locked:?} locked"),
        );
        stream.synchronize().unwrap();
        for base in bases {
            // SAFETY: no work uses it.
            unsafe { driver.host_unregister(base) }.unwrap();
        }
    }
    drop((stream, device));
    pinlane_testing::assert_clean(&sim);
}
