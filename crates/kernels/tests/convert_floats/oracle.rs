//! The expected result of a conversion, found by search from the definition: slow but simple.

use pinlane_kernels::convert::FloatKind;

/// Bits of exponent and of fraction.
fn shape(kind: FloatKind) -> (u32, u32) {
    match kind {
        FloatKind::F16 => (5, 10),
        FloatKind::Bf16 => (8, 7),
        FloatKind::F32 => (8, 23),
        FloatKind::F64 => (11, 52),
    }
}

/// Infinity, past which magnitudes are NaNs.
pub(crate) fn infinity(kind: FloatKind) -> u64 {
    let (exponent, fraction) = shape(kind);
    ((1 << exponent) - 1) << fraction
}

fn sign_of(kind: FloatKind, bits: u64) -> u64 {
    bits >> (8 * kind.bytes() - 1)
}

/// The value of a magnitude that is no NaN. Infinity counts as the number that would come next.
pub(crate) fn value(kind: FloatKind, magnitude: u64) -> f64 {
    let (exponent_bits, fraction_bits) = shape(kind);
    let bias = (1_i32 << (exponent_bits - 1)) - 1;
    let exponent = (magnitude >> fraction_bits) as i32;
    let fraction = magnitude & ((1 << fraction_bits) - 1);
    let digits = match exponent {
        0 => fraction,
        _ => fraction | 1 << fraction_bits,
    };
    // In two steps, of which none leaves the range of f64.
    let power = exponent.max(1) - bias - fraction_bits as i32;
    digits as f64 * 2_f64.powi(power / 2) * 2_f64.powi(power - power / 2)
}

/// The bits of what a number of kind `from` is in another kind.
pub(crate) fn converted(from: FloatKind, to: FloatKind, bits: u64) -> u64 {
    if from == to {
        return bits;
    }
    let negative = sign_of(from, bits);
    let sign = negative << (8 * to.bytes() - 1);
    let magnitude = bits & !(negative << (8 * from.bytes() - 1));
    if magnitude > infinity(from) {
        return sign | nan(from, to, magnitude);
    }
    if magnitude == infinity(from) {
        return sign | infinity(to);
    }
    if to == FloatKind::F64 {
        return sign | value(from, magnitude).to_bits();
    }
    sign | nearest(to, value(from, magnitude))
}

/// Quiet, with as much of the payload as there is room for, from the top.
fn nan(from: FloatKind, to: FloatKind, magnitude: u64) -> u64 {
    let ((_, from_bits), (_, to_bits)) = (shape(from), shape(to));
    let payload = (magnitude & ((1 << from_bits) - 1)) << (52 - from_bits) >> (52 - to_bits);
    infinity(to) | 1 << (to_bits - 1) | payload
}

/// The nearest magnitude, of two that are equally near the even one.
fn nearest(kind: FloatKind, number: f64) -> u64 {
    // The last one that is not larger.
    let (mut low, mut high) = (0, infinity(kind));
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if value(kind, middle) <= number {
            low = middle;
        } else {
            high = middle;
        }
    }
    let tie = tie(kind, low);
    if number < tie || number == tie && low % 2 == 0 {
        low
    } else {
        high
    }
}

/// Half way from a magnitude to the next one: exact, since `f64` has digits to spare.
pub(crate) fn tie(kind: FloatKind, magnitude: u64) -> f64 {
    value(kind, magnitude) / 2.0 + value(kind, magnitude + 1) / 2.0
}
