//! A forked child has no helper threads. It works alone.

use std::time::Duration;

use half::bf16;
use pinlane::{Device, F32ToBf16, Stream};

use pinlane_testing::{CHUNK_BYTES, pattern, small};

/// A child that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// All kinds of copies. Returns the result, since a child cannot report a panic.
fn copies_are_right(device: &Device, stream: &Stream, seed: u64) -> pinlane::Result<bool> {
    let source = pattern(7 * CHUNK_BYTES + 3, seed);
    let mut on_device = device.alloc::<u8>(source.len())?;
    stream.copy_to_device(&source, &mut on_device)?;
    let plain = stream.copy_to_vec(&on_device)? == source;
    let mut back = vec![0; source.len()];
    let ranges = |at: usize| 1000 * at..(1000 * at + 700).min(source.len());
    let sources = (0..400).map(|at| on_device.range(ranges(at)));
    let targets = back.chunks_mut(1000).map(|place| {
        let len = place.len().min(700);
        &mut place[..len]
    });
    stream.download_many(sources.zip(targets))?;
    let pieces = (0..400).all(|at| back[ranges(at)] == source[ranges(at)]);
    let floats = vec![1.5f32; 3 * CHUNK_BYTES];
    let mut narrow = device.alloc::<bf16>(floats.len())?;
    stream.upload_as(F32ToBf16, &floats, &mut narrow)?;
    let converted = stream.copy_to_vec(&narrow)?;
    let converted = converted.iter().all(|value| value.to_f32() == 1.5);
    Ok(plain && pieces && converted)
}

/// Exit code of a child that runs `work`; `None` if it hung.
fn in_child(work: impl FnOnce() -> bool) -> Option<i32> {
    // SAFETY: the child needs no lock that another thread could hold at this moment, since helpers
    // leave a copy before it returns. It exits without unwinding into the harness and without
    // running its destructors.
    let child = unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::alarm(PATIENCE.as_secs() as u32); // kills it if it hangs
            let right = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            libc::_exit(match right {
                Ok(true) => 7,
                Ok(false) => 1,
                Err(_) => 2,
            });
        }
        child
    };
    assert!(child > 0, "fork failed");
    let mut status = 0;
    // SAFETY: `status` outlives the call, and the child is ours.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status))
}

#[test]
fn a_forked_child_works_alone() {
    let (sim, device, stream) = small(4, 3);
    // Gives the parent helpers, and slots that the child inherits.
    assert!(copies_are_right(&device, &stream, 1).unwrap());
    let with_parents_device = in_child(|| {
        let right = copies_are_right(&device, &stream, 2);
        right == Ok(true)
    });
    assert_eq!(with_parents_device, Some(7), "with its parent's device");
    let with_own_device = in_child(|| {
        let (_sim, device, stream) = small(4, 2);
        let right = copies_are_right(&device, &stream, 3);
        let gone = stream.synchronize();
        device.trim();
        right == Ok(true) && gone == Ok(()) && device.stats().express_bytes == 0
    });
    assert_eq!(with_own_device, Some(7), "with its own device");
    assert!(
        copies_are_right(&device, &stream, 4).unwrap(),
        "the parent still works"
    );
    drop((stream, device));
    pinlane_testing::assert_clean(&sim);
}
