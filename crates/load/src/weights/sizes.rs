//! How much is read, and copied, at once.

use super::LoadConfig;
use super::config::bad;
use crate::{Dtype, LoadError, PlanOptions};

/// Sizes of one load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sizes {
    /// Pinned memory of a piece.
    pub(super) slot_bytes: usize,
    /// How many of these there are at most, filled or in flight.
    pub(super) slots: usize,
    /// Bytes of a file that go into a slot.
    pub(super) piece_bytes: usize,
    /// Bytes of a piece that a thread reads at once; all of it where this is more.
    pub(super) slice_bytes: u64,
}

/// Bytes of a piece, which several threads read and one copy brings to the device: large enough that
/// the link hardly notices the gap between two copies.
const PIECE_BYTES: usize = 16 << 20;

/// The same where elements are converted: then one thread reads all of a piece.
const CONVERTED_PIECE_BYTES: usize = 4 << 20;

/// Slices of a piece, each of which a thread reads at once: enough that all threads find some, and so
/// large that a disk is not asked for crumbs.
const SLICES: usize = 16;

/// Pieces that are filled or in flight.
const SLOTS: usize = 8;

/// The same for a thread that converts: one that it fills, one in flight.
const SLOTS_OF_A_THREAD: usize = 2;

/// What a piece has at least.
const PIECE_BYTES_AT_LEAST: usize = 4 * PAGE_BYTES;

/// An element that starts with the last byte of a page is not torn where two pages are read.
const READ_BYTES_AT_LEAST: usize = 2 * PAGE_BYTES;

const PAGE_BYTES: usize = 4096;

impl Sizes {
    /// For so many threads and bytes to read, with so many bytes of page-locked memory that the budget
    /// has left.
    pub(super) fn of(
        config: &LoadConfig,
        threads: usize,
        total_bytes: u64,
        left_bytes: u64,
    ) -> Result<Self, LoadError> {
        let (usual_bytes, usual_slots) = match config.convert {
            None => (PIECE_BYTES, SLOTS),
            Some(_) => (
                CONVERTED_PIECE_BYTES,
                threads.saturating_mul(SLOTS_OF_A_THREAD),
            ),
        };
        let wanted_bytes = config.piece_bytes.unwrap_or(usual_bytes);
        let possible = PIECE_BYTES_AT_LEAST..=1 << 30;
        if !wanted_bytes.is_multiple_of(PAGE_BYTES) || !possible.contains(&wanted_bytes) {
            let reason = "a multiple of 4096, from 16384 to 1073741824";
            return Err(bad("piece_bytes", reason));
        }
        let at_most_bytes = match config.pinned_bytes {
            Some(bytes) if bytes < 2 * PIECE_BYTES_AT_LEAST => {
                return Err(bad("pinned_bytes", "at least 32768"));
            }
            Some(bytes) => bytes,
            None => usual_bytes
                .saturating_mul(usual_slots)
                .max(2 * wanted_bytes),
        };
        // With nothing left the budget says so itself, when it is asked for the least.
        let left_bytes = usize::try_from(left_bytes).unwrap_or(usize::MAX);
        let at_most_bytes = at_most_bytes.min(left_bytes).max(2 * PIECE_BYTES_AT_LEAST);
        // While one is in flight another one is filled.
        let half_bytes = at_most_bytes / 2 / PAGE_BYTES * PAGE_BYTES;
        let growth = growth(config.convert);
        // Little to read takes little memory, in few sizes, so that the next load finds its own.
        let total_bytes = usize::try_from(total_bytes).unwrap_or(usize::MAX);
        let all_bytes = total_bytes
            .saturating_add(2 * PAGE_BYTES)
            .saturating_mul(growth)
            .checked_next_power_of_two();
        let slot_bytes = wanted_bytes
            .min(half_bytes)
            .min(all_bytes.unwrap_or(usize::MAX).max(PIECE_BYTES_AT_LEAST))
            .max(READ_BYTES_AT_LEAST * growth);
        Ok(Self {
            slot_bytes,
            slots: usual_slots.min(at_most_bytes / slot_bytes).max(1),
            piece_bytes: slot_bytes / growth / PAGE_BYTES * PAGE_BYTES,
            slice_bytes: match config.convert {
                None => (slot_bytes / SLICES).next_multiple_of(PAGE_BYTES) as u64,
                Some(_) => u64::MAX,
            },
        })
    }

    pub(super) fn plan_options(&self) -> PlanOptions {
        PlanOptions {
            piece_bytes: self.piece_bytes as u64,
            ..PlanOptions::default()
        }
    }
}

/// How many times larger the smallest elements become.
fn growth(convert: Option<Dtype>) -> usize {
    let kind = convert.and_then(Dtype::float_kind);
    kind.map_or(1, |kind| kind.bytes() / 2)
}
