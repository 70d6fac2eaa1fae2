//! The small kernels, and properties of all kernels.

use pinlane_driver::{DevicePtr, KernelArg};
use pinlane_kernels::{builtin, find};

use crate::bounded_memory::{Flat, run};

#[test]
fn add_wraps_and_leaves_the_rest_alone() {
    // More items than a twin holds at a time, and two that must not change.
    let count = 40_000;
    let mut memory = Flat::of_words((0..count + 2).map(|i: u32| i.wrapping_neg().to_le_bytes()));
    let args = [
        KernelArg::U64(count.into()),
        KernelArg::U32(7),
        memory.at(4),
    ];
    run("pinlane_add_u32", &mut memory, &args).expect("in bounds");
    let words = memory.words();
    assert_eq!(words[0], 0_u32.to_le_bytes());
    for i in 1..=count {
        let expected = i.wrapping_neg().wrapping_add(7).to_le_bytes();
        assert_eq!(words[i as usize], expected, "item {i}");
    }
    let last = (count + 1).wrapping_neg().to_le_bytes();
    assert_eq!(words[count as usize + 1], last);
}

/// What limits them differs, not what they compute.
#[test]
fn churn_sweep_and_round_trips_have_one_result() {
    let expected = |number: u32| {
        let round = |value: u32| value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (0..5).fold(number, |value, _| round(value)).to_le_bytes()
    };
    for name in ["churn", "sweep", "round_trips"] {
        let mut memory = Flat::of_words((0..1000u32).map(u32::to_le_bytes));
        let args = [KernelArg::U64(999), KernelArg::U32(5), memory.at(0)];
        run(&format!("pinlane_{name}_u32"), &mut memory, &args).expect("in bounds");
        let words = memory.words();
        for number in 0..999 {
            assert_eq!(words[number as usize], expected(number), "{name}");
        }
        assert_eq!(words[999], 999u32.to_le_bytes(), "{name}");
    }
}

#[test]
fn saxpy_rounds_once() {
    // a * x is 1 - 2^-46: two roundings would give 0, one gives -2^-46.
    let step = 2.0_f32.powi(-23);
    let (a, x, y) = (1.0 + step, 1.0 - step, -1.0_f32);
    let mut memory = Flat::of_words([x, x, y, y].map(f32::to_le_bytes));
    let args = [
        KernelArg::U64(2),
        KernelArg::F32(a),
        memory.at(0),
        memory.at(8),
    ];
    run("pinlane_saxpy_f32", &mut memory, &args).expect("in bounds");
    let expected = -(2.0_f32.powi(-46));
    assert_eq!(
        memory.words(),
        [x, x, expected, expected].map(f32::to_le_bytes)
    );
}

#[test]
fn copy_moves_bytes_of_any_length() {
    let mut memory = Flat::new((0..=255).collect());
    let args = [KernelArg::U64(101), memory.at(3), memory.at(130)];
    run("pinlane_copy_u8", &mut memory, &args).expect("in bounds");
    let mut expected: Vec<u8> = (0..=255).collect();
    expected.copy_within(3..104, 130);
    assert_eq!(memory.bytes, expected);
}

#[test]
fn an_access_out_of_bounds_is_a_fault_with_its_address() {
    let mut memory = Flat::new(vec![0; 16]);
    let args = [KernelArg::U64(5), KernelArg::U32(1), memory.at(0)];
    let fault = run("pinlane_add_u32", &mut memory, &args).expect_err("five items in four");
    assert_eq!(fault.address, DevicePtr(0x1000));
    assert_eq!(fault.bytes, 20);
}

#[test]
fn zero_items_touch_nothing() {
    let mut memory = Flat::new(Vec::new());
    let nowhere = KernelArg::Ptr(DevicePtr(0));
    run(
        "pinlane_add_u32",
        &mut memory,
        &[KernelArg::U64(0), KernelArg::U32(1), nowhere],
    )
    .expect("nothing is accessed");
}

#[test]
fn costs_follow_the_arguments() {
    let null = KernelArg::Ptr(DevicePtr(0));
    let spin = find("pinlane_spin").expect("built in");
    assert_eq!((spin.fixed_ns)(&[KernelArg::U64(1_500)]), 1_500);
    assert_eq!((spin.bytes_touched)(&[KernelArg::U64(1_500)]), 0);
    let copy = find("pinlane_copy_u8").expect("built in");
    assert_eq!((copy.bytes_touched)(&[KernelArg::U64(10), null, null]), 20);
    assert_eq!((copy.fixed_ns)(&[KernelArg::U64(10), null, null]), 0);
}

#[test]
fn round_trips_take_their_latency_however_few_the_elements() {
    let kernel = find("pinlane_round_trips_u32").expect("built in");
    let times = |n: u64| {
        let args = [
            KernelArg::U64(n),
            KernelArg::U32(10),
            KernelArg::Ptr(DevicePtr(0)),
        ];
        ((kernel.tail_ns)(&args), (kernel.fixed_ns)(&args))
    };
    let sum = |(tail_ns, busy_ns): (u64, u64)| tail_ns + busy_ns;
    let small = times(1 << 16);
    assert_eq!(
        sum(small),
        sum(times(1 << 20)),
        "too few to fill the device"
    );
    assert!(
        small.1 * 10 < small.0,
        "most of the device is left to others"
    );
    let (tail_ns, busy_ns) = times(1 << 26);
    assert_eq!(tail_ns, 0, "it is filled");
    assert!(busy_ns > 10 * sum(small));
}

#[test]
fn names_are_unique_and_found() {
    for (index, kernel) in builtin().iter().enumerate() {
        let found = find(kernel.name).expect("found by its name");
        assert!(std::ptr::eq(found, &builtin()[index]), "{}", kernel.name);
    }
    assert!(find("pinlane_no_such_kernel").is_none());
}
