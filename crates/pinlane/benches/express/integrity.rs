//! Every byte arrives, the source is as it was, and others on the stream see it in order.

use pinlane::{Builtin, Result};

use crate::support::{Bench, KIB, MIB, Random, recognisable};

pub fn run(bench: &Bench) -> Result<()> {
    let room = 64 * MIB + 64;
    let source = recognisable(room, 3);
    let before = checksum(&source);
    let mut back = vec![0u8; room];
    let mut on_device = bench.device.alloc::<u8>(room)?;
    let mut checked = 0usize;
    for bytes in sizes() {
        // Odd alignments of both ends.
        let (from, to) = (bytes % 7, bytes % 13);
        round_trip(
            bench,
            &source[from..from + bytes],
            &mut on_device,
            to,
            &mut back,
        )?;
        checked += 1;
    }
    println!("{checked} sizes from 1 byte to 64 MiB + 1, odd alignments: all bytes right");

    let mut random = Random::new(4);
    for _ in 0..10_000 {
        let limit = 1 << random.below(24);
        let bytes = 1 + random.below(limit);
        let (from, to) = (random.below(room - bytes), random.below(room - bytes));
        round_trip(
            bench,
            &source[from..from + bytes],
            &mut on_device,
            to,
            &mut back,
        )?;
    }
    println!("10000 random ranges: all bytes right");
    assert_eq!(checksum(&source), before, "the source has changed");
    println!("source intact");
    in_order(bench)
}

/// Small ones all, then around everything where something changes.
fn sizes() -> impl Iterator<Item = usize> {
    let around = |bytes: usize| [bytes - 1, bytes, bytes + 1];
    let powers = (17..=26).map(|power| 1usize << power);
    let edges = [
        512 * KIB,
        1536 * KIB,
        3584 * KIB,
        7680 * KIB,
        15 * MIB,
        24 * MIB,
        33 * MIB,
    ];
    (1..=70 * KIB)
        .step_by(7)
        .chain(powers.flat_map(around))
        .chain(edges.into_iter().flat_map(around))
}

fn round_trip(
    bench: &Bench,
    source: &[u8],
    on_device: &mut pinlane::DeviceBuf<u8>,
    at: usize,
    back: &mut [u8],
) -> Result<()> {
    let (range, back) = (at..at + source.len(), &mut back[..source.len()]);
    bench
        .stream
        .copy_to_device(source, on_device.range_mut(range.clone()))?;
    back.fill(0);
    bench
        .stream
        .copy_to_host(on_device.range(range.clone()), back)?;
    assert!(
        back == source,
        "{} bytes at {at}: others came back",
        source.len()
    );
    Ok(())
}

/// Copies between kernels of the same stream, and of another.
fn in_order(bench: &Bench) -> Result<()> {
    let kernels = Builtin::load(&bench.device)?;
    let other = bench.device.stream()?;
    let items = 3 * MIB;
    let mut on_device = bench.device.alloc::<u32>(items)?;
    for round in 0..50u32 {
        let values = vec![round; items];
        kernels.spin(&bench.stream, 200_000)?;
        bench.stream.copy_to_device(&values, &mut on_device)?;
        kernels.add(&bench.stream, 1, &mut on_device)?;
        kernels.add(&other, 10, &mut on_device)?;
        let stream = if round % 2 == 0 {
            &bench.stream
        } else {
            &other
        };
        let back = stream.copy_to_vec(&on_device)?;
        assert!(
            back.iter().all(|&value| value == round + 11),
            "out of order"
        );
    }
    println!("50 rounds of upload, kernels on two streams, download: in order");
    Ok(())
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(0u64, |sum, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        sum.rotate_left(5) ^ u64::from_le_bytes(word)
    })
}
