//! What becomes of the elements of a tensor on the way.

use crate::{Dtype, TensorInfo};

/// Bytes of an element in the file and on the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Conversion {
    from_bytes: u64,
    to_bytes: u64,
}

impl Conversion {
    /// `None` where elements stay as they are.
    pub(super) fn of(tensor: &TensorInfo, to: Option<Dtype>) -> Option<Self> {
        let to = to.filter(|to| *to != tensor.dtype())?;
        Some(Self {
            from_bytes: tensor.dtype().float_kind()?.bytes() as u64,
            to_bytes: to.float_kind()?.bytes() as u64,
        })
    }

    /// Bytes of an element in the file.
    pub(super) fn element_bytes(self) -> u64 {
        self.from_bytes
    }

    /// Bytes on the device for so many in the file, which are whole elements.
    pub(super) fn on_device(self, bytes: u64) -> Option<u64> {
        (bytes / self.from_bytes).checked_mul(self.to_bytes)
    }

    /// The part of so many bytes that is whole elements.
    pub(super) fn whole(self, bytes: u64) -> u64 {
        bytes - bytes % self.from_bytes
    }
}
