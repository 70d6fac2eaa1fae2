//! If no memory can be pinned, copies still work, at the driver's speed.

use half::bf16;
use pinlane::{Budget, Device, Error, F32ToBf16, Stream};
use pinlane_core::internal::pinned_store;
use pinlane_driver::Call;

use pinlane_testing::{
    CHUNK_BYTES, SMALL_SLOT_BYTES, Trap, assert_same, is_injected, pattern, set_up,
};

/// Every kind of copy that works without pinned memory.
fn all_copies_work(device: &Device, stream: &Stream) {
    for bytes in [
        1,
        SMALL_SLOT_BYTES,
        SMALL_SLOT_BYTES + 1,
        CHUNK_BYTES,
        5 * CHUNK_BYTES + 1,
        9 << 20,
    ] {
        let source = pattern(bytes, bytes as u64);
        let mut on_device = device.alloc::<u8>(bytes).unwrap();
        stream.copy_to_device(&source, &mut on_device).unwrap();
        let mut back = vec![0; bytes];
        stream.copy_to_host(&on_device, &mut back).unwrap();
        assert_same(&back, &source, &format!("{bytes} bytes"));
        let back = stream.copy_to_vec(&on_device).unwrap();
        assert_same(&back, &source, &format!("{bytes} bytes, fresh"));
    }
    let source = pattern(3000, 1);
    let mut on_device = device.alloc::<u8>(6000).unwrap();
    let places = on_device
        .whole_mut()
        .chunks(20)
        .map(|place| place.range(..10));
    stream.upload_many(source.chunks(10).zip(places)).unwrap();
    let mut back = vec![0; 3000];
    let sources = (0..300).map(|at| on_device.range(20 * at..20 * at + 10));
    stream
        .download_many(sources.zip(back.chunks_mut(10)))
        .unwrap();
    assert_same(&back, &source, "pieces");
}

fn convert(device: &Device, stream: &Stream) -> [pinlane::Result<()>; 2] {
    let mut narrow = device.alloc::<bf16>(1000).unwrap();
    let floats = device.alloc::<f32>(1000).unwrap();
    [
        stream.upload_as(F32ToBf16, &[1.0; 1000], &mut narrow),
        stream.download_as(F32ToBf16, &floats, &mut [bf16::ZERO; 1000]),
    ]
}

