//! Every byte arrives and no other byte changes, for sizes around every boundary and odd alignments.

use pinlane::{Device, Stream};
use pinlane_sim::SpanKind;

use pinlane_testing::{
    CHUNK_BYTES, SETUPS, SMALL_SLOT_BYTES, SplitMix64, THRESHOLD_BYTES, assert_same, copies,
    pattern, small, words,
};

/// Bytes around a range, on the host and on the device.
const MARGIN: u8 = 0xee;

/// Sizes at, just below and just above every boundary of a copy.
fn sizes(ring_chunks: usize) -> Vec<usize> {
    let ring_bytes = ring_chunks * CHUNK_BYTES;
    let borders = [
        4096,
        SMALL_SLOT_BYTES,
        THRESHOLD_BYTES,
        CHUNK_BYTES,
        CHUNK_BYTES + THRESHOLD_BYTES,
        2 * CHUNK_BYTES,
        ring_bytes,
        2 * ring_bytes,
        5 * ring_bytes + 4096,
    ];
    let mut sizes = vec![1, 2, 3, 7, 8, 100];
    sizes.extend(borders.iter().flat_map(|&at| [at - 1, at, at + 1]));
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Copies to a range of a buffer and back, and checks the margins on both sides.
fn copy_and_check(device: &Device, stream: &Stream, bytes: usize, host_at: usize, at: usize) {
    let what = format!("{bytes} bytes from {host_at} to {at}");
    let len = at + bytes + 300;
    let mut on_device = device.alloc::<u8>(len).unwrap();
    stream.fill_bytes(&mut on_device, MARGIN).unwrap();

    let source = pattern(host_at + bytes, (bytes * 31 + at) as u64);
    let kept = source.clone();
    let range = at..at + bytes;
    stream
        .copy_to_device(&source[host_at..], on_device.range_mut(range.clone()))
        .unwrap();
    assert_same(&source, &kept, &format!("{what}: the source"));
    let mut expected = vec![MARGIN; len];
    expected[range.clone()].copy_from_slice(&source[host_at..]);
    let mut found = vec![0; len];
    stream.driver_copy_to_host(&on_device, &mut found).unwrap();
    assert_same(&found, &expected, &format!("{what}: on the device"));

    let mut back = vec![MARGIN; host_at + bytes + 100];
    stream
        .copy_to_host(on_device.range(range), &mut back[host_at..host_at + bytes])
        .unwrap();
    let mut expected = vec![MARGIN; back.len()];
    expected[host_at..host_at + bytes].copy_from_slice(&source[host_at..]);
    assert_same(&back, &expected, &format!("{what}: on the host"));
    stream.driver_copy_to_host(&on_device, &mut found).unwrap();
    assert_same(
        &found[at..at + bytes],
        &source[host_at..],
        &format!("{what}: unchanged"),
    );
}

#[test]
fn sizes_around_every_boundary_with_every_setup() {
    for (lanes, ring_chunks) in SETUPS {
        let (sim, device, stream) = small(lanes, ring_chunks);
        for (number, bytes) in sizes(ring_chunks).into_iter().enumerate() {
            let (host_at, at) = (
                [0, 1, 3, 8, 15][number % 5],
                [0, 5, 16, 1, 255, 4096][number % 6],
            );
            copy_and_check(&device, &stream, bytes, host_at, at);
        }
        stream.synchronize().unwrap();
        pinlane_testing::assert_empty(&device);
        assert_eq!(device.take_stray_errors(), []);
        drop((stream, device));
        pinlane_testing::assert_clean(&sim);
    }
}

#[test]
fn every_alignment_on_both_sides() {
    let (sim, device, stream) = small(2, 2);
    for shift in 0..16 {
        let bytes = 2 * CHUNK_BYTES + 3 * shift + 1;
        copy_and_check(&device, &stream, bytes, shift, (shift * 7) % 16);
    }
    drop((stream, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn random_ranges_of_one_buffer() {
    const LEN: usize = 10 * CHUNK_BYTES + 77;
    let (sim, device, stream) = small(4, 3);
    let mut random = SplitMix64::new(1);
    let mut on_device = device.alloc::<u8>(LEN).unwrap();
    let mut mirror = pattern(LEN, 2);
    stream.copy_to_device(&mirror, &mut on_device).unwrap();
    for round in 0..200 {
        let start = random.index(LEN);
        // Many small ones, and some that exceed the ring.
        let bound = [200, 20_000, LEN][random.index(3)].min(LEN - start);
        let range = start..start + 1 + random.index(bound);
        if random.index(2) == 0 {
            let source = pattern(range.len(), 100 + round);
            let target = on_device.range_mut(range.clone());
            stream.copy_to_device(&source, target).unwrap();
            mirror[range].copy_from_slice(&source);
        } else {
            let mut found = vec![0; range.len()];
            stream
                .copy_to_host(on_device.range(range.clone()), &mut found)
                .unwrap();
            assert_same(&found, &mirror[range], &format!("round {round}"));
        }
    }
    let found = stream.copy_to_vec(&on_device).unwrap();
    assert_same(&found, &mirror, "final contents");
    drop((stream, on_device, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn elements_of_any_size() {
    let (sim, device, stream) = small(2, 3);
    // No chunk is a multiple of 3 bytes, so chunks split elements.
    let triples: Vec<[u8; 3]> = pattern(3 * 70_000, 5).as_chunks::<3>().0.to_vec();
    let mut on_device = device.alloc::<[u8; 3]>(triples.len()).unwrap();
    stream.copy_to_device(&triples, &mut on_device).unwrap();
    assert_same(
        &stream.copy_to_vec(&on_device).unwrap(),
        &triples,
        "triples",
    );

    let wide: Vec<u128> = (0..20_000).map(|i| u128::MAX / (i + 1)).collect();
    let mut on_device_wide = device.alloc::<u128>(wide.len()).unwrap();
    stream.copy_to_device(&wide, &mut on_device_wide).unwrap();
    assert_same(&stream.copy_to_vec(&on_device_wide).unwrap(), &wide, "wide");
    drop((stream, on_device, on_device_wide, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn large_and_small_fresh_memory() {
    let (sim, device, stream) = small(2, 3);
    // Fresh memory is treated specially from 8 MiB on.
    for len in [0, 1, 5000, 100_000, (8 << 20) / 4 - 1, (8 << 20) / 4 + 33] {
        let values = words(len, len as u64);
        let mut on_device = device.alloc::<u32>(len).unwrap();
        stream.copy_to_device(&values, &mut on_device).unwrap();
        let back = stream.copy_to_vec(&on_device).unwrap();
        assert_same(&back, &values, &format!("{len} words"));
    }
    drop((stream, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn large_copies_are_chunked_unless_they_are_page_locked() {
    let (sim, device, stream) = small(1, 2);
    let bytes = 5 * CHUNK_BYTES;
    let mut on_device = device.alloc::<u8>(bytes).unwrap();
    let copied = |kind| {
        let copies = copies(&sim, kind);
        let largest = copies.iter().copied().max().unwrap_or(0);
        (copies.iter().sum::<usize>(), largest)
    };
    stream
        .copy_to_device(&pattern(bytes, 1), &mut on_device)
        .unwrap();
    stream.synchronize().unwrap();
    assert_eq!(copied(SpanKind::HostToDevice), (bytes, CHUNK_BYTES));
    let mut back = vec![0; bytes];
    stream.copy_to_host(&on_device, &mut back).unwrap();
    assert_eq!(copied(SpanKind::DeviceToHost), (bytes, CHUNK_BYTES));

    // The driver can copy pinned memory directly.
    let mut pinned = device.pinned_from(&back).unwrap();
    stream.copy_to_device(&pinned, &mut on_device).unwrap();
    stream.copy_to_host(&on_device, &mut pinned).unwrap();
    assert_eq!(copied(SpanKind::HostToDevice), (2 * bytes, bytes));
    assert_eq!(copied(SpanKind::DeviceToHost), (2 * bytes, bytes));
    assert_same(&pinned, &back, "pinned");
}
