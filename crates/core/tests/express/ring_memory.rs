//! How much memory the express lane pins, and that it frees all of it.

use half::bf16;
use pinlane::{Device, F32ToBf16, Stream};
use pinlane_driver::Call;

use pinlane_testing::must_return;
use pinlane_testing::{CHUNK_BYTES, Trap, assert_same, pattern, set_up, small};

/// A copy of each kind. Together they use the ring, the small slots and the kernels.
fn copy_all_kinds(device: &Device, stream: &Stream) {
    let source = pattern(5 * CHUNK_BYTES, 1);
    let mut on_device = device.alloc::<u8>(source.len()).unwrap();
    stream.copy_to_device(&source, &mut on_device).unwrap();
    stream
        .copy_to_device(&[1; 9], on_device.range_mut(..9))
        .unwrap();
    let places = on_device
        .whole_mut()
        .chunks(30)
        .map(|place| place.range(1..4));
    stream
        .upload_many(source.chunks_exact(3).zip(places).take(500))
        .unwrap();
    let mut narrow = vec![bf16::ZERO; CHUNK_BYTES];
    let floats = device.alloc::<f32>(CHUNK_BYTES).unwrap();
    stream.download_as(F32ToBf16, &floats, &mut narrow).unwrap();
}

#[test]
fn trim_frees_everything() {
    let (sim, device, stream) = small(2, 4);
    copy_all_kinds(&device, &stream);
    stream.synchronize().unwrap();
    let stats = device.stats();
    assert!(stats.express_bytes as usize > CHUNK_BYTES, "{stats:?}");
    assert_eq!(stats.express_bytes, stats.pinned_bytes);
    assert!(stats.device_bytes > 0, "scratch memory");
    assert_eq!(device.trim() as u64, stats.express_bytes);
    assert_eq!(device.stats(), pinlane::DeviceStats::default());
    assert_eq!(device.trim(), 0);
    copy_all_kinds(&device, &stream); // it can be used again
    stream.synchronize().unwrap();
    pinlane_testing::assert_empty(&device);
    drop((stream, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn trim_spares_slots_in_flight() {
    let (sim, device, stream) = small(1, 4);
    let source = pattern(2 * CHUNK_BYTES, 1);
    let mut on_device = device.alloc::<u8>(source.len()).unwrap();
    sim.hold();
    stream.copy_to_device(&source, &mut on_device).unwrap();
    stream
        .copy_to_device(&[9; 100], on_device.range_mut(..100))
        .unwrap();
    let before = device.stats();
    assert_eq!(device.trim(), 0);
    assert_eq!(device.stats(), before);
    sim.release();
    stream.synchronize().unwrap();
    assert_eq!(device.trim() as u64, before.express_bytes);
    let back = stream.copy_to_vec(&on_device).unwrap();
    assert_same(&back[100..], &source[100..], "trimmed in flight");
    assert_same(&back[..100], &[9; 100], "trimmed in flight");
    drop((stream, on_device, device));
    pinlane_testing::assert_clean(&sim);
}

/// Launches the scatter kernel.
fn scatter(device: &Device, stream: &Stream) {
    let source = pattern(1000, 1);
    let mut on_device = device.alloc::<u8>(2000).unwrap();
    let places = on_device
        .whole_mut()
        .chunks(20)
        .map(|place| place.range(..10));
    stream.upload_many(source.chunks(10).zip(places)).unwrap();
}

#[test]
fn kernels_are_not_unloaded_while_they_may_run() {
    let sim = pinlane_testing::sim();
    let (device, trap) = Trap::under(&sim);
    set_up(&device, 1, 1);
    let stream = device.stream().unwrap();
    // Twice: the second time the slot has scratch memory from the first.
    for round in 0..2 {
        sim.hold();
        scatter(&device, &stream);
        trap.watch();
        device.trim();
        let unloaded = trap.calls().contains(&Call::ModuleUnload);
        assert!(!unloaded, "unloaded in flight, round {round}");
        trap.disarm();
        sim.release();
        stream.synchronize().unwrap();
    }
    pinlane_testing::assert_empty(&device);
    drop((stream, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn the_default_config_pins_less_than_128_mib() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let stream = device.stream().unwrap();
    let source = pattern(80 << 20, 1);
    let mut on_device = device.alloc::<u8>(source.len()).unwrap();
    stream.copy_to_device(&source, &mut on_device).unwrap();
    let back = stream.copy_to_vec(&on_device).unwrap();
    assert_same(&back, &source, "80 MiB");
    for chunk in source.chunks(1000).take(200) {
        stream
            .copy_to_device(chunk, on_device.range_mut(..1000))
            .unwrap();
    }
    let pinned_bytes = device.stats().express_bytes;
    assert!(
        (1 << 20..128 << 20).contains(&pinned_bytes),
        "{pinned_bytes}"
    );
    stream.synchronize().unwrap();
    drop((stream, on_device));
    pinlane_testing::assert_empty(&device);
    drop(device);
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn a_ring_never_exceeds_its_limit() {
    for ring_chunks in [1, 2, 3, 5] {
        let (_sim, device, stream) = small(2, ring_chunks);
        let source = pattern(20 * CHUNK_BYTES, 1);
        let mut targets = [(); 3].map(|()| device.alloc::<u8>(source.len()).unwrap());
        std::thread::scope(|scope| {
            for target in &mut targets {
                scope.spawn(|| stream.copy_to_device(&source, target).unwrap());
            }
        });
        let slots = device.stats().express_bytes as usize / CHUNK_BYTES;
        assert!(
            (1..=ring_chunks).contains(&slots),
            "{slots} slots of {ring_chunks}"
        );
        stream.synchronize().unwrap();
    }
}

#[test]
fn the_config_may_change_during_copies() {
    must_return(|| {
        let (sim, device, _) = small(2, 2);
        std::thread::scope(|scope| {
            let copying: Vec<_> = (0..3u64)
                .map(|thread| {
                    let device = &device;
                    scope.spawn(move || {
                        let stream = device.stream().unwrap();
                        let mut on_device = device.alloc::<u8>(4 * CHUNK_BYTES).unwrap();
                        for round in 0..30 {
                            let source = pattern(4 * CHUNK_BYTES, thread * 100 + round);
                            stream.copy_to_device(&source, &mut on_device).unwrap();
                            let back = stream.copy_to_vec(&on_device).unwrap();
                            assert_same(&back, &source, &format!("round {round}"));
                        }
                    })
                })
                .collect();
            let mut round = 0;
            while !copying.iter().all(|copy| copy.is_finished()) {
                round += 1;
                set_up(&device, 1 + round % 4, 1 + round % 3);
                if round % 7 == 0 {
                    device.trim();
                }
                std::thread::yield_now();
            }
        });
        device.synchronize().unwrap();
        pinlane_testing::assert_empty(&device);
        drop(device);
        pinlane_testing::assert_clean(&sim);
    });
}
