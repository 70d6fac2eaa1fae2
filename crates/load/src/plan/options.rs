//! Sizes that a plan keeps to.

use crate::{Fault, LoadError};

/// Sizes that a plan keeps to. The defaults are good for a GPU and a disk of today.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanOptions {
    /// Tensors start at multiples of this on the device: a power of two.
    pub align_bytes: u64,
    /// The most bytes of a device allocation, but for a tensor that is larger alone.
    pub allocation_bytes: u64,
    /// The most bytes of a piece: what a pinned slot holds. A multiple of the grain.
    pub piece_bytes: u64,
    /// Pieces are cut at multiples of this in the file: a power of two. A piece that is rounded out
    /// to whole grains, as direct reading wants it, still fits a slot.
    pub grain_bytes: u64,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            align_bytes: 256,
            allocation_bytes: 1 << 30,
            piece_bytes: 8 << 20,
            grain_bytes: 4096,
        }
    }
}

impl PlanOptions {
    pub(super) fn check(&self) -> Result<(), LoadError> {
        let bad = |field, reason| Err(LoadError::from(Fault::BadPlan { field, reason }));
        if !self.align_bytes.is_power_of_two() {
            bad("align_bytes", "must be a power of two")
        } else if self.allocation_bytes == 0 {
            bad("allocation_bytes", "must not be zero")
        } else if !self.grain_bytes.is_power_of_two() {
            bad("grain_bytes", "must be a power of two")
        } else if self.piece_bytes == 0 || !self.piece_bytes.is_multiple_of(self.grain_bytes) {
            bad("piece_bytes", "must be a multiple of grain_bytes, not zero")
        } else {
            Ok(())
        }
    }

    /// Whether an element that is never torn fits a piece, though it starts with the last byte of
    /// a grain.
    pub(super) fn check_elements(&self, element_bytes: u64) -> Result<(), LoadError> {
        match self.piece_bytes - (self.grain_bytes - 1) >= element_bytes {
            true => Ok(()),
            false => Err(Fault::BadPlan {
                field: "piece_bytes",
                reason: "must have room for an element that starts at the end of a grain",
            }
            .into()),
        }
    }
}
