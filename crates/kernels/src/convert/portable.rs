//! The reference: plain Rust, one number at a time.

use super::autovectorized::all;

pub(super) fn f32_to_bf16(source: &[f32], target: &mut [u16]) {
    all(|value: f32| bf16_bits(value.to_bits()), source, target);
}

pub(super) fn f32_to_f16(source: &[f32], target: &mut [u16]) {
    all(|value: f32| f16_bits(value.to_bits()), source, target);
}

pub(super) fn u8_to_f32(source: &[u8], scale: f32, offset: f32, target: &mut [f32]) {
    all(|value| f32::from(value) * scale + offset, source, target);
}

/// The upper half, rounded. Computes both results and selects one, so that the loop has no branch
/// and is vectorised.
#[inline(always)]
fn bf16_bits(bits: u32) -> u16 {
    // A carry into the exponent is correct, up to infinity.
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
    let quiet = bits | 0x0040_0000;
    let is_nan = bits & 0x7fff_ffff > 0x7f80_0000;
    ((if is_nan { quiet } else { rounded }) >> 16) as u16
}

#[inline]
fn f16_bits(bits: u32) -> u16 {
    /// 2^-14, the smallest normal f16.
    const NORMAL: u32 = 0x3880_0000;
    /// 2^16, above everything that rounds to a finite f16.
    const TOO_LARGE: u32 = 0x4780_0000;
    const INFINITY: u32 = 0x7f80_0000;
    let sign = bits >> 16 & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    let rounded = if magnitude > INFINITY {
        0x7e00 | magnitude >> 13 & 0x03ff
    } else if magnitude >= TOO_LARGE {
        0x7c00
    } else if magnitude >= NORMAL {
        // An exponent of 15 instead of 127; the carry may make it infinity.
        let moved = magnitude - (112 << 23);
        (moved + 0x0fff + (moved >> 13 & 1)) >> 13
    } else {
        denormal_f16(magnitude)
    };
    (sign | rounded) as u16
}

/// The nearest multiple of 2^-24, which is the value of the lowest bit, for less than 2^-14.
#[inline]
fn denormal_f16(magnitude: u32) -> u32 {
    let shift = 126 - (magnitude >> 23);
    if shift > 24 {
        // Less than half of the lowest bit.
        return 0;
    }
    let digits = magnitude & 0x007f_ffff | 0x0080_0000;
    (digits + ((1 << (shift - 1)) - 1) + (digits >> shift & 1)) >> shift
}
