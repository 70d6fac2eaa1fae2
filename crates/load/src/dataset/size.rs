//! How much room a field takes.

use crate::{Extent, Field, LoadErrorKind};

/// Bytes of a field in a sample: exactly these if it is fixed, at most if it is variable.
pub(super) fn room_bytes(field: &Field) -> Result<usize, LoadErrorKind> {
    let shape: Vec<u64> = match field.extent() {
        Extent::Fixed(shape) => shape.iter().map(|dim| *dim as u64).collect(),
        Extent::Variable { at_most } => vec![*at_most as u64],
    };
    let dtype = field.dtype();
    let bytes = dtype.bytes_of(&shape)?;
    // What is in memory is shorter than that.
    isize::try_from(bytes)
        .map(|bytes| bytes.unsigned_abs())
        .map_err(|_| LoadErrorKind::SizeOverflow { dtype, shape })
}
