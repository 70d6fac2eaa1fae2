//! Injected faults, and what still works on a failed device.

mod common;

use common::{Rig, bytes_at, fill, kinds, plain, rig};
use pinlane_driver::{
    ErrorKind, EventFlags, HostFlags, HostPtr, KernelArg, LaunchShape, RegisterFlags, Result,
    StreamFlags,
};
use pinlane_sim::{FaultKind, Faults, Sim};

const BYTES: usize = 4096;

fn always(kind: FaultKind) -> Rig {
    rig(Sim::builder()
        .seed(1)
        .faults(Faults::none().with(kind, 1000)))
}

#[test]
fn failed_allocations_leave_nothing() {
    let rig = always(FaultKind::OutOfMemory);
    let stream = rig.stream();
    let errors = [
        rig.driver.device_alloc(BYTES).unwrap_err(),
        rig.driver.device_alloc_async(BYTES, stream).unwrap_err(),
        rig.driver
            .host_alloc(BYTES, HostFlags::default())
            .unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind, ErrorKind::OutOfMemory);
        assert!(!error.is_fatal());
    }
    rig.destroy_stream(stream);
    assert_eq!(rig.sim.finish(), []);
    assert_eq!(rig.sim.faults_hit()[&FaultKind::OutOfMemory], 3);
}

#[test]
fn refused_registrations_leave_nothing() {
    let rig = always(FaultKind::RefusedRegistration);
    let mut vector = vec![0_u8; BYTES];
    let ptr = HostPtr::new(vector.as_mut_ptr()).unwrap();
    // SAFETY: the vector stays.
    let error = unsafe {
        rig.driver
            .host_register(ptr, BYTES, RegisterFlags::default())
    };
    assert_eq!(error.unwrap_err().kind, ErrorKind::RegistrationRefused);
    assert_eq!(rig.sim.finish(), []);
}

#[test]
fn a_failed_submission_queues_nothing() {
    let rig = always(FaultKind::FailedSubmit);
    let stream = rig.driver.default_stream();
    let (source, device) = (rig.pinned(BYTES), rig.device(BYTES));
    fill(source, BYTES, 1);
    // SAFETY: device memory that nothing else uses.
    let memset = unsafe { rig.driver.memset_async(device, 0, BYTES, stream) };
    let results: [Result<()>; 5] = [
        rig.upload(source, device, BYTES, stream),
        memset,
        rig.driver.stream_create(StreamFlags::default()).map(drop),
        rig.driver.event_create(EventFlags::default()).map(drop),
        rig.driver
            .host_callback(stream, Box::new(|_| panic!("must not be called"))),
    ];
    for result in results {
        assert!(matches!(result.unwrap_err().kind, ErrorKind::Other { .. }));
    }
    assert!(rig.driver.stream_query(stream).unwrap());
    assert!(rig.sim.timeline().is_empty());
}

#[test]
fn a_late_error_is_sticky_and_stops_the_engines() {
    let rig = always(FaultKind::LateError);
    let stream = rig.stream();
    let (pinned, device) = (rig.pinned(BYTES), rig.device(BYTES));
    fill(pinned, BYTES, 1);
    rig.sim.hold();
    rig.upload(pinned, device, BYTES, stream).unwrap();
    rig.download(device, pinned, BYTES, stream).unwrap();
    rig.sim.release();
    let error = rig.driver.stream_synchronize(stream).unwrap_err();
    assert_eq!(error.kind, ErrorKind::DeviceFault);
    assert!(error.detail.contains("copy_async #1"), "{error}");
    fill(pinned, BYTES, 2); // nothing is in flight any more
    assert_eq!(
        rig.driver.memory_info().unwrap_err().kind,
        ErrorKind::DeviceFault
    );
    assert_eq!(
        rig.driver.stream_query(stream).unwrap_err().kind,
        ErrorKind::DeviceFault
    );
    assert_eq!(bytes_at(pinned, BYTES), [2; BYTES]);
    // Releases still work.
    rig.host_free(pinned).unwrap();
    rig.device_free(device).unwrap();
    rig.destroy_stream(stream);
    assert_eq!(rig.sim.finish(), []);
}

#[test]
fn a_lost_device_fails_every_call_except_releases() {
    let faults = Faults::none().with(FaultKind::LostDevice, 100);
    let rig = rig(Sim::builder().seed(7).faults(faults));
    let mut calls = 0;
    let error = loop {
        calls += 1;
        if let Err(error) = rig.driver.synchronize() {
            break error;
        }
    };
    assert!(calls > 1);
    assert_eq!(error.kind, ErrorKind::DeviceLost);
    assert_eq!(
        rig.driver.device_alloc(1).unwrap_err().kind,
        ErrorKind::DeviceLost
    );
    assert_eq!(rig.sim.faults_hit()[&FaultKind::LostDevice], 1);
}

