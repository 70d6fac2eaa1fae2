//! Drivers that panic: nothing that may be in use is freed, and the process goes on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use pinlane::{Device, DeviceBuf, MappedBuf, MappedCopies, Stream};
use pinlane_driver::Call;

use crate::{LARGE, misuse, trapped};

/// Everything for a copy by a kernel. One such copy is done, so that the next one only launches it.
fn ready_to_launch(device: &Device) -> (Stream, MappedCopies, MappedBuf<u8>, DeviceBuf<u8>) {
    let stream = device.stream().unwrap();
    let mut copies = MappedCopies::load(device).unwrap();
    let mut on_device = device.alloc::<u8>(LARGE).unwrap();
    let mapped = device.mapped(LARGE).unwrap();
    let sent = copies.to_device(&stream, mapped, &mut on_device).unwrap();
    let mapped = sent.wait().unwrap();
    (stream, copies, mapped, on_device)
}

#[test]
fn driver_that_panics_behind_the_copy_does_not_free_the_buffer() {
    let sim = pinlane_testing::sim();
    let (device, armed) = trapped(&sim, |call, _| match call {
        Call::EventRecord => panic!("on purpose"),
        _ => Ok(()),
    });
    let stream = device.stream().unwrap();
    let mut target = device.alloc::<u8>(LARGE).unwrap();
    let source = device.pinned_from(&vec![1; LARGE]).unwrap();
    armed.store(true, Ordering::Relaxed);
    let panicked = catch_unwind(AssertUnwindSafe(|| stream.upload(source, &mut target)));
    assert!(panicked.is_err());
    armed.store(false, Ordering::Relaxed);
    stream.synchronize().unwrap();
    drop((target, stream, device));
    assert_eq!(misuse(&sim), [""; 0]);
}

#[test]
fn driver_that_panics_behind_a_kernel_frees_neither_its_memory_nor_its_code() {
    let sim = pinlane_testing::sim();
    static UNLOADED: AtomicBool = AtomicBool::new(false);
    let (device, armed) = trapped(&sim, |call, _| match call {
        Call::EventRecord => panic!("on purpose"),
        Call::ModuleUnload => {
            UNLOADED.store(true, Ordering::Relaxed);
            Ok(())
        }
        _ => Ok(()),
    });
    let (stream, mut copies, mapped, mut on_device) = ready_to_launch(&device);
    armed.store(true, Ordering::Relaxed);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        copies.to_device(&stream, mapped, &mut on_device).map(drop)
    }));
    assert!(panicked.is_err());
    drop(copies);
    assert!(
        !UNLOADED.load(Ordering::Relaxed),
        "the kernel may still run"
    );
    armed.store(false, Ordering::Relaxed);
    stream.synchronize().unwrap();
    drop((on_device, stream, device));
    assert_eq!(misuse(&sim), [""; 0]);
}

/// Destroying the first event panics, and so does each of the others while that one unwinds.
#[test]
fn driver_that_panics_at_every_destroy_does_not_abort() {
    let sim = pinlane_testing::sim();
    let (device, armed) = trapped(&sim, |call, _| match call {
        Call::EventDestroy | Call::StreamDestroy => panic!("on purpose"),
        _ => Ok(()),
    });
    let stream = device.stream().unwrap();
    let mut targets = [(); 3].map(|()| device.alloc::<u8>(16).unwrap());
    let uploads = targets.each_mut().map(|target| {
        let source = device.pinned_from(&[1u8; 16]).unwrap();
        stream.upload(source, target).unwrap()
    });
    for upload in uploads {
        pinlane_conformance::library::block_on(upload).unwrap();
    }
    drop((targets, stream));
    armed.store(true, Ordering::Relaxed);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(device))).is_err());
    assert_eq!(misuse(&sim), [""; 0]);
}

/// Dropping asks whether the work is done. Without an answer it may still be running.
#[test]
fn driver_that_panics_when_asked_frees_nothing_that_may_be_in_use() {
    let sim = pinlane_testing::sim();
    static UNLOADED: AtomicBool = AtomicBool::new(false);
    let (device, armed) = trapped(&sim, |call, _| match call {
        Call::EventQuery if !std::thread::panicking() => panic!("on purpose"),
        Call::ModuleUnload => {
            UNLOADED.store(true, Ordering::Relaxed);
            Ok(())
        }
        _ => Ok(()),
    });
    let (stream, mut copies, mapped, mut on_device) = ready_to_launch(&device);
    sim.hold();
    let sent = copies.to_device(&stream, mapped, &mut on_device).unwrap();
    armed.store(true, Ordering::Relaxed);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(on_device))).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(copies))).is_err());
    assert!(
        !UNLOADED.load(Ordering::Relaxed),
        "the kernel may still run"
    );
    armed.store(false, Ordering::Relaxed);
    sim.release();
    sent.wait().unwrap();
    drop((stream, device));
    assert_eq!(misuse(&sim), [""; 0]);
}
