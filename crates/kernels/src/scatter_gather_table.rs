//! The table that the scattering and gathering kernels read.

use bytemuck::{Pod, Zeroable};
use pinlane_driver::DevicePtr;

/// A piece to copy, as `pinlane_scatter` and `pinlane_gather` read it. The kernels take the device
/// address of a table of pieces, which must be a multiple of 8.
///
/// ```
/// use pinlane_driver::DevicePtr;
/// use pinlane_kernels::Piece;
///
/// let table = [
///     Piece::new(DevicePtr(0x7000), 0, 100),
///     Piece::new(DevicePtr(0x9001), 112, 3),
/// ];
/// let to_upload: &[u8] = bytemuck::cast_slice(&table);
/// assert_eq!(to_upload.len(), 48);
/// ```
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
pub struct Piece {
    /// Device address of the piece outside the staged buffer.
    pub place: u64,
    /// Offset in the staged buffer. Copies are fastest if this and `place` are equal modulo 16.
    pub offset_bytes: u64,
    /// Length, which may be 0.
    pub bytes: u64,
}

impl Piece {
    /// A piece of `bytes` bytes, at `place` and at `offset_bytes` of the staged buffer.
    #[must_use]
    pub fn new(place: DevicePtr, offset_bytes: usize, bytes: usize) -> Self {
        Self {
            place: place.0,
            offset_bytes: offset_bytes as u64,
            bytes: bytes as u64,
        }
    }
}
