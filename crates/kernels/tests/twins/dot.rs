//! The dot product: correct, with the same bits for any address.

use pinlane_driver::{DevicePtr, KernelArg};
use pinlane_kernels::{dot, dot_partials, dot_partials_shape, dot_sum_shape, find};

use crate::bounded_memory::{Flat, run};

const LENGTHS: [usize; 17] = [
    0, 1, 2, 3, 4, 5, 31, 32, 33, 255, 256, 257, 1000, 1024, 1025, 4096, 100_003,
];

/// More than the lanes, so that some add several products.
const BEYOND_THE_LANES: usize = (2 << 20) + 12_345;

/// Vectors of numbers k / 2^24 with k below 2^24.
fn vectors(len: usize) -> (Vec<f32>, Vec<f32>) {
    let number = |i: usize, factor: u32| {
        let mixed = (i as u32 + 1).wrapping_mul(factor);
        ((mixed ^ (mixed >> 15)) >> 8) as f32 / 16_777_216.0
    };
    let all = |factor| (0..len).map(|i| number(i, factor)).collect();
    (all(0x9e37_79b9), all(0x85eb_ca6b))
}

/// The exact dot product of such vectors, rounded once.
fn exact(x: &[f32], y: &[f32]) -> f64 {
    let whole = |number: f32| (f64::from(number) * 16_777_216.0) as i128;
    let sum: i128 = x.iter().zip(y).map(|(x, y)| whole(*x) * whole(*y)).sum();
    sum as f64 / 2f64.powi(48)
}

