//! The normalising kernels.

use pinlane_driver::{DevicePtr, KernelArg};
use pinlane_kernels::{MAX_CHANNELS, MemoryFault, find};

use crate::bounded_memory::{Flat, run};

/// More than a twin holds at a time.
const COUNT: usize = 40_001;
const KERNELS: [(&str, usize); 2] = [
    ("pinlane_normalize_u8_f32", 4),
    ("pinlane_normalize_u8_bf16", 2),
];

/// Scale and offset of a channel: rounding shows in the last bits.
fn factors(channel: usize) -> [f32; 2] {
    [1.0 / (58.0 + channel as f32), -2.1 + 0.3 * channel as f32]
}

fn byte(index: usize) -> u8 {
    (index * 7 / 3) as u8
}

/// What element `index` becomes, as the bytes of an element of the target.
fn expected(index: usize, inner: usize, channels: usize, item_bytes: usize) -> Vec<u8> {
    let [scale, offset] = factors(index / inner % channels);
    let number = f32::from(byte(index)) * scale + offset;
    match item_bytes {
        4 => number.to_le_bytes().to_vec(),
        _ => half::bf16::from_f32_const(number).to_le_bytes().to_vec(),
    }
}

/// Table, source and target one after the other, with four bytes behind to stay as they are.
fn go(kernel: (&str, usize), n: usize, inner: u64, channels: u32) -> Result<Flat, MemoryFault> {
    let (name, item_bytes) = kernel;
    let source_at = 8 * channels as usize;
    let target_at = (source_at + n).next_multiple_of(4);
    let table = (0..channels as usize).flat_map(factors);
    let mut memory = Flat::of_words(table.map(f32::to_le_bytes));
    memory.bytes.extend((0..n).map(byte));
    memory.bytes.resize(target_at + item_bytes * n + 4, 0xa5);
    let args = [
        KernelArg::U64(n as u64),
        KernelArg::U64(inner),
        KernelArg::U32(channels),
        memory.at(0),
        memory.at(source_at),
        memory.at(target_at),
    ];
    run(name, &mut memory, &args)?;
    memory.bytes.drain(..target_at);
    Ok(memory)
}

#[test]
fn every_channel_has_its_own_factors() {
    for kernel in KERNELS {
        // Planes longer than a twin holds, planes that end anywhere, pixels, and a single channel.
        for (inner, channels) in [
            (20_000, 3),
            (17, 4),
            (1, 3),
            (1, 1),
            (5, 16),
            (usize::MAX, 2),
        ] {
            let memory = go(kernel, COUNT, inner as u64, channels).expect("in bounds");
            let (found, guard) = memory.bytes.split_at(kernel.1 * COUNT);
            let wrong = found
                .chunks(kernel.1)
                .enumerate()
                .find(|(i, found)| expected(*i, inner, channels as usize, kernel.1) != *found);
            assert_eq!(wrong, None, "{} {inner} {channels}", kernel.0);
            assert_eq!(guard, [0xa5; 4], "{} wrote too much", kernel.0);
        }
    }
}

#[test]
fn planes_and_channels_that_cannot_be_are_no_work() {
    for kernel in KERNELS {
        for (inner, channels) in [(0, 3), (5, 0), (5, MAX_CHANNELS as u32 + 1)] {
            let memory = go(kernel, 10, inner, channels).expect("nothing is accessed");
            let untouched = memory.bytes.iter().all(|byte| *byte == 0xa5);
            assert!(untouched, "{} {inner} {channels}", kernel.0);
        }
    }
}

#[test]
fn a_table_too_short_is_a_fault() {
    let mut memory = Flat::new(vec![0; 23]);
    let args = [
        KernelArg::U64(1),
        KernelArg::U64(1),
        KernelArg::U32(3),
        memory.at(0),
        memory.at(0),
        memory.at(8),
    ];
    for (name, _) in KERNELS {
        let fault = run(name, &mut memory, &args).expect_err("out of bounds");
        assert_eq!((fault.address, fault.bytes), (memory.address(0), 24));
    }
}

#[test]
fn costs_are_the_table_and_what_is_read_and_written() {
    let null = KernelArg::Ptr(DevicePtr(0));
    let args = [
        KernelArg::U64(1000),
        KernelArg::U64(1),
        KernelArg::U32(3),
        null,
        null,
        null,
    ];
    for (name, item_bytes) in KERNELS {
        let kernel = find(name).expect("built in");
        let expected = 1000 * (1 + item_bytes as u64) + 24;
        assert_eq!((kernel.bytes_touched)(&args), expected, "{name}");
    }
}
