//! Thousands of pieces in few copies, with the same result as one by one.

use std::ops::Range;

use pinlane::{Device, DeviceBuf};
use pinlane_sim::SpanKind;

use pinlane_testing::{
    CHUNK_BYTES, KIB, SETUPS, SplitMix64, assert_same, copies, pattern, set_up, small,
};

/// Ranges of a buffer of `len` bytes, in order, with and without gaps between them.
fn ranges(random: &mut SplitMix64, len: usize, sizes: &[usize]) -> Vec<Range<usize>> {
    let (mut ranges, mut at) = (Vec::new(), 0);
    loop {
        let gap = [0, 0, 1, 3, 16, 100][random.index(6)];
        let bound = sizes[random.index(sizes.len())];
        let start = at + gap;
        let end = start + random.index(bound + 1);
        if end > len {
            return ranges;
        }
        ranges.push(start..end);
        at = end;
    }
}

fn shuffle<T>(random: &mut SplitMix64, items: &mut [T]) {
    for at in (1..items.len()).rev() {
        items.swap(at, random.index(at + 1));
    }
}

/// The given ranges of a buffer, which must be in order and not overlap.
fn places<'a>(
    buffer: &'a mut DeviceBuf<u8>,
    ranges: &[Range<usize>],
) -> Vec<pinlane::DeviceSliceMut<'a, u8>> {
    let (mut rest, mut at, mut places) = (buffer.whole_mut(), 0, Vec::new());
    for range in ranges {
        let (_, tail) = rest.split_at(range.start - at);
        let (place, tail) = tail.split_at(range.len());
        places.push(place);
        (rest, at) = (tail, range.end);
    }
    places
}

/// Copies pieces of two buffers up and down in one call each. Returns the number of pieces.
fn compare(device: &Device, seed: u64, len: usize, sizes: &[usize]) -> usize {
    let stream = device.stream().unwrap();
    let mut random = SplitMix64::new(seed);
    let source = pattern(len + 1000, seed);
    let mut buffers = [
        device.alloc::<u8>(len).unwrap(),
        device.alloc::<u8>(len).unwrap(),
    ];
    let mut mirrors = [pattern(len, 1), pattern(len, 2)];
    for (buffer, mirror) in buffers.iter_mut().zip(&mirrors) {
        stream.driver_copy_to_device(mirror, buffer).unwrap();
    }
    let pieces = [(); 2].map(|()| ranges(&mut random, len, sizes));

    let mut up = Vec::new();
    for ((buffer, mirror), ranges) in buffers.iter_mut().zip(&mut mirrors).zip(&pieces) {
        for (place, range) in places(buffer, ranges).into_iter().zip(ranges) {
            // From any place, some of them twice.
            let from = random.index(1000) / 2 * 2;
            let piece = &source[from..from + range.len()];
            mirror[range.clone()].copy_from_slice(piece);
            up.push((piece, place));
        }
    }
    let count = up.len();
    if seed % 2 == 1 {
        shuffle(&mut random, &mut up);
    }
    stream.upload_many(up).unwrap();
    for (buffer, mirror) in buffers.iter().zip(&mirrors) {
        let mut found = vec![0; len];
        stream.driver_copy_to_host(buffer, &mut found).unwrap();
        assert_same(&found, mirror, &format!("uploaded, seed {seed}"));
    }

    // Down from overlapping ranges, in any order, between margins that must not change.
    let mut down: Vec<(usize, Range<usize>)> = Vec::new();
    for (buffer, ranges) in pieces.iter().enumerate() {
        for range in ranges {
            let wider = range.start / 2..(range.end + random.index(50)).min(len);
            down.push((
                buffer,
                [range.clone(), wider][random.index(20) / 19].clone(),
            ));
        }
    }
    shuffle(&mut random, &mut down);
    let mut targets: Vec<Vec<u8>> = down
        .iter()
        .map(|(_, range)| vec![0x11; range.len() + 2])
        .collect();
    let halves = targets.iter_mut().map(|target| {
        let end = target.len() - 1;
        &mut target[1..end]
    });
    let sources = down
        .iter()
        .map(|(at, range)| buffers[*at].range(range.clone()));
    stream.download_many(sources.zip(halves)).unwrap();
    for ((at, range), target) in down.into_iter().zip(&targets) {
        let mut expected = vec![0x11];
        expected.extend_from_slice(&mirrors[at][range]);
        expected.push(0x11);
        assert_same(target, &expected, &format!("downloaded, seed {seed}"));
    }
    stream.synchronize().unwrap();
    count
}

