//! An upload returns once the source may be reused, before the device is done. The simulator holds the
//! completion, so "in flight" does not depend on timing.

use half::bf16;
use pinlane::{Device, F32ToBf16, Stream, U8ToF32};

use pinlane_testing::must_return;
use pinlane_testing::{CHUNK_BYTES, SMALL_SLOT_BYTES, assert_same, pattern, small};

/// Checks what has arrived.
type Check = Box<dyn FnOnce(&Stream)>;

/// Uploads under a hold, overwrites the source and releases: the device has the old values.
fn does_not_block(
    lanes: usize,
    ring_chunks: usize,
    upload: impl Fn(&Device, &Stream) -> Check + Send + 'static,
) {
    must_return(move || {
        let (sim, device, stream) = small(lanes, ring_chunks);
        sim.hold();
        // On an idle stream the driver would do a small copy, and block.
        let mut before = device.alloc::<u8>(1).unwrap();
        stream.fill_bytes(&mut before, 0).unwrap();
        let check = upload(&device, &stream);
        assert!(!stream.is_idle().unwrap(), "completion is held");
        sim.release();
        check(&stream);
        drop((before, stream, device));
        pinlane_testing::assert_clean(&sim);
    });
}

fn plain(bytes: usize) -> impl Fn(&Device, &Stream) -> Check + Send {
    move |device, stream| {
        let old = pattern(bytes, 1);
        let mut source = old.clone();
        let mut on_device = device.alloc::<u8>(bytes).unwrap();
        stream.copy_to_device(&source, &mut on_device).unwrap();
        source.fill(0);
        Box::new(move |stream| assert_same(&stream.copy_to_vec(&on_device).unwrap(), &old, "plain"))
    }
}

#[test]
fn small_uploads_do_not_block() {
    for bytes in [1, 4096, SMALL_SLOT_BYTES] {
        does_not_block(1, 1, plain(bytes));
    }
}

#[test]
fn as_many_small_uploads_as_small_slots_do_not_block() {
    does_not_block(1, 1, |device, stream| {
        let mut on_device = device.alloc::<u8>(64 * 1000).unwrap();
        let mut source = [0; 1000];
        for (number, place) in (0u8..).zip(on_device.whole_mut().chunks(1000)) {
            source.fill(number);
            stream.copy_to_device(&source, place).unwrap();
        }
        Box::new(move |stream| {
            let back = stream.copy_to_vec(&on_device).unwrap();
            let expected: Vec<u8> = (0..64).flat_map(|number| [number; 1000]).collect();
            assert_same(&back, &expected, "64 uploads");
        })
    });
}

#[test]
fn uploads_that_fit_their_share_of_the_ring_do_not_block() {
    for (lanes, ring_chunks, chunks) in [(1, 1, 1), (2, 3, 2), (4, 4, 2), (1, 8, 4)] {
        does_not_block(lanes, ring_chunks, plain(chunks * CHUNK_BYTES));
    }
}

#[test]
fn pieces_and_conversions_do_not_block() {
    does_not_block(2, 2, |device, stream| {
        let old = pattern(3000, 1);
        let mut source = old.clone();
        let mut on_device = device.alloc::<u8>(6000).unwrap();
        let places = on_device
            .whole_mut()
            .chunks(20)
            .map(|place| place.range(5..15));
        stream.upload_many(source.chunks(10).zip(places)).unwrap();
        source.fill(0);
        Box::new(move |stream| {
            let back = stream.copy_to_vec(&on_device).unwrap();
            let found: Vec<u8> = back
                .chunks(20)
                .flat_map(|place| &place[5..15])
                .copied()
                .collect();
            assert_same(&found, &old, "pieces");
        })
    });
    does_not_block(2, 2, |device, stream| {
        let mut source: Vec<f32> = (0..20_000).map(|i| i as f32).collect();
        let expected: Vec<bf16> = source.iter().copied().map(bf16::from_f32).collect();
        let mut on_device = device.alloc::<bf16>(source.len()).unwrap();
        stream
            .upload_as(F32ToBf16, &source, &mut on_device)
            .unwrap();
        source.fill(0.0);
        Box::new(move |stream| {
            assert_same(&stream.copy_to_vec(&on_device).unwrap(), &expected, "bf16");
        })
    });
    does_not_block(2, 2, |device, stream| {
        let mut source = pattern(50_000, 3);
        let expected: Vec<f32> = source.iter().copied().map(f32::from).collect();
        let mut on_device = device.alloc::<f32>(source.len()).unwrap();
        let as_it_is = U8ToF32 {
            scale: 1.0,
            offset: 0.0,
        };
        stream.upload_as(as_it_is, &source, &mut on_device).unwrap();
        source.fill(0);
        Box::new(move |stream| {
            assert_same(&stream.copy_to_vec(&on_device).unwrap(), &expected, "f32");
        })
    });
}

#[test]
fn an_upload_larger_than_the_ring_refills_no_slot_too_early() {
    for (lanes, ring_chunks) in [(1, 1), (1, 3), (4, 2), (4, 3)] {
        let (sim, device, stream) = small(lanes, ring_chunks);
        let source = pattern(10 * CHUNK_BYTES + 5, 1);
        let mut on_device = device.alloc::<u8>(source.len()).unwrap();
        sim.hold();
        let back = must_return({
            let (sim, stream, source) = (sim.clone(), stream.clone(), source.clone());
            move || {
                std::thread::scope(|scope| {
                    let copy = scope.spawn(|| {
                        stream.copy_to_device(&source, &mut on_device).unwrap();
                    });
                    // At most the first chunks are submitted, however far the lanes have come.
                    sim.release();
                    copy.join().unwrap();
                });
                stream.copy_to_vec(&on_device).unwrap()
            }
        });
        assert_same(&back, &source, "larger than the ring");
        drop((stream, device));
        pinlane_testing::assert_clean(&sim);
    }
}

#[test]
fn buffers_and_devices_may_be_dropped_during_an_upload() {
    let (sim, device, stream) = small(2, 3);
    sim.hold();
    let mut on_device = device.alloc::<u8>(2 * CHUNK_BYTES).unwrap();
    stream
        .copy_to_device(&pattern(2 * CHUNK_BYTES, 1), &mut on_device)
        .unwrap();
    stream
        .copy_to_device(&[1; 100], on_device.range_mut(..100))
        .unwrap();
    drop(on_device);
    sim.release();
    drop((stream, device));
    pinlane_testing::assert_clean(&sim);
}
