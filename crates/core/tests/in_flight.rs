//! What happens to buffers whose transfer has not ended. The simulator holds the completion, so
//! "in flight" is a fact and not a matter of time.

use std::time::Duration;

use pinlane::{Builtin, DeviceStats, Error};
use pinlane_conformance::library::SCENARIOS;
use pinlane_sim::{FindingKind, Sim};
use pinlane_testing::must_return;

#[test]
fn transfer_is_not_done_while_it_is_held() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let stream = device.stream().unwrap();
    let mut target = device.alloc::<u8>(4096).unwrap();
    let source = device.pinned_from(&[3; 4096]).unwrap();
    sim.hold();
    let transfer = stream.upload(source, &mut target).unwrap();
    assert!(!transfer.is_done().unwrap());
    assert!(!transfer.wait_timeout(Duration::from_secs(1)).unwrap());
    assert!(!stream.is_idle().unwrap());
    sim.release();
    assert!(transfer.wait_timeout(Duration::from_secs(1)).unwrap());
    assert_eq!(transfer.wait().unwrap()[0], 3);
}

#[test]
fn dropped_transfer_parks_its_buffer_until_it_lands() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let stream = device.stream().unwrap();
    let mut target = device.alloc::<u8>(4096).unwrap();
    sim.hold();
    drop(stream.upload(device.pinned_from(&[3; 4096]).unwrap(), &mut target));
    let stats = device.stats();
    assert_eq!((stats.parked, stats.pinned_bytes), (1, 4096));
    assert_eq!(device.reclaim(), 0, "still in flight");
    sim.release();
    stream.synchronize().unwrap();
    let stats = device.stats();
    assert_eq!((stats.parked, stats.pinned_bytes), (0, 0));
    drop((stream, target, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn dropped_device_buffer_stays_until_its_uses_are_done() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let stream = device.stream().unwrap();
    let mut target = device.alloc::<u8>(4096).unwrap();
    sim.hold();
    let transfer = stream.upload(device.pinned_from(&[3; 4096]).unwrap(), &mut target);
    drop(target);
    assert_eq!(device.stats().device_bytes, 4096);
    sim.release();
    transfer.unwrap().wait().unwrap();
    device.reclaim();
    assert_eq!(device.stats().device_bytes, 0);
    device.trim();
    assert_eq!(device.stats(), DeviceStats::default());
    drop((stream, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn leaked_transfer_leaks_its_buffer_and_frees_nothing_in_flight() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let stream = device.stream().unwrap();
    let mut target = device.alloc::<u8>(4096).unwrap();
    let transfer = stream.upload(device.pinned_from(&[3; 4096]).unwrap(), &mut target);
    std::mem::forget(transfer);
    drop((stream, target, device));
    let kinds: Vec<_> = sim.finish().iter().map(|finding| finding.kind).collect();
    assert!(
        kinds.contains(&FindingKind::LeakedPinnedMemory),
        "{kinds:?}"
    );
    assert!(kinds.iter().all(|kind| kind.is_leak()), "{kinds:?}");
}

#[test]
fn panic_in_a_scope_waits_for_its_transfers() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let stream = device.stream().unwrap();
    let source = device.pinned_from(&[3u8; 4096]).unwrap();
    let mut target = device.alloc::<u8>(4096).unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        device.scope(|scope| -> pinlane::Result<()> {
            scope.upload(&stream, &source, &mut target)?;
            panic!("on purpose");
        })
    }));
    assert!(panicked.is_err());
    assert!(stream.is_idle().unwrap());
    drop((source, target, stream, device));
    pinlane_testing::assert_clean(&sim);
}

/// A device whose work never ends, with a buffer parked, shut down.
fn shut_down_in_flight(sim: &Sim) {
    let device = pinlane_testing::open(sim);
    let stream = device.stream().unwrap();
    let mut target = device.alloc::<u8>(4096).unwrap();
    sim.hold();
    drop(stream.upload(device.pinned_from(&[3; 4096]).unwrap(), &mut target));
    must_return(move || drop((target, stream, device)));
}

