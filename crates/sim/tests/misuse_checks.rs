//! Misuse is reported, and correct use is not.

mod common;

use common::{Rig, bytes_at, fill, kinds, plain, rig, seeded};
use pinlane_driver::{ErrorKind, EventFlags, HostPtr, RegisterFlags};
use pinlane_sim::{FindingKind, Sim};

const BYTES: usize = common::BYTES;
const SLOTS: usize = 8;

/// The beginner's loop: one pinned buffer, refilled while its copy may be in flight.
fn racy(rig: &Rig) {
    let stream = rig.stream();
    let (buffer, device) = (rig.pinned(BYTES), rig.device(SLOTS * BYTES));
    for slot in 0..SLOTS {
        fill(buffer, BYTES, slot as u8);
        rig.upload(buffer, device.offset(slot * BYTES), BYTES, stream)
            .unwrap();
    }
    rig.driver.synchronize().unwrap();
    rig.host_free(buffer).unwrap();
    rig.device_free(device).unwrap();
    rig.destroy_stream(stream);
}

/// The same, but waits for an event before each refill.
fn correct(rig: &Rig) {
    let stream = rig.stream();
    let event = rig.driver.event_create(EventFlags::default()).unwrap();
    let (buffer, device) = (rig.pinned(BYTES), rig.device(SLOTS * BYTES));
    for slot in 0..SLOTS {
        rig.driver.event_synchronize(event).unwrap();
        fill(buffer, BYTES, slot as u8);
        rig.upload(buffer, device.offset(slot * BYTES), BYTES, stream)
            .unwrap();
        rig.driver.event_record(event, stream).unwrap();
    }
    rig.driver.synchronize().unwrap();
    for slot in 0..SLOTS {
        let found = rig.device_bytes(device.offset(slot * BYTES), BYTES);
        assert_eq!(found, [slot as u8; BYTES]);
    }
    rig.host_free(buffer).unwrap();
    rig.device_free(device).unwrap();
    rig.destroy_event(event);
    rig.destroy_stream(stream);
}

#[test]
fn the_racy_loop_is_caught_under_every_schedule() {
    let machines = common::seeds(100).map(seeded).chain(
        ["pcie3-x16", "h200", "null"]
            .map(|name| rig(Sim::builder().profile(common::profile(name)))),
    );
    for (index, rig) in machines.enumerate() {
        racy(&rig);
        let findings = rig.sim.finish();
        assert!(!findings.is_empty(), "machine {index}");
        for finding in findings {
            assert_eq!(finding.kind, FindingKind::HostChangedInFlight, "{finding}");
            assert!(finding.operation.starts_with("copy_async #"), "{finding}");
        }
    }
}

#[test]
fn the_correct_loop_is_not_reported() {
    let machines = common::seeds(100).map(seeded).chain(
        ["pcie3-x16", "h200", "null"]
            .map(|name| rig(Sim::builder().profile(common::profile(name)))),
    );
    for (index, rig) in machines.enumerate() {
        correct(&rig);
        assert_eq!(rig.sim.finish(), [], "machine {index}");
    }
}

#[test]
fn writing_a_target_in_flight_is_caught() {
    for seed in common::seeds(100) {
        let rig = seeded(seed);
        let (target, device) = (rig.pinned(BYTES), rig.device(BYTES));
        fill(target, BYTES, 1);
        rig.download(device, target, BYTES, rig.stream()).unwrap();
        fill(target, BYTES, 2);
        rig.driver.synchronize().unwrap();
        let found = kinds(&rig.sim.findings());
        assert_eq!(found, [FindingKind::HostChangedInFlight], "seed {seed}");
    }
}

