//! Copies that bypass the caches: any alignment, any size, and nothing else is written.

use pinlane_kernels::{Instructions, copy_streaming, copy_streaming_raw};

/// Bytes that differ from their neighbours and from those a line away.
fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|i| (i * 37 + i / 64) as u8).collect()
}

/// Copies between these places of two buffers and looks at all of the target.
fn check(instructions: Instructions, source_at: usize, target_at: usize, count: usize) {
    let source = bytes(source_at + count);
    let mut target = vec![0xee; target_at + count + 70];
    let mut expected = target.clone();
    expected[target_at..target_at + count].copy_from_slice(&source[source_at..]);
    instructions.copy_streaming(&source[source_at..], &mut target[target_at..][..count]);
    assert!(
        target == expected,
        "{}: {count} bytes from {source_at} to {target_at}",
        instructions.name()
    );
}

#[test]
fn small_sizes_at_every_alignment_of_the_target() {
    let step = if cfg!(miri) { 13 } else { 1 };
    for instructions in Instructions::available() {
        for target_at in (0..64).step_by(step) {
            for count in (0..200).step_by(step) {
                check(instructions, 3, target_at, count);
            }
        }
    }
}

#[test]
fn every_alignment_of_both() {
    let step = if cfg!(miri) { 13 } else { 1 };
    for instructions in Instructions::available() {
        for source_at in (0..64).step_by(step) {
            for target_at in (0..64).step_by(step) {
                check(instructions, source_at, target_at, 333);
            }
        }
    }
}

#[test]
fn a_large_copy() {
    let source = bytes(3_000_001);
    let mut target = vec![0; source.len()];
    copy_streaming(&source, &mut target);
    assert!(target == source);
}

#[test]
fn another_thread_sees_all_of_it() {
    let source = bytes(100_000);
    let mut target = vec![0; source.len()];
    let (address, count) = (target.as_mut_ptr() as usize, source.len());
    std::thread::scope(|scope| {
        let source = &source;
        scope.spawn(move || {
            let target = std::ptr::with_exposed_provenance_mut(address);
            // SAFETY: two buffers of this length that outlive the scope; nobody else looks at the
            // target before the thread has ended.
            unsafe { copy_streaming_raw(source.as_ptr(), target, count) };
        });
    });
    assert!(target == source);
}
