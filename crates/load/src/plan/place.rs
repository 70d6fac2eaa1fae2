//! Where tensors lie on the device.

use super::PlanOptions;
use super::convert::Conversion;
use super::pieces::order;
use crate::{Fault, LoadError, TensorInfo};

/// Where a tensor lies on the device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Placement {
    /// Number of the allocation; an empty tensor may be in none that is there.
    pub allocation: usize,
    /// Where it starts in there.
    pub offset_bytes: u64,
    /// How many bytes it has there.
    pub len_bytes: u64,
}

/// Bytes of the allocations, and the place of each tensor. Tensors lie one behind the other as they
/// do in the files, so that what is read together is written together.
pub(super) fn place(
    tensors: &[TensorInfo],
    conversions: &[Option<Conversion>],
    options: &PlanOptions,
) -> Result<(Vec<u64>, Vec<Placement>), LoadError> {
    let mut allocations: Vec<u64> = Vec::new();
    let mut placements = vec![
        Placement {
            allocation: 0,
            offset_bytes: 0,
            len_bytes: 0,
        };
        tensors.len()
    ];
    let mut total: u64 = 0;
    for number in order(tensors) {
        let len_bytes = tensors[number].len_bytes();
        let len_bytes = match conversions[number] {
            None => len_bytes,
            Some(conversion) => conversion.on_device(len_bytes).ok_or(Fault::TooMuch)?,
        };
        if len_bytes == 0 {
            continue;
        }
        let end_in = |allocated: u64| {
            let start = allocated.checked_next_multiple_of(options.align_bytes)?;
            Some((start, start.checked_add(len_bytes)?))
        };
        let room = allocations
            .last()
            .and_then(|allocated| end_in(*allocated))
            .filter(|(_, end)| *end <= options.allocation_bytes);
        let (offset_bytes, end) = room.unwrap_or((0, len_bytes));
        match allocations.last_mut() {
            Some(last) if room.is_some() => *last = end,
            _ => allocations.push(len_bytes),
        }
        total = total
            .checked_add(len_bytes)
            .and_then(|total| total.checked_next_multiple_of(options.align_bytes))
            .ok_or(Fault::TooMuch)?;
        placements[number] = Placement {
            allocation: allocations.len() - 1,
            offset_bytes,
            len_bytes,
        };
    }
    Ok((allocations, placements))
}
