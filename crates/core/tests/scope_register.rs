//! Borrowed memory that a scope registers.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pinlane::{Budget, Device, DeviceStats, Error};
use pinlane_driver::{Call, PointerKind};
use pinlane_testing::{Spring, Trap, assert_clean, sim};

#[test]
fn it_is_registered_until_the_scope_ends() {
    let sim = sim();
    let budget = Budget::with_limit(1 << 20);
    let device = Device::with_budget(sim.driver(), &budget);
    let mut values = vec![1u8; 10_000];
    device
        .scope(|scope| {
            let pinned = scope.register(&mut values)?;
            assert_eq!(device.stats().registered_bytes, 10_000);
            assert!(budget.in_use_bytes() >= 10_000, "whole pages");
            let kind = device.pointer_kind(&pinned[..])?;
            assert!(matches!(kind, PointerKind::Registered), "{kind:?}");
            Ok(())
        })
        .unwrap();
    assert_eq!(device.stats(), DeviceStats::default());
    assert_eq!(budget.in_use_bytes(), 0);
    values.push(2); // ours again
    drop(device);
    assert_clean(&sim);
}

#[test]
fn a_panic_or_a_leak_waits_for_the_copy_and_unregisters() {
    let sim = sim();
    let device = Device::open(&sim, 0).unwrap();
    let stream = device.stream().unwrap();
    let source: Vec<u32> = (0..100_000).collect();
    let mut on_device = device.alloc::<u32>(source.len()).unwrap();
    let mut target = vec![0u32; source.len()];
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        device.scope(|scope| {
            let pinned = scope.register_read_only(&source)?;
            std::mem::forget(scope.upload(&stream, pinned, &mut on_device)?);
            let pinned = scope.register(&mut target)?;
            std::mem::forget(scope.download(&stream, &on_device, pinned)?);
            if device.stats().registered_bytes > 0 {
                panic!("on purpose");
            }
            Ok(())
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(target, source, "the copies were waited for");
    assert_eq!(device.stats().registered_bytes, 0);
    drop((on_device, stream, device));
    assert_clean(&sim);
}

#[test]
fn a_refusal_gives_the_memory_back() {
    let sim = sim();
    let device = Device::with_budget(sim.driver(), &Budget::with_limit(4096));
    let mut values = vec![1u8; 100_000];
    device
        .scope(|scope| {
            let refused = scope.register(&mut values).unwrap_err();
            assert!(matches!(refused.error, Error::OverBudget { .. }));
            refused.memory[0] = 7;
            let nothing = scope.register(&mut [0u8; 0])?;
            assert!(nothing.is_empty());
            Ok(())
        })
        .unwrap();
    assert_eq!(values[0], 7);
    drop(device);
    assert_clean(&sim);
}

#[test]
fn one_failed_unregister_is_tried_again() {
    let sim = sim();
    let (device, trap) = Trap::under(&sim);
    let mut values = vec![1u8; 10_000];
    trap.set(Call::HostUnregister, 0, Spring::Fail);
    device
        .scope(|scope| scope.register(&mut values).map(drop).map_err(Error::from))
        .unwrap();
    assert_eq!(trap.disarm(), 1);
    assert_eq!(device.take_stray_errors().len(), 1);
    assert_eq!(device.stats().registered_bytes, 0);
    drop(device);
    assert_clean(&sim);
}
