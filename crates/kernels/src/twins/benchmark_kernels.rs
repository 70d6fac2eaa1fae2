//! Kernels with one result and three limits: arithmetic, memory bandwidth, latency.

use pinlane_driver::{KernelArg, LaunchShape};

use super::replace_u32;
use crate::{Memory, TwinResult};

/// Elements of each thread of `pinlane_round_trips_u32`.
pub const ROUND_TRIPS_ITEMS: usize = 16;

/// Blocks of `pinlane_sweep_u32` that a multiprocessor runs at once.
pub const SWEEP_BLOCKS: usize = 8;

/// Rounds over all elements per nanosecond, as on a large GPU.
const ROUNDS_PER_NS: u64 = 16_000;

pub(super) fn fixed_ns(args: &[KernelArg]) -> u64 {
    bind!(args => U64(n), U32(rounds));
    n.saturating_mul(rounds.into()) / ROUNDS_PER_NS
}

/// `data[i] = data[i] * 1664525 + 1013904223`, `rounds` times, for `i < n`: (n, rounds, data). All
/// rounds together are one multiplication and one addition.
pub(super) fn churn_u32(memory: &mut dyn Memory, _: LaunchShape, args: &[KernelArg]) -> TwinResult {
    bind!(args => U64(n), U32(rounds), Ptr(data));
    let (factor, summand) = all_rounds(rounds);
    replace_u32(memory, n, data, |old| {
        old.wrapping_mul(factor).wrapping_add(summand)
    })
}

/// Like [`churn_u32`], with a pass over memory for each round.
pub(super) use churn_u32 as sweep_u32;

/// Like [`churn_u32`], with a round trip to memory for each round of an element.
pub(super) use churn_u32 as round_trips_u32;

/// Reads and writes all elements in every round.
pub(super) fn sweep_touched(args: &[KernelArg]) -> u64 {
    bind!(args => U64(n), U32(rounds));
    n.saturating_mul(8).saturating_mul(rounds.into())
}

/// A round trip to memory, as on a large GPU.
const ROUND_TRIP_NS: u64 = 600;

/// Threads that such a GPU runs at once.
const THREADS: u64 = 270_336;

/// Share of the device that the round trips take.
pub(super) fn round_trips_ns(args: &[KernelArg]) -> u64 {
    bind!(args => U64(n), U32(rounds));
    let trips = n.saturating_mul(rounds.into());
    trips.saturating_mul(ROUND_TRIP_NS) / THREADS
}

/// A thread makes its round trips one after the other, however few threads there are.
pub(super) fn round_trips_tail_ns(args: &[KernelArg]) -> u64 {
    bind!(args => U64(n), U32(rounds));
    let per_thread = n.min(ROUND_TRIPS_ITEMS as u64);
    let alone_ns = per_thread
        .saturating_mul(rounds.into())
        .saturating_mul(ROUND_TRIP_NS);
    alone_ns.saturating_sub(round_trips_ns(args))
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
