//! Sizes and number of the buffers of a load.

use pinlane_core::Device;

use super::LoadConfig;
use super::source_file::ALIGN_BYTES;
use crate::{Dtype, LoadError, LoadErrorKind};

/// Size of a piece: large enough that the gaps between copies hardly matter.
const PIECE_BYTES: usize = 16 << 20;

/// Size of a piece when converting: one thread then reads the whole piece.
const CONVERTED_PIECE_BYTES: usize = 4 << 20;

/// Reads per piece: enough to keep all threads busy, few enough that each suits a disk.
const READS_PER_PIECE: usize = 16;

/// Slots being filled or in flight.
const SLOTS: usize = 8;

/// Slots per converting thread: one being filled, one in flight.
const SLOTS_PER_CONVERTING_THREAD: usize = 2;

const PAGE_BYTES: usize = ALIGN_BYTES as usize;

const PIECE_BYTES_MIN: usize = 4 * PAGE_BYTES;

/// Two pages, so that an element that starts at the last byte of a page is not split.
const READ_BYTES_MIN: usize = 2 * PAGE_BYTES;

/// How much is read and copied at once, and how many pinned slots a load uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BufferSizes {
    /// Size of a pinned slot, which holds one piece.
    pub(super) slot_bytes: usize,
    /// Maximum number of slots, being filled or in flight.
    pub(super) slots: usize,
    /// File bytes per piece.
    pub(super) piece_bytes: usize,
    /// File bytes that one thread reads at once. `u64::MAX`: whole pieces.
    pub(super) read_bytes: u64,
}

impl BufferSizes {
    pub(super) fn choose(
        device: &Device,
        config: &LoadConfig,
        threads: usize,
        total_bytes: u64,
    ) -> Result<Self, LoadError> {
        // A load may pin the unused budget, and what is idle: the slots of earlier loads, and memory that makes
        // room for new slots.
        let budget = device.budget();
        let limit_bytes = budget.limit_bytes().map_err(LoadErrorKind::device)?;
        let unused_bytes = limit_bytes.saturating_sub(budget.in_use_bytes());
        let left_bytes = unused_bytes.saturating_add(budget.idle_bytes());
        // Growth: how many times larger the smallest elements become.
        let (default_bytes, slots_max, growth) = match config.convert.and_then(Dtype::float_kind) {
            None => (PIECE_BYTES, SLOTS, 1),
            Some(kind) => {
                let slots_max = threads.saturating_mul(SLOTS_PER_CONVERTING_THREAD);
                (CONVERTED_PIECE_BYTES, slots_max, kind.bytes() / 2)
            }
        };
        let wanted_bytes = config.piece_bytes.unwrap_or(default_bytes);
        let valid = PIECE_BYTES_MIN..=1 << 30;
        if !wanted_bytes.is_multiple_of(PAGE_BYTES) || !valid.contains(&wanted_bytes) {
            let reason = "must be a multiple of 4096, from 16384 to 1073741824";
            return Err(invalid("piece_bytes", reason));
        }
        let default_pinned_bytes = default_bytes.saturating_mul(slots_max);
        let pinned_bytes = config
            .pinned_bytes
            .unwrap_or(default_pinned_bytes.max(2 * wanted_bytes));
        if pinned_bytes < 2 * PIECE_BYTES_MIN {
            return Err(invalid("pinned_bytes", "must be at least 32768"));
        }
        // If the budget has nothing left, allocating the smallest slot reports it.
        let pinned_bytes = pinned_bytes
            .min(usize::try_from(left_bytes).unwrap_or(usize::MAX))
            .max(2 * PIECE_BYTES_MIN);
        // At least two slots: one is filled while the other is in flight.
        let half_bytes = pinned_bytes / 2 / PAGE_BYTES * PAGE_BYTES;
        // A small load takes little memory. Powers of two let the next load reuse the slots.
        let all_bytes = usize::try_from(total_bytes)
            .unwrap_or(usize::MAX)
            .saturating_add(2 * PAGE_BYTES)
            .saturating_mul(growth)
            .checked_next_power_of_two();
        let slot_bytes = wanted_bytes
            .min(half_bytes)
            .min(all_bytes.unwrap_or(usize::MAX).max(PIECE_BYTES_MIN))
            .max(READ_BYTES_MIN * growth);
        Ok(Self {
            slot_bytes,
            slots: slots_max.min(pinned_bytes / slot_bytes).max(1),
            piece_bytes: slot_bytes / growth / PAGE_BYTES * PAGE_BYTES,
            read_bytes: match config.convert {
                None => (slot_bytes / READS_PER_PIECE).next_multiple_of(PAGE_BYTES) as u64,
                Some(_) => u64::MAX,
            },
        })
    }
}

pub(super) fn invalid(field: &'static str, reason: &'static str) -> LoadError {
    LoadErrorKind::InvalidConfig { field, reason }.into()
}
