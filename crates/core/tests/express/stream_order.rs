//! Copies are ordered with all other work, on their own stream and on others.

use pinlane::Builtin;

use pinlane_testing::{CHUNK_BYTES, assert_same, set_up, small, words};

/// More than a ring of 3 chunks, and no whole number of chunks.
const WORDS: usize = 5 * CHUNK_BYTES / 4 + 99;

fn plus(values: &[u32], more: u32) -> Vec<u32> {
    values
        .iter()
        .map(|value| value.wrapping_add(more))
        .collect()
}

#[test]
fn kernels_between_copies_see_and_change_the_right_values() {
    for seed in 0..12 {
        let sim = pinlane_testing::seeded(seed);
        let device = pinlane_testing::open(&sim);
        set_up(&device, 1 + seed as usize % 4, 1 + seed as usize % 3);
        let streams = [
            device.stream().unwrap(),
            device.stream().unwrap(),
            device.stream().unwrap(),
        ];
        let kernels = Builtin::load(&device).unwrap();
        let mut on_device = device.alloc::<u32>(WORDS).unwrap();
        for round in 0..3 {
            let what = format!("seed {seed}, round {round}");
            let one = &streams[round % 3];
            let two = &streams[(round + 1) % 3];
            let three = &streams[(round + 2) % 3];
            let first = words(WORDS, seed * 10 + round as u64);
            one.copy_to_device(&first, &mut on_device).unwrap();
            kernels.add(one, 7, &mut on_device).unwrap();
            kernels.add(two, 1000, &mut on_device).unwrap();
            let mut expected = plus(&first, 1007);
            // Overwrites the middle while the kernels may still run.
            let middle = words(WORDS / 2, 99);
            let range = 1000..1000 + WORDS / 2;
            three
                .copy_to_device(&middle, on_device.range_mut(range.clone()))
                .unwrap();
            expected[range].copy_from_slice(&middle);
            kernels.add(one, 3, on_device.range_mut(..50)).unwrap();
            expected.splice(..50, plus(&expected[..50], 3));
            assert_same(&two.copy_to_vec(&on_device).unwrap(), &expected, &what);
        }
        drop((streams, kernels, on_device, device));
        pinlane_testing::assert_clean(&sim);
    }
}

#[test]
fn an_upload_waits_for_readers_on_other_streams() {
    for bytes in [100, 16 << 10, CHUNK_BYTES] {
        let (sim, device, stream) = small(2, 3);
        let readers = [device.stream().unwrap(), device.stream().unwrap()];
        let (old, new) = (words(bytes / 4, 1), words(bytes / 4, 2));
        let mut on_device = device.alloc::<u32>(bytes / 4).unwrap();
        stream.copy_to_device(&old, &mut on_device).unwrap();
        stream.synchronize().unwrap();
        sim.hold();
        let reads = readers.each_ref().map(|reader| {
            let target = device.pinned::<u32>(bytes / 4).unwrap();
            reader.download(&on_device, target).unwrap()
        });
        stream.copy_to_device(&new, &mut on_device).unwrap(); // does not block
        sim.release();
        for read in reads {
            assert_same(&read.wait().unwrap(), &old, "seen by readers");
        }
        let back = stream.copy_to_vec(&on_device).unwrap();
        assert_same(&back, &new, "final contents");
        drop((stream, readers, on_device, device));
        pinlane_testing::assert_clean(&sim);
    }
}

#[test]
fn a_download_waits_for_a_writer_on_another_stream() {
    for (lanes, ring_chunks) in [(1, 1), (4, 3)] {
        let (sim, device, stream) = small(lanes, ring_chunks);
        let writer = device.stream().unwrap();
        let kernels = Builtin::load(&device).unwrap();
        let mut on_device = device.alloc::<u32>(WORDS).unwrap();
        stream
            .copy_to_device(&words(WORDS, 1), &mut on_device)
            .unwrap();
        kernels.spin(&writer, 50_000_000).unwrap();
        kernels.add(&writer, 5, &mut on_device).unwrap();
        let back = stream.copy_to_vec(&on_device).unwrap();
        assert_same(&back, &plus(&words(WORDS, 1), 5), "after the writer");
        drop((stream, writer, kernels, on_device, device));
        pinlane_testing::assert_clean(&sim);
    }
}

#[test]
fn copies_of_many_pieces_and_conversions_are_ordered_too() {
    use pinlane::U8ToF32;
    for seed in 0..8 {
        let sim = pinlane_testing::seeded(seed);
        let device = pinlane_testing::open(&sim);
        set_up(&device, 2, 1 + seed as usize % 3);
        let (one, two) = (device.stream().unwrap(), device.stream().unwrap());
        let kernels = Builtin::load(&device).unwrap();

        // Replaces every second word.
        let mut on_device = device.alloc::<u32>(2000).unwrap();
        let base = words(2000, seed);
        one.copy_to_device(&base, &mut on_device).unwrap();
        let pieces = words(1000, seed + 100);
        let places = on_device.whole_mut().chunks(2).map(|pair| pair.range(1..));
        two.upload_many(pieces.chunks(1).zip(places)).unwrap();
        kernels.add(&one, 9, &mut on_device).unwrap();
        let mut found = vec![0; 1000];
        let sources = (0..1000).map(|at| on_device.range(2 * at + 1..2 * at + 2));
        two.download_many(sources.zip(found.chunks_mut(1))).unwrap();
        assert_same(&found, &plus(&pieces, 9), &format!("seed {seed}, pieces"));
        let whole = one.copy_to_vec(&on_device).unwrap();
        let evens = |all: &[u32]| all.iter().copied().step_by(2).collect::<Vec<_>>();
        assert_same(
            &evens(&whole),
            &plus(&evens(&base), 9),
            "between the pieces",
        );

        let bytes: Vec<u8> = (0..WORDS).map(|i| i as u8).collect();
        let mut floats = device.alloc::<f32>(WORDS).unwrap();
        one.fill_bytes(&mut floats, 0xff).unwrap();
        let doubled = U8ToF32 {
            scale: 2.0,
            offset: 0.0,
        };
        two.upload_as(doubled, &bytes, &mut floats).unwrap();
        let mut x = device.alloc::<f32>(WORDS).unwrap();
        one.fill_bytes(&mut x, 0).unwrap();
        kernels.saxpy(&one, 1.0, &x, &mut floats).unwrap();
        let back = two.copy_to_vec(&floats).unwrap();
        let expected: Vec<f32> = bytes.iter().map(|&byte| 2.0 * f32::from(byte)).collect();
        assert_same(&back, &expected, &format!("seed {seed}, converted"));
        drop((one, two, kernels, on_device, floats, x, device));
        pinlane_testing::assert_clean(&sim);
    }
}