/// By both twins; the vectors begin so many elements behind an address that 16 divides.
fn by_twins(x: &[f32], y: &[f32], [x_starts, y_starts]: [usize; 2]) -> f64 {
    let n = x.len();
    // x, y, partial sums, result, each with room for its start; then a mark.
    let y_at = 4 * (n + 8).next_multiple_of(4);
    let partials_at = 2 * y_at;
    let result_at = partials_at + 8 * dot_partials(n);
    let mut memory = Flat::new(vec![0xab; result_at + 16]);
    let mut put = |at: usize, numbers: &[f32]| {
        for (i, number) in numbers.iter().enumerate() {
            let at = at + 4 * i;
            memory.bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
    };
    put(4 * x_starts, x);
    put(y_at + 4 * y_starts, y);
    let count = KernelArg::U64(n as u64);
    let (x, y) = (memory.at(4 * x_starts), memory.at(y_at + 4 * y_starts));
    let (partials, result) = (memory.at(partials_at), memory.at(result_at));
    let before = memory.bytes[..partials_at].to_vec();
    run(
        "pinlane_dot_partials_f32",
        &mut memory,
        &[count, x, y, partials],
    )
    .expect("in bounds");
    run(
        "pinlane_dot_sum_f64",
        &mut memory,
        &[count, partials, result],
    )
    .expect("in bounds");
    assert_eq!(memory.bytes[..partials_at], before, "the vectors");
    assert_eq!(memory.bytes[result_at + 8..], [0xab; 8], "what lies behind");
    f64::from_le_bytes(
        memory.bytes[result_at..result_at + 8]
            .try_into()
            .expect("8"),
    )
}

#[test]
fn right_to_the_last_digits_at_any_length() {
    for n in LENGTHS.into_iter().chain([BEYOND_THE_LANES]) {
        let (x, y) = vectors(n);
        let (found, exact) = (by_twins(&x, &y, [0, 0]), exact(&x, &y));
        assert!(
            (found - exact).abs() <= 4.0 * f64::EPSILON * exact,
            "{n}: {found} instead of {exact}"
        );
    }
}

#[test]
fn whole_numbers_are_exact() {
    for n in LENGTHS.into_iter().chain([BEYOND_THE_LANES]) {
        let x: Vec<f32> = (0..n).map(|i| (i % 1021) as f32 - 300.0).collect();
        let y: Vec<f32> = (0..n).map(|i| (i % 509) as f32).collect();
        let expected: i64 = (0..n as i64).map(|i| (i % 1021 - 300) * (i % 509)).sum();
        assert_eq!(by_twins(&x, &y, [0, 0]), expected as f64, "{n}");
    }
}

/// Lane by lane, and the tree from its top: as the order is told, not as it is computed.
fn as_told(x: &[f32], y: &[f32]) -> f64 {
    const LANES: usize = 1 << 20;
    fn lane(number: usize, x: &[f32], y: &[f32]) -> f64 {
        let products = (number..x.len()).step_by(LANES);
        products.fold(0.0, |sum, i| sum + f64::from(x[i]) * f64::from(y[i]))
    }
    fn branch(first: usize, lanes: usize, x: &[f32], y: &[f32]) -> f64 {
        match lanes {
            _ if first >= x.len() => 0.0,
            1 => lane(first, x, y),
            _ => branch(first, lanes / 2, x, y) + branch(first + lanes / 2, lanes / 2, x, y),
        }
    }
    branch(0, LANES, x, y)
}

#[test]
fn the_order_is_the_one_that_is_told() {
    for n in LENGTHS.into_iter().chain([BEYOND_THE_LANES]) {
        let (x, mut y) = vectors(n);
        for (i, number) in y.iter_mut().enumerate() {
            *number *= [1.0, -1e-3, 1e7][i % 3]; // sums that depend on their order
        }
        let told = as_told(&x, &y).to_bits();
        assert_eq!(by_twins(&x, &y, [0, 0]).to_bits(), told, "{n}");
        assert_eq!(dot(&x, &y).to_bits(), told, "{n}");
    }
}

#[test]
fn the_same_bits_from_any_start() {
    let (x, y) = vectors(10_007);
    let bits = dot(&x, &y).to_bits();
    for starts in (0..16).map(|i| [i % 4, i / 4]) {
        assert_eq!(by_twins(&x, &y, starts).to_bits(), bits, "{starts:?}");
    }
}

#[test]
fn infinities_and_nans_are_not_lost() {
    const NAN: u64 = 0x7ff8_0000_0000_0000;
    for at in [0, 3, 1023, 1024, 4999] {
        let (mut x, y) = vectors(5000);
        x[at] = f32::NEG_INFINITY;
        assert_eq!(by_twins(&x, &y, [0, 0]), f64::NEG_INFINITY);
        x[(at + 7) % 5000] = f32::INFINITY;
        assert_eq!(by_twins(&x, &y, [0, 0]).to_bits(), NAN, "{at}");
        for payload in [0x7fc0_0000, 0xffc1_2345, 0x7f80_0001] {
            let (mut x, y) = vectors(5000);
            x[at] = f32::from_bits(payload);
            assert_eq!(by_twins(&x, &y, [0, 0]).to_bits(), NAN, "{at}");
        }
    }
    // Neither too large nor too small for a double.
    assert_eq!(
        by_twins(&[f32::MAX], &[f32::MAX], [0, 0]),
        f64::from(f32::MAX).powi(2)
    );
    let least = f32::from_bits(1);
    assert_eq!(by_twins(&[least], &[least], [0, 0]), 2f64.powi(-298));
    assert_eq!(
        by_twins(&[-0.0], &[1.0], [0, 0]).to_bits(),
        0,
        "zero, not minus zero"
    );
}

#[test]
fn atomic_adds_floats_in_the_order_of_the_elements() {
    let (x, y) = vectors(50_001);
    let mut memory = Flat::of_words(x.iter().chain(&y).chain(&[0.5]).map(|v| v.to_le_bytes()));
    let n = x.len();
    let args = [
        KernelArg::U64(n as u64),
        memory.at(0),
        memory.at(4 * n),
        memory.at(8 * n),
    ];
    run("pinlane_dot_atomic_f32", &mut memory, &args).expect("in bounds");
    let mut expected = 0.5f32;
    for i in 0..n {
        expected += x[i] * y[i];
    }
    assert_eq!(memory.words()[2 * n], expected.to_le_bytes());
    let right = exact(&x, &y);
    let off = (f64::from(expected) - right).abs() / right;
    assert!(off > 1e-6, "a float cannot do better: {off}");
}

#[test]
fn no_elements_make_zero_and_touch_no_vector() {
    let mut memory = Flat::new(vec![0xab; 8]);
    let nowhere = KernelArg::Ptr(DevicePtr(0));
    let none = KernelArg::U64(0);
    let partials = [none, nowhere, nowhere, nowhere];
    run("pinlane_dot_partials_f32", &mut memory, &partials).expect("nothing is accessed");
    run("pinlane_dot_atomic_f32", &mut memory, &partials).expect("nothing is accessed");
    let result = memory.at(0);
    run("pinlane_dot_sum_f64", &mut memory, &[none, nowhere, result]).expect("in bounds");
    assert_eq!(memory.bytes, [0; 8]);
}

#[test]
fn costs_and_shapes_follow_the_length() {
    let null = KernelArg::Ptr(DevicePtr(0));
    let args = [KernelArg::U64(10_000_000), null, null, null];
    let (tree, atomic) = (
        find("pinlane_dot_partials_f32"),
        find("pinlane_dot_atomic_f32"),
    );
    let (tree, atomic) = (tree.expect("built in"), atomic.expect("built in"));
    assert_eq!((tree.bytes_touched)(&args), 80_000_000 + 8 * 1024);
    assert_eq!((tree.fixed_ns)(&args), 0);
    assert!((atomic.fixed_ns)(&args) > 1_000_000, "one after the other");
    for (n, blocks) in [(0, 1), (1, 1), (1024, 1), (1025, 2), (usize::MAX, 1024)] {
        assert_eq!(dot_partials_shape(n).grid, [blocks, 1, 1], "{n}");
        assert_eq!(dot_partials_shape(n).block, [256, 1, 1]);
    }
    assert_eq!(dot_sum_shape().grid, [1, 1, 1]);
}
