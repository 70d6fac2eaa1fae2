//! Conversion of single numbers.

use half::{bf16, f16};
use pinlane_kernels::Instructions;
use pinlane_kernels::convert::FloatKind::{self, Bf16, F16, F32, F64};
use pinlane_model::SplitMix64;

use crate::oracle::{converted, infinity, tie};
use crate::{KINDS, WAYS, from_bytes, to_bytes};

/// Checks what each of the numbers becomes in kind `to`.
#[track_caller]
fn check(from: FloatKind, to: FloatKind, numbers: &[u64], expected: impl Fn(u64) -> u64) {
    let source = to_bytes(from, numbers);
    let expected: Vec<u64> = numbers.iter().map(|bits| expected(*bits)).collect();
    for by in Instructions::available() {
        for (way, convert) in WAYS {
            let mut target = vec![0x5a; numbers.len() * to.bytes()];
            convert(by, from, to, &source, &mut target);
            let found = from_bytes(to, &target);
            if let Some(at) = (0..numbers.len()).find(|at| found[*at] != expected[*at]) {
                panic!(
                    "{way} by {}: {from:?} {:#x} became {to:?} {:#x}, not {:#x}",
                    by.name(),
                    numbers[at],
                    found[at],
                    expected[at]
                );
            }
        }
    }
}

/// Bits that look random, of all exponents.
fn random(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(|index| SplitMix64::nth(0, index))
}

fn all_of_16_bits() -> Vec<u64> {
    (0..1 << 16).collect()
}

#[test]
fn every_16_bit_number() {
    for from in [F16, Bf16] {
        for to in KINDS {
            check(from, to, &all_of_16_bits(), |bits| {
                converted(from, to, bits)
            });
        }
    }
}

#[test]
fn every_16_bit_number_agrees_with_the_crate_half() {
    let all = all_of_16_bits();
    let (short, brain) = (
        |bits| f16::from_bits(bits as u16),
        |bits| bf16::from_bits(bits as u16),
    );
    check(F16, F32, &all, |x| {
        u64::from(short(x).to_f32_const().to_bits())
    });
    check(Bf16, F32, &all, |x| {
        u64::from(brain(x).to_f32_const().to_bits())
    });
    check(F16, F64, &all, |x| short(x).to_f64_const().to_bits());
    check(Bf16, F64, &all, |x| brain(x).to_f64_const().to_bits());
    check(F16, Bf16, &all, |x| {
        u64::from(bf16::from_f32_const(short(x).to_f32_const()).to_bits())
    });
    check(Bf16, F16, &all, |x| {
        u64::from(f16::from_f32_const(brain(x).to_f32_const()).to_bits())
    });
}

/// Half way between two numbers of the target, and just beside it: where two roundings differ from
/// one, and a tie from what is none.
fn around_ties(to: FloatKind, magnitudes: impl Iterator<Item = u64>) -> Vec<u64> {
    let three = |magnitude| {
        let tie = tie(to, magnitude);
        [tie.next_down(), tie, tie.next_up()]
    };
    let both_signs = |number: f64| [number.to_bits(), (-number).to_bits()];
    magnitudes.flat_map(three).flat_map(both_signs).collect()
}

#[test]
fn f64_around_every_tie_of_16_bit_numbers() {
    for to in [F16, Bf16] {
        let numbers = around_ties(to, 0..infinity(to));
        check(F64, to, &numbers, |bits| converted(F64, to, bits));
        // Numbers that would come out wrong by way of the nearest f32.
        let differ = |bits: &&u64| {
            let nearest_f32 = converted(F64, F32, **bits);
            converted(F32, to, nearest_f32) != converted(F64, to, **bits)
        };
        let telling = numbers.iter().filter(differ).count();
        assert!(
            telling > 10_000,
            "only {telling} tell one rounding from two"
        );
    }
}

#[test]
fn f64_around_ties_of_f32() {
    let sample = (0..infinity(F32)).step_by(199_999);
    let edges = [
        0,
        1,
        0x007f_fffe,
        0x007f_ffff,
        0x0080_0000,
        infinity(F32) - 1,
    ];
    let numbers = around_ties(F32, sample.chain(edges));
    check(F64, F32, &numbers, |bits| converted(F64, F32, bits));
}

#[test]
fn f64_of_any_bits() {
    let edges = [
        0.0,
        f64::MIN_POSITIVE,
        f64::MAX,
        f64::INFINITY,
        f64::NAN,
        f64::from_bits(1),
        f64::from_bits(0x7ff0_0000_0000_0001),
        f64::from_bits(0x7ff4_5678_9abc_def0),
        f64::from_bits(0x7fff_ffff_ffff_ffff),
    ];
    let signed = edges.iter().flat_map(|x| [x.to_bits(), (-x).to_bits()]);
    let numbers: Vec<u64> = signed.chain(random(20_000)).collect();
    for to in KINDS {
        check(F64, to, &numbers, |bits| converted(F64, to, bits));
    }
}

/// The crate forgets the lower half of an f64 before it rounds, so that it takes what is a little
/// more than a tie for one. Where the lower half is zero, it is right.
#[test]
fn f64_without_a_lower_half_agrees_with_the_crate_half() {
    let numbers: Vec<u64> = random(20_000).map(|bits| bits & !0xffff_ffff).collect();
    check(F64, F16, &numbers, |bits| {
        u64::from(f16::from_f64_const(f64::from_bits(bits)).to_bits())
    });
    check(F64, Bf16, &numbers, |bits| {
        u64::from(bf16::from_f64_const(f64::from_bits(bits)).to_bits())
    });
}

/// All upper halves with lower halves that make ties, near ties and carries.
#[test]
fn f32_agrees_with_the_other_converters() {
    for lower in [
        0x0000, 0x0001, 0x0fff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001,
    ] {
        let numbers: Vec<u64> = (0..1 << 16).map(|upper| upper << 16 | lower).collect();
        let floats: Vec<f32> = numbers.iter().map(|x| f32::from_bits(*x as u32)).collect();
        let mut halves = vec![0; floats.len()];
        let place = |bits: u64| (bits >> 16) as usize;
        pinlane_kernels::convert::f32_to_f16(&floats, &mut halves);
        check(F32, F16, &numbers, |bits| u64::from(halves[place(bits)]));
        pinlane_kernels::convert::f32_to_bf16(&floats, &mut halves);
        check(F32, Bf16, &numbers, |bits| u64::from(halves[place(bits)]));
        check(F32, F64, &numbers, |bits| converted(F32, F64, bits));
        check(F32, F32, &numbers, |bits| bits);
    }
}