#[test]
fn a_budget_of_zero() {
    let sim = pinlane_testing::sim();
    let budget = Budget::with_limit(0);
    let device = Device::with_budget(sim.driver(), &budget);
    set_up(&device, 2, 3);
    let stream = device.stream().unwrap();
    all_copies_work(&device, &stream);
    for refused in convert(&device, &stream) {
        let error = refused.expect_err("conversions need pinned memory");
        assert!(
            matches!(error, Error::OverBudget { limit_bytes: 0, .. }),
            "{error}"
        );
    }
    assert_eq!((device.stats().pinned_bytes, budget.in_use_bytes()), (0, 0));
    drop((stream, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn a_budget_smaller_than_the_ring() {
    // One small slot, and two of the four slots of the ring.
    let budget = Budget::with_limit((SMALL_SLOT_BYTES + 2 * CHUNK_BYTES) as u64);
    let sim = pinlane_testing::sim();
    let device = Device::with_budget(sim.driver(), &budget);
    set_up(&device, 2, 4);
    let stream = device.stream().unwrap();
    all_copies_work(&device, &stream);
    for converted in convert(&device, &stream) {
        converted.unwrap();
    }
    assert!(budget.in_use_bytes() > 0);
    stream.synchronize().unwrap();
    pinlane_testing::assert_empty(&device);
    assert_eq!(budget.in_use_bytes(), 0);
    drop((stream, device));
    pinlane_testing::assert_clean(&sim);
}

/// More slots only make a copy faster, so they are not worth the device's idle memory.
#[test]
fn only_the_first_slot_takes_the_place_of_idle_memory() {
    let kept_bytes = 4 * CHUNK_BYTES;
    let budget = Budget::with_limit(kept_bytes as u64);
    let sim = pinlane_testing::sim();
    let device = Device::with_budget(sim.driver(), &budget);
    set_up(&device, 2, 4);
    let stream = device.stream().unwrap();
    drop([(); 4].map(|()| pinned_store(&device).take::<u8>(CHUNK_BYTES).unwrap()));
    let source = pattern(9 * CHUNK_BYTES, 3);
    let mut on_device = device.alloc::<u8>(source.len()).unwrap();
    stream.copy_to_device(&source, &mut on_device).unwrap();
    let stats = device.stats();
    assert_eq!(stats.express_bytes, CHUNK_BYTES as u64, "one slot");
    assert_eq!(stats.pinned_bytes, kept_bytes as u64);
    assert_same(&stream.copy_to_vec(&on_device).unwrap(), &source, "bytes");
    drop((on_device, stream, device));
    pinlane_testing::assert_clean(&sim);
}

/// They would have been freed if they were not kept for new ones.
#[test]
fn every_slot_takes_the_place_of_dropped_buffers() {
    let kept_bytes = 4 * CHUNK_BYTES;
    let budget = Budget::with_limit(kept_bytes as u64);
    let sim = pinlane_testing::sim();
    let device = Device::with_budget(sim.driver(), &budget);
    set_up(&device, 1, 4);
    let stream = device.stream().unwrap();
    drop([(); 4].map(|()| device.pinned::<u8>(CHUNK_BYTES).unwrap()));
    assert_eq!(budget.idle_bytes(), kept_bytes as u64);
    let source = pattern(9 * CHUNK_BYTES, 3);
    let mut on_device = device.alloc::<u8>(source.len()).unwrap();
    stream.copy_to_device(&source, &mut on_device).unwrap();
    let express_bytes = device.stats().express_bytes;
    assert!(express_bytes > CHUNK_BYTES as u64, "more than one slot");
    assert_eq!(budget.idle_bytes(), kept_bytes as u64 - express_bytes);
    assert_same(&stream.copy_to_vec(&on_device).unwrap(), &source, "bytes");
    drop((on_device, stream, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn a_driver_that_cannot_pin() {
    let sim = pinlane_testing::sim();
    let (device, trap) = Trap::under(&sim);
    set_up(&device, 2, 3);
    let stream = device.stream().unwrap();
    trap.refuse_all(Call::HostAlloc);
    all_copies_work(&device, &stream);
    for refused in convert(&device, &stream) {
        assert!(is_injected(
            &refused.expect_err("conversions need pinned memory")
        ));
    }
    assert!(trap.disarm() > 0);
    let stray = device.take_stray_errors();
    assert!(
        !stray.is_empty() && stray.iter().all(is_injected),
        "no error is lost"
    );
    assert_eq!(device.stats().pinned_bytes, 0);

    // Once it can pin again, everything works.
    for converted in convert(&device, &stream) {
        converted.unwrap();
    }
    all_copies_work(&device, &stream);
    assert!(device.stats().express_bytes > 0);
    stream.synchronize().unwrap();
    pinlane_testing::assert_empty(&device);
    assert_eq!(device.take_stray_errors(), []);
    drop((stream, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn chunks_that_cannot_be_registered_are_allocated() {
    let sim = pinlane_testing::sim();
    let (device, trap) = Trap::under(&sim);
    let mut config = device.express_config();
    config.chunk_bytes = 2 << 20; // large enough to be mapped and registered
    config.ring_chunks = 2;
    device.set_express_config(config).unwrap();
    let stream = device.stream().unwrap();
    trap.refuse_all(Call::HostRegister);
    all_copies_work(&device, &stream);
    assert!(device.stats().express_bytes >= 2 << 20);
    trap.disarm();
    stream.synchronize().unwrap();
    pinlane_testing::assert_empty(&device);
    drop((stream, device));
    pinlane_testing::assert_clean(&sim);
}
