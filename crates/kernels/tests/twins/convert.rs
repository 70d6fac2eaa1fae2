//! The converting kernels. Single numbers are tested with the converters.

use pinlane_driver::{DevicePtr, KernelArg};
use pinlane_kernels::find;

use crate::bounded_memory::{Flat, run};

/// More than a twin holds at a time.
const COUNT: usize = 40_001;

/// Bits of all exponents and signs, NaNs and infinities among them.
fn number(index: usize) -> f32 {
    f32::from_bits((index as u32).wrapping_mul(0x9e37_79b9))
}

/// Runs a twin over `COUNT` numbers and a guard on each side of the target.
fn narrowed(name: &str) -> Vec<u16> {
    let source: Vec<u8> = (0..COUNT).flat_map(|i| number(i).to_le_bytes()).collect();
    let target_at = source.len();
    let mut memory = Flat::new([source.clone(), vec![0xa5; 2 * COUNT + 4]].concat());
    let args = [
        KernelArg::U64(COUNT as u64),
        memory.at(0),
        memory.at(target_at + 2),
    ];
    run(name, &mut memory, &args).expect("in bounds");
    assert_eq!(memory.bytes[..target_at], source, "the source has changed");
    let (halves, _) = memory.bytes[target_at..].as_chunks::<2>();
    let halves: Vec<u16> = halves
        .iter()
        .map(|half| u16::from_le_bytes(*half))
        .collect();
    assert_eq!([halves[0], halves[COUNT + 1]], [0xa5a5; 2], "the guards");
    halves[1..=COUNT].to_vec()
}

#[test]
fn f32_becomes_the_nearest_bf16() {
    let found = narrowed("pinlane_f32_to_bf16");
    for (i, found) in found.into_iter().enumerate() {
        let expected = half::bf16::from_f32_const(number(i)).to_bits();
        assert_eq!(found, expected, "{:#010x}", number(i).to_bits());
    }
}

#[test]
fn f32_becomes_the_nearest_f16() {
    let found = narrowed("pinlane_f32_to_f16");
    for (i, found) in found.into_iter().enumerate() {
        let expected = half::f16::from_f32_const(number(i)).to_bits();
        assert_eq!(found, expected, "{:#010x}", number(i).to_bits());
    }
}

#[test]
fn u8_is_scaled_and_offset() {
    let source: Vec<u8> = (0..COUNT).map(|i| (i * 7 / 3) as u8).collect();
    let target_at = source.len().next_multiple_of(4);
    let mut memory = Flat::new(source.clone());
    memory.bytes.resize(target_at + 4 * COUNT + 4, 0xa5);
    let (scale, offset) = (1.0 / 255.0, -0.485);
    let args = [
        KernelArg::U64(COUNT as u64),
        KernelArg::F32(scale),
        KernelArg::F32(offset),
        memory.at(0),
        memory.at(target_at),
    ];
    run("pinlane_u8_to_f32", &mut memory, &args).expect("in bounds");
    assert_eq!(memory.bytes[..COUNT], source, "the source has changed");
    let expected: Vec<u8> = source
        .iter()
        .flat_map(|x| (f32::from(*x) * scale + offset).to_le_bytes())
        .collect();
    assert_eq!(memory.bytes[target_at..target_at + 4 * COUNT], expected);
    assert_eq!(memory.bytes[target_at + 4 * COUNT..], [0xa5; 4]);
}

#[test]
fn a_target_too_short_is_a_fault() {
    let mut memory = Flat::new(vec![0; 46]);
    // Eight numbers, and room for seven results.
    let args = [KernelArg::U64(8), memory.at(0), memory.at(32)];
    let fault = run("pinlane_f32_to_bf16", &mut memory, &args).expect_err("out of bounds");
    assert_eq!((fault.address, fault.bytes), (memory.address(32), 16));
}

#[test]
fn costs_are_what_is_read_and_written() {
    let null = KernelArg::Ptr(DevicePtr(0));
    let n = KernelArg::U64(1000);
    for name in ["pinlane_f32_to_bf16", "pinlane_f32_to_f16"] {
        let kernel = find(name).expect("built in");
        assert_eq!((kernel.bytes_touched)(&[n, null, null]), 6_000);
    }
    let kernel = find("pinlane_u8_to_f32").expect("built in");
    let one = KernelArg::F32(1.0);
    assert_eq!((kernel.bytes_touched)(&[n, one, one, null, null]), 5_000);
}
