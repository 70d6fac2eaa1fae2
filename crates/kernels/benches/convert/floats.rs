//! Between kinds of floating-point numbers, from and to bytes.

use std::hint::black_box;

use pinlane_kernels::Instructions;
use pinlane_kernels::convert::FloatKind::{self, Bf16, F16, F32, F64};

const PAIRS: [(FloatKind, FloatKind); 8] = [
    (F32, Bf16),
    (F16, F32),
    (Bf16, F32),
    (F16, Bf16),
    (Bf16, F16),
    (F64, F32),
    (F64, Bf16),
    (F32, F64),
];

/// From a large source to a target that is used again and again.
pub(crate) fn report(by: Instructions, source: &[u8], target: &mut [u8]) {
    for (from, to) in PAIRS {
        let wider = from.bytes().max(to.bytes());
        let items = target.len() / wider;
        let bytes = source.len() / from.bytes() * wider;
        // From an aligned source and from one that is not.
        for (what, skipped) in [("", 0), (", unaligned", 1)] {
            let name = format!("floats {from:?} to {to:?}{what}");
            super::report(&name, bytes, || {
                let numbers = &source[skipped..source.len() - (from.bytes() - skipped)];
                for part in numbers.chunks_exact(items * from.bytes()) {
                    let target = &mut target[..items * to.bytes()];
                    by.floats(from, to, black_box(part), target);
                    black_box(target);
                }
            });
        }
    }
}
