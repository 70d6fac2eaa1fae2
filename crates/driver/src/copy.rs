//! Copies: two places and a size.

use crate::{DevicePtr, HostPtr};

/// One end of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Host memory of any kind; the driver knows which addresses are pinned.
    Host(HostPtr),
    /// Device memory.
    Device(DevicePtr),
}

impl Place {
    /// The place `bytes` further.
    ///
    /// # Panics
    /// If the address overflows.
    #[must_use]
    pub fn offset(self, bytes: usize) -> Self {
        match self {
            Self::Host(ptr) => {
                let address = ptr.addr().checked_add(bytes);
                Self::Host(ptr.with_addr(address.expect("host address overflows")))
            }
            Self::Device(ptr) => Self::Device(ptr.offset(bytes)),
        }
    }
}

/// A copy of contiguous bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyOp {
    /// Where the bytes go.
    pub target: Place,
    /// Where the bytes come from.
    pub source: Place,
    /// Number of bytes.
    pub bytes: usize,
}

/// A copy of `rows` rows of `row_bytes` each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copy2d {
    /// First byte written.
    pub target: Place,
    /// Distance between target rows, at least `row_bytes`.
    pub target_pitch_bytes: usize,
    /// First byte read.
    pub source: Place,
    /// Distance between source rows, at least `row_bytes`.
    pub source_pitch_bytes: usize,
    /// Bytes copied from each row.
    pub row_bytes: usize,
    /// Number of rows.
    pub rows: usize,
}