#[test]
fn a_stuck_operation_is_ended_by_the_watchdog() {
    let rig = always(FaultKind::StuckCompletion);
    let stream = rig.stream();
    let (pinned, device) = (rig.pinned(BYTES), rig.device(BYTES));
    let start_ns = rig.sim.now_ns();
    rig.upload(pinned, device, BYTES, stream).unwrap();
    let error = rig.driver.stream_synchronize(stream).unwrap_err();
    assert_eq!(error.kind, ErrorKind::DeviceFault);
    assert!(rig.sim.now_ns() - start_ns >= 10_000_000_000);
}

#[test]
fn an_illegal_access_makes_only_its_device_unusable() {
    let sim = Sim::builder().devices(2).build();
    let drivers = [0, 1].map(|ordinal| pinlane_driver::Platform::open(&sim, ordinal).unwrap());
    let ptx = ".version 8.0 .entry pinlane_add_u32() {}";
    let module = drivers[0].module_load(ptx).unwrap();
    // SAFETY: the module was just loaded by this driver.
    let function = unsafe { drivers[0].module_function(module, "pinlane_add_u32") }.unwrap();
    let device = drivers[0].device_alloc(BYTES).unwrap();
    let args = [
        KernelArg::U64(BYTES as u64),
        KernelArg::U32(1),
        KernelArg::Ptr(device),
    ];
    let stream = drivers[0].default_stream();
    // SAFETY: too many elements, on purpose; on a simulated device that is a fault.
    unsafe {
        drivers[0]
            .launch(function, LaunchShape::for_items(BYTES), &args, stream)
            .unwrap()
    };
    assert_eq!(
        drivers[0].synchronize().unwrap_err().kind,
        ErrorKind::DeviceFault
    );
    drivers[1].synchronize().unwrap();
    let other = drivers[1].device_alloc(BYTES).unwrap();
    // SAFETY: nothing uses them.
    unsafe {
        drivers[1].device_free(other).unwrap();
        drivers[0].device_free(device).unwrap();
        drivers[0].module_unload(module).unwrap();
    }
    assert_eq!(sim.finish(), []);
}

/// Makes every kind of call, and continues after failures.
fn busy(rig: &Rig) {
    let streams: Vec<_> = (0..3)
        .filter_map(|_| rig.driver.stream_create(StreamFlags::default()).ok())
        .collect();
    let pinned: Vec<_> = (0..3)
        .filter_map(|_| rig.driver.host_alloc(BYTES, HostFlags::default()).ok())
        .collect();
    let device = rig.driver.device_alloc(3 * BYTES).ok();
    let event = rig.driver.event_create(EventFlags::default()).ok();
    let mut vector = vec![0_u8; BYTES];
    let ptr = HostPtr::new(vector.as_mut_ptr()).unwrap();
    for round in 0..70 {
        // SAFETY: the vector stays until the end of the function.
        let registered = unsafe {
            rig.driver
                .host_register(ptr, BYTES, RegisterFlags::default())
        };
        for (slot, &buffer) in pinned.iter().enumerate() {
            let (Some(device), Some(&stream)) = (device, streams.get(slot)) else {
                continue;
            };
            let place = device.offset(slot * BYTES);
            let _ = match round % 2 {
                0 => rig.upload(buffer, place, BYTES, stream),
                _ => rig.download(place, buffer, BYTES, stream),
            };
            if let Some(event) = event {
                let _ = rig.driver.event_record(event, stream);
                let _ = rig.driver.event_query(event);
            }
        }
        if registered.is_ok() {
            // SAFETY: no copy uses it.
            unsafe { rig.driver.host_unregister(ptr).unwrap() };
        }
    }
    let _ = rig.driver.synchronize();
    for buffer in pinned {
        rig.host_free(buffer).unwrap();
    }
    if let Some(device) = device {
        rig.device_free(device).unwrap();
    }
    if let Some(event) = event {
        rig.destroy_event(event);
    }
    for stream in streams {
        rig.destroy_stream(stream);
    }
}

#[test]
fn the_same_seed_replays_the_same_run_and_faults() {
    let mut hashes = std::collections::BTreeSet::new();
    let mut hit = std::collections::BTreeSet::new();
    for seed in common::seeds(100) {
        let run = || {
            let rig = rig(Sim::builder().seed(seed).faults(Faults::all(2)));
            busy(&rig);
            assert_eq!(kinds(&rig.sim.finish()), [], "seed {seed}");
            (rig.sim.trace_hash(), rig.sim.now_ns(), rig.sim.faults_hit())
        };
        let first = run();
        assert_eq!(first, run(), "seed {seed}");
        hashes.insert(first.0);
        hit.extend(first.2.into_keys());
    }
    assert_eq!(
        hashes.len(),
        common::seeds(100).count(),
        "every seed is a run of its own"
    );
    if !cfg!(miri) {
        assert_eq!(hit.len(), FaultKind::ALL.len(), "{hit:?}");
    }
}

#[test]
fn no_faults_are_injected_by_default() {
    let rig = plain();
    busy(&rig);
    assert!(rig.sim.faults_hit().is_empty());
    assert_eq!(rig.sim.finish(), []);
}