#[test]
fn writes_by_the_device_in_stream_order_are_not_reported() {
    for seed in common::seeds(100) {
        let rig = seeded(seed);
        let stream = rig.stream();
        let (a, b, buffer) = (rig.device(BYTES), rig.device(BYTES), rig.pinned(BYTES));
        // SAFETY: device memory that nothing else uses.
        unsafe { rig.driver.memset_async(a, 6, BYTES, stream).unwrap() };
        rig.download(a, buffer, BYTES, stream).unwrap();
        rig.upload(buffer, b, BYTES, stream).unwrap();
        rig.download(b, buffer, BYTES, stream).unwrap();
        rig.driver.stream_synchronize(stream).unwrap();
        assert_eq!(bytes_at(buffer, BYTES), [6; BYTES]);
        assert_eq!(rig.sim.findings(), [], "seed {seed}");
    }
}

#[test]
fn memory_freed_in_flight_is_caught_and_not_accessed() {
    let rig = plain();
    let stream = rig.stream();
    rig.sim.hold();
    let (pinned, device) = (rig.pinned(BYTES), rig.device(BYTES));
    let mut vector = vec![0_u8; BYTES];
    let registered = HostPtr::new(vector.as_mut_ptr()).unwrap();
    // SAFETY: the vector outlives the machine.
    unsafe {
        rig.driver
            .host_register(registered, BYTES, RegisterFlags::default())
            .unwrap()
    };
    rig.upload(pinned, device, BYTES, stream).unwrap();
    rig.download(device, registered, BYTES, stream).unwrap();
    rig.host_free(pinned).unwrap();
    // SAFETY: wrong on purpose; the simulator cancels the copy.
    unsafe { rig.driver.host_unregister(registered).unwrap() };
    rig.upload(rig.pinned(BYTES), device, BYTES, stream)
        .unwrap();
    rig.device_free(device).unwrap();
    rig.sim.release();
    rig.driver.synchronize().unwrap();
    assert_eq!(vector, [0; BYTES]);
    let findings = rig.sim.findings();
    assert_eq!(
        kinds(&findings),
        [
            FindingKind::HostFreedInFlight,
            FindingKind::HostUnregisteredInFlight,
            FindingKind::DeviceFreedInUse,
        ]
    );
    assert!(
        findings[0]
            .detail
            .contains(&format!("copy_async #1 ({BYTES} bytes, host to device)"))
    );
    assert_eq!(findings[1].operation, "host_unregister");
}

#[test]
fn wrong_frees_are_reported() {
    let rig = plain();
    let stream = rig.stream();
    let (pinned, device) = (rig.pinned(2 * BYTES), rig.device(BYTES));
    let ordered = rig.driver.device_alloc_async(BYTES, stream).unwrap();
    let mut vector = vec![0_u8; BYTES];
    let registered = HostPtr::new(vector.as_mut_ptr()).unwrap();
    let inside = |ptr: HostPtr| ptr.with_addr(ptr.addr().checked_add(8).unwrap());
    // SAFETY: the vector outlives the machine; wrong addresses are only looked up.
    unsafe {
        let driver = &rig.driver;
        driver
            .host_register(registered, BYTES, RegisterFlags::default())
            .unwrap();
        let cases = [
            (driver.host_free(registered), FindingKind::WrongFree),
            (driver.host_free(inside(pinned)), FindingKind::WrongBase),
            (driver.host_unregister(pinned), FindingKind::WrongFree),
            (
                driver.host_unregister(inside(registered)),
                FindingKind::WrongBase,
            ),
            (driver.device_free(ordered), FindingKind::WrongFree),
            (
                driver.device_free_async(device, stream),
                FindingKind::WrongFree,
            ),
            (driver.device_free(device.offset(8)), FindingKind::WrongBase),
        ];
        let found = kinds(&rig.sim.findings());
        for (index, (result, kind)) in cases.into_iter().enumerate() {
            assert!(result.is_err(), "case {index}");
            assert_eq!(found[index], kind, "case {index}");
        }
        driver.host_free(pinned).unwrap();
        driver.host_unregister(registered).unwrap();
        driver.device_free(device).unwrap();
        driver.device_free_async(ordered, stream).unwrap();
        let twice = [
            driver.host_free(pinned),
            driver.host_unregister(registered),
            driver.device_free(device),
            driver.device_free_async(ordered, stream),
        ];
        assert_eq!(
            twice[1].as_ref().unwrap_err().kind,
            ErrorKind::NotRegistered
        );
        assert!(twice.iter().all(Result::is_err));
        assert_eq!(
            kinds(&rig.sim.findings())[7..],
            [FindingKind::DoubleFree; 4]
        );
    }
}

