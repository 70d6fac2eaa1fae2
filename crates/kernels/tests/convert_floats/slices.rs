//! Conversion of slices: any length, any address, any instructions.

use std::panic::catch_unwind;

use pinlane_kernels::Instructions;
use pinlane_kernels::convert::{FloatKind, floats, floats_streaming};

use crate::oracle::converted;
use crate::{KINDS, WAYS, from_bytes, to_bytes};

/// More than are done at a time, and a few around the length of vectors.
const COUNTS: [usize; 6] = [0, 1, 7, 33, 1024, 2100];

/// From any byte to any byte, nothing beside touched.
#[test]
fn any_length_and_any_address() {
    for from in KINDS {
        let numbers: Vec<u64> = (0..COUNTS[COUNTS.len() - 1] as u64)
            .map(|i| converted(FloatKind::F64, from, (1.0 + i as f64 / 1000.0).to_bits()))
            .collect();
        for to in KINDS {
            let expected: Vec<u64> = numbers
                .iter()
                .map(|bits| converted(from, to, *bits))
                .collect();
            for (source_at, target_at) in [(0, 0), (1, 0), (0, 1), (3, 5), (2, 4), (4, 8)] {
                for count in COUNTS {
                    let source =
                        [vec![0x11; source_at], to_bytes(from, &numbers[..count])].concat();
                    one(
                        (from, to),
                        &source[source_at..],
                        target_at,
                        &expected[..count],
                    );
                }
            }
        }
    }
}

fn one((from, to): (FloatKind, FloatKind), source: &[u8], target_at: usize, expected: &[u64]) {
    for by in Instructions::available() {
        for (way, convert) in WAYS {
            let bytes = expected.len() * to.bytes();
            let mut target = vec![0x5a; target_at + bytes + 9];
            convert(by, from, to, source, &mut target[target_at..][..bytes]);
            let (before, rest) = target.split_at(target_at);
            let (found, behind) = rest.split_at(bytes);
            let what = format!("{way} by {}: {from:?} to {to:?}", by.name());
            assert!(from_bytes(to, found) == expected, "{what}");
            let guards = before.iter().chain(behind);
            assert!(guards.copied().all(|byte| byte == 0x5a), "{what}: beside");
        }
    }
}

#[test]
fn the_functions_use_the_best_instructions() {
    let source = to_bytes(FloatKind::F32, &[0x3f80_0000, 0xc000_0000]);
    for convert in [floats, floats_streaming] {
        let mut target = [0; 4];
        convert(FloatKind::F32, FloatKind::F16, &source, &mut target);
        assert_eq!(from_bytes(FloatKind::F16, &target), [0x3c00, 0xc000]);
    }
}

#[track_caller]
fn refused(from: FloatKind, to: FloatKind, source_bytes: usize, target_bytes: usize, why: &str) {
    for by in Instructions::available() {
        for (way, convert) in WAYS {
            let (source, mut target) = (vec![0; source_bytes], vec![0; target_bytes]);
            let panic = catch_unwind(move || convert(by, from, to, &source, &mut target))
                .expect_err("the lengths do not match");
            let text = panic.downcast_ref::<String>().expect("a text");
            assert!(text.contains(why), "{way}: {text}");
        }
    }
}

#[test]
fn mismatched_lengths_are_refused() {
    use FloatKind::{Bf16, F16, F32, F64};
    refused(F32, Bf16, 40, 18, "source and target differ in length");
    refused(F16, F16, 40, 42, "source and target differ in length");
    refused(F64, F16, 8, 0, "source and target differ in length");
    refused(
        F32,
        F16,
        42,
        20,
        "the source has 42 bytes, not a multiple of F32",
    );
    refused(
        F16,
        F64,
        4,
        15,
        "the target has 15 bytes, not a multiple of F64",
    );
}