#[test]
fn pieces_of_mixed_sizes_with_every_setup() {
    let mut most = 0;
    for (seed, (lanes, ring_chunks)) in (0..).zip(SETUPS) {
        let (sim, device, stream) = small(lanes, ring_chunks);
        let sizes = [1, 7, 100, 3000, 100_000];
        most = most.max(compare(&device, seed, 400 * KIB, &sizes));
        most = most.max(compare(&device, seed + 100, 24 * KIB, &[0, 1, 2, 60]));
        pinlane_testing::assert_empty(&device);
        drop((stream, device));
        pinlane_testing::assert_clean(&sim);
    }
    assert!(most > 1500, "{most} pieces at most");
}

#[test]
fn more_pieces_than_fit_one_chunk() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    for lanes in [1, 4] {
        set_up(&device, lanes, 3);
        let mut config = device.express_config();
        config.chunk_bytes = 1 << 20;
        device.set_express_config(config).unwrap();
        let count = compare(&device, lanes as u64, 300 * KIB, &[0, 1, 2, 60]);
        assert!(count > 2 * 8192, "{count} pieces");
    }
    pinlane_testing::assert_empty(&device);
    drop(device);
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn more_pieces_than_fit_a_small_chunk() {
    let (sim, device, stream) = small(1, 2);
    let count = compare(&device, 1, 120 * KIB, &[0, 1, 2, 60]);
    assert!(count > 3 * CHUNK_BYTES / 64, "{count} pieces");
    drop((stream, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn one_source_for_many_places_and_one_place_for_many_targets() {
    let (sim, device, stream) = small(2, 2);
    let source = pattern(1000, 1);
    let mut on_device = device.alloc::<u8>(100 * 1000).unwrap();
    let places = on_device.whole_mut().chunks(1000);
    stream
        .upload_many(places.map(|place| (&source[..], place)))
        .unwrap();
    let back = stream.copy_to_vec(&on_device).unwrap();
    assert_same(&back, &source.repeat(100), "one source");
    let mut targets = vec![vec![0; 1000]; 100];
    let place = on_device.range(500..1500);
    stream
        .download_many(targets.iter_mut().map(|target| (place, &mut target[..])))
        .unwrap();
    let expected = [&source[500..], &source[..500]].concat();
    for target in &targets {
        assert_same(target, &expected, "one place");
    }
    drop((stream, on_device, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn many_small_pieces_need_few_copies() {
    let (sim, device, stream) = small(1, 3);
    let source = pattern(1000 * 32, 1);
    let mut on_device = device.alloc::<u8>(1000 * 64).unwrap();
    let places = on_device
        .whole_mut()
        .chunks(64)
        .map(|place| place.range(..32));
    stream.upload_many(source.chunks(32).zip(places)).unwrap();
    let mut back = vec![0; source.len()];
    let sources = (0..1000).map(|at| on_device.range(64 * at..64 * at + 32));
    stream
        .download_many(sources.zip(back.chunks_mut(32)))
        .unwrap();
    assert_same(&back, &source, "scattered and gathered");
    let (up, down) = (
        copies(&sim, SpanKind::HostToDevice),
        copies(&sim, SpanKind::DeviceToHost),
    );
    assert!(
        up.len() <= 6 && down.len() <= 3,
        "{} up, {} down",
        up.len(),
        down.len()
    );
}

#[test]
fn long_pieces_and_neighbours_need_no_kernel() {
    let (sim, device, stream) = small(1, 3);
    let source = pattern(CHUNK_BYTES / 2, 1);
    let mut on_device = device.alloc::<u8>(source.len()).unwrap();
    let places = on_device.whole_mut().chunks(100);
    stream.upload_many(source.chunks(100).zip(places)).unwrap();
    assert_same(
        &stream.copy_to_vec(&on_device).unwrap(),
        &source,
        "neighbours",
    );
    let kernels = sim.timeline().into_iter();
    let kernels = kernels.filter(|span| matches!(span.kind, SpanKind::Kernel(_)));
    assert_eq!(kernels.count(), 0);
}

#[test]
fn pieces_of_other_types() {
    let (sim, device, stream) = small(2, 2);
    let rows: Vec<Vec<f64>> = (0..700)
        .map(|row| vec![f64::from(row); row as usize % 9])
        .collect();
    let mut on_device = device.alloc::<f64>(700 * 9).unwrap();
    stream.fill_bytes(&mut on_device, 0).unwrap();
    let places = on_device.whole_mut().chunks(9);
    let pieces = rows
        .iter()
        .zip(places)
        .map(|(row, place)| (&row[..], place.range(..row.len())));
    stream.upload_many(pieces).unwrap();
    let mut expected = vec![0.0; 700 * 9];
    for (row, place) in rows.iter().zip(expected.chunks_mut(9)) {
        place[..row.len()].copy_from_slice(row);
    }
    assert_same(&stream.copy_to_vec(&on_device).unwrap(), &expected, "rows");
    drop((stream, on_device, device));
    pinlane_testing::assert_clean(&sim);
}