#[test]
fn use_of_freed_device_memory_is_refused_and_reported() {
    let rig = plain();
    let (pinned, device) = (rig.pinned(BYTES), rig.device(BYTES));
    rig.device_free(device).unwrap();
    let error = rig.upload(pinned, device, BYTES, rig.stream()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidValue);
    assert_eq!(kinds(&rig.sim.findings()), [FindingKind::UseAfterFree]);
    let live = rig.device(BYTES);
    let error = rig
        .upload(pinned, live.offset(1), BYTES, rig.stream())
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidValue);
    assert_eq!(
        rig.sim.findings().len(),
        1,
        "beyond the end is an error, not use after free"
    );
}

#[test]
fn unordered_use_of_stream_ordered_memory_is_reported() {
    let early = |seed| {
        let rig = seeded(seed);
        let (a, b) = (rig.non_blocking_stream(), rig.non_blocking_stream());
        let (pinned, big) = (rig.pinned(BYTES), rig.device(BYTES));
        rig.upload(pinned, big, BYTES, a).unwrap();
        let block = rig.driver.device_alloc_async(BYTES, a).unwrap();
        rig.upload(pinned, block, BYTES, b).unwrap(); // does not wait for `a`
        rig.driver.synchronize().unwrap();
        kinds(&rig.sim.findings()).contains(&FindingKind::UseBeforeAlloc)
    };
    let caught = common::seeds(50).filter(|&seed| early(seed)).count();
    assert!(caught >= 5 || cfg!(miri), "{caught} of 50");
}

#[test]
fn leaks_are_reported() {
    let rig = plain();
    let (_pinned, _device) = (rig.pinned(BYTES), rig.device(BYTES));
    let (_stream, _event) = (rig.stream(), rig.event());
    let ptx = ".version 8.0 .entry pinlane_copy_u8() {}";
    let module = rig.driver.module_load(ptx).unwrap();
    let mut vector = vec![0_u8; BYTES];
    let registered = HostPtr::new(vector.as_mut_ptr()).unwrap();
    // SAFETY: the vector outlives the machine.
    unsafe {
        rig.driver
            .host_register(registered, BYTES, RegisterFlags::default())
            .unwrap()
    };
    let mut found = kinds(&rig.sim.finish());
    found.sort();
    assert_eq!(
        found,
        [
            FindingKind::LeakedDeviceMemory,
            FindingKind::LeakedPinnedMemory,
            FindingKind::LeakedRegistration,
            FindingKind::LeakedStream,
            FindingKind::LeakedEvent,
            FindingKind::LeakedModule,
        ]
    );
    // SAFETY: nothing uses them.
    unsafe {
        rig.driver.module_unload(module).unwrap();
        rig.driver.host_unregister(registered).unwrap();
    }
    assert_eq!(rig.sim.finish().len(), 4);
}

#[test]
fn without_checks_errors_remain_and_nothing_is_reported() {
    let rig = rig(Sim::builder().checks(false));
    racy(&rig);
    let device = rig.device(BYTES);
    rig.device_free(device).unwrap();
    assert!(rig.device_free(device).is_err());
    rig.device(BYTES);
    assert_eq!(rig.sim.finish(), []);
}

#[test]
fn use_of_freed_pinned_memory_is_refused_and_reported() {
    let rig = plain();
    let (buffer, device) = (rig.pinned(BYTES), rig.device(BYTES));
    rig.host_free(buffer).unwrap();
    let stream = rig.stream();
    let error = rig.upload(buffer, device, BYTES, stream).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidValue);
    assert_eq!(kinds(&rig.sim.findings()), [FindingKind::UseAfterFree]);
}