#[test]
fn shutdown_neither_hangs_on_work_in_flight_nor_frees_its_buffers() {
    let sim = pinlane_testing::sim();
    shut_down_in_flight(&sim);
    let findings = sim.findings();
    assert!(findings.is_empty(), "{findings:#?}");
    sim.release();
    // What the device never let go of is left alone, and only that.
    let kinds: Vec<_> = sim.finish().iter().map(|finding| finding.kind).collect();
    assert!(
        kinds.contains(&FindingKind::LeakedPinnedMemory),
        "{kinds:?}"
    );
    assert!(kinds.iter().all(|kind| kind.is_leak()), "{kinds:?}");
}

#[test]
fn shutdown_waits_for_work_that_ends() {
    let sim = pinlane_testing::sim();
    {
        let device = pinlane_testing::open(&sim);
        let stream = device.stream().unwrap();
        Builtin::load(&device)
            .unwrap()
            .spin(&stream, 1_000_000_000)
            .unwrap();
        let mut target = stream.alloc::<u8>(4096).unwrap();
        drop(stream.upload(device.pinned_from(&[3; 4096]).unwrap(), &mut target));
    }
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn late_error_comes_out_of_the_transfer_with_the_buffer() {
    use pinlane_sim::{FaultKind, Faults};
    let faults = Faults::none().with(FaultKind::LateError, 1000);
    let sim = Sim::builder()
        .profile(pinlane_testing::profile())
        .seed(1)
        .faults(faults)
        .build();
    let device = pinlane_testing::open(&sim);
    let stream = device.stream().unwrap();
    let mut target = device.alloc::<u8>(4096).unwrap();
    let source = device.pinned_from(&[3; 4096]).unwrap();
    let failed = stream
        .upload(source, &mut target)
        .unwrap()
        .wait()
        .unwrap_err();
    assert!(matches!(&failed.error, Error::Driver(error) if error.is_fatal()));
    assert_eq!(failed.buffer.expect("it comes back")[0], 3);
    drop((target, stream, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn refused_registration_gives_the_memory_back_and_leaves_no_error() {
    use pinlane_sim::{FaultKind, Faults};
    let faults = Faults::none().with(FaultKind::RefusedRegistration, 1000);
    let sim = Sim::builder()
        .profile(pinlane_testing::profile())
        .seed(1)
        .faults(faults)
        .build();
    let device = pinlane_testing::open(&sim);
    let refused = device.register(vec![1u8, 2, 3]).map(drop).unwrap_err();
    assert_eq!(refused.memory, [1, 2, 3]);
    (SCENARIOS[0].run)(&device).expect("the next work is not disturbed");
}

#[test]
fn memory_of_another_device_is_refused() {
    let sim = Sim::builder()
        .profile(pinlane_testing::profile())
        .devices(2)
        .build();
    let (one, two) = (
        pinlane::Device::open(&sim, 0).unwrap(),
        pinlane::Device::open(&sim, 1).unwrap(),
    );
    let stream = one.stream().unwrap();
    let mut foreign = two.alloc::<u8>(16).unwrap();
    let failed = stream.upload(one.pinned::<u8>(16).unwrap(), &mut foreign);
    assert_eq!(failed.map(drop).unwrap_err().error, Error::WrongDevice);

    // Pinned memory is portable, unless it was asked not to be.
    let mut target = one.alloc::<u8>(16).unwrap();
    let portable = two.pinned::<u8>(16).unwrap();
    stream
        .upload(portable, &mut target)
        .unwrap()
        .wait()
        .unwrap();
    let bound = two.pinned_with::<u8>(16, false).unwrap();
    let failed = stream.upload(bound, &mut target);
    assert_eq!(failed.map(drop).unwrap_err().error, Error::NotPortable);
}

#[test]
fn lengths_must_agree_and_sizes_must_fit() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let stream = device.stream().unwrap();
    let mut target = device.alloc::<u8>(16).unwrap();
    let failed = stream.upload(device.pinned::<u8>(8).unwrap(), &mut target);
    let failed = failed.map(drop).unwrap_err();
    assert_eq!(
        failed.error,
        Error::LengthMismatch {
            source_len: 8,
            target_len: 16
        }
    );
    assert_eq!(failed.buffer.expect("it comes back").len(), 8);
    let huge = device.pinned::<u64>(usize::MAX / 4).map(drop);
    assert!(matches!(huge, Err(Error::TooLarge { .. })));
}
