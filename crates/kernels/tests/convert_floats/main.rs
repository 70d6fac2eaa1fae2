//! Conversion between any kinds of floating-point numbers, with every instruction set of this CPU.

mod numbers;
mod oracle;
mod slices;

use pinlane_kernels::Instructions;
use pinlane_kernels::convert::FloatKind;

const KINDS: [FloatKind; 4] = [
    FloatKind::F16,
    FloatKind::Bf16,
    FloatKind::F32,
    FloatKind::F64,
];

type Convert = fn(Instructions, FloatKind, FloatKind, &[u8], &mut [u8]);

const WAYS: [(&str, Convert); 2] = [
    ("plain", Instructions::floats),
    ("streaming", Instructions::floats_streaming),
];

/// The bits of numbers as they lie in a file.
fn to_bytes(kind: FloatKind, numbers: &[u64]) -> Vec<u8> {
    let bytes = |bits: &u64| bits.to_le_bytes().into_iter().take(kind.bytes());
    numbers.iter().flat_map(bytes).collect()
}

fn from_bytes(kind: FloatKind, bytes: &[u8]) -> Vec<u64> {
    let number = |bytes: &[u8]| {
        let mut bits = [0; 8];
        bits[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(bits)
    };
    bytes.chunks(kind.bytes()).map(number).collect()
}
