//! A kernel that keeps the arithmetic units busy.

use pinlane_driver::ParamKind::{Ptr, U32, U64};
use pinlane_driver::{KernelArg, LaunchShape};

use super::args::{ptr_of, u32_of, u64_of};
use super::for_blocks;
use crate::{Kernel, Memory, TwinResult};

/// Rounds over all elements per nanosecond, as on a large GPU.
const ROUNDS_PER_NS: u64 = 16_000;

pub(super) const CHURN_U32: Kernel = Kernel {
    name: "pinlane_churn_u32",
    params: &[U64, U32, Ptr],
    run: churn_u32,
    bytes_touched: |args| u64_of(&args[0]).saturating_mul(8),
    fixed_ns: |args| {
        let rounds = u64_of(&args[0]).saturating_mul(u64::from(u32_of(&args[1])));
        rounds / ROUNDS_PER_NS
    },
};

/// `data[i] = data[i] * 1664525 + 1013904223`, `rounds` times, for `i < n`: (n, rounds, data). All
/// rounds together are one multiplication and one addition.
fn churn_u32(memory: &mut dyn Memory, _: LaunchShape, args: &[KernelArg]) -> TwinResult {
    let (n, rounds, data) = (u64_of(&args[0]), u32_of(&args[1]), ptr_of(&args[2]));
    let (factor, summand) = all_rounds(rounds);
    for_blocks(n, 4, |at, bytes| {
        let mut block = vec![0; bytes];
        memory.read(data.offset(at), &mut block)?;
        for item in block.chunks_exact_mut(4) {
            let old = u32::from_le_bytes(item.try_into().expect("four bytes"));
            let new = old.wrapping_mul(factor).wrapping_add(summand);
            item.copy_from_slice(&new.to_le_bytes());
        }
        memory.write(data.offset(at), &block)
    })
}

/// Factor and summand of `rounds` rounds.
fn all_rounds(rounds: u32) -> (u32, u32) {
    let (mut factor, mut summand) = (1u32, 0u32);
    let (mut power, mut offset) = (1_664_525u32, 1_013_904_223u32);
    let mut remaining = rounds;
    while remaining > 0 {
        if remaining % 2 == 1 {
            summand = summand.wrapping_mul(power).wrapping_add(offset);
            factor = factor.wrapping_mul(power);
        }
        offset = offset.wrapping_mul(power).wrapping_add(offset);
        power = power.wrapping_mul(power);
        remaining /= 2;
    }
    (factor, summand)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rounds_at_once_are_round_after_round() {
        for rounds in [0, 1, 2, 3, 7, 64, 1000, 12345] {
            let (factor, summand) = all_rounds(rounds);
            let mut value = 0xdead_beefu32;
            let at_once = value.wrapping_mul(factor).wrapping_add(summand);
            for _ in 0..rounds {
                value = value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            }
            assert_eq!(value, at_once, "{rounds} rounds");
        }
    }
}
