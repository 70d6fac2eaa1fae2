//! Arrays that are in memory.

use super::{Arrays, Column, Home};
use crate::dataset::size::room_bytes;
use crate::{Extent, Field, LoadError, LoadErrorKind, SampleError};

/// Bytes of whatever holds them.
pub(super) struct Memory(Box<dyn AsRef<[u8]> + Send + Sync>);

impl Memory {
    pub(super) fn copy_to(&self, start: usize, place: &mut [u8]) -> Result<(), SampleError> {
        // What holds the bytes is foreign code, and may say something else than it did at first.
        let row = self.0.as_ref().as_ref().get(start..start + place.len());
        place.copy_from_slice(row.ok_or("the array in memory has become shorter")?);
        Ok(())
    }
}

impl Arrays {
    /// Arrays that are in memory: for each field the bytes of all samples, one behind the other.
    ///
    /// # Errors
    /// [`LoadErrorKind::NoFields`] if there are none, [`LoadErrorKind::NotFixed`] for a variable field,
    /// [`LoadErrorKind::ArrayLength`] where bytes are missing or left over.
    pub fn from_memory<B>(
        samples: usize,
        arrays: impl IntoIterator<Item = (Field, B)>,
    ) -> Result<Self, LoadError>
    where
        B: AsRef<[u8]> + Send + Sync + 'static,
    {
        let (mut fields, mut columns) = (Vec::new(), Vec::new());
        for (field, bytes) in arrays {
            let row_bytes = checked(samples, &field, bytes.as_ref())
                .map_err(|fault| LoadError::from(fault).with_tensor(field.name()))?;
            fields.push(field);
            columns.push(Column {
                home: Home::Memory(Memory(Box::new(bytes))),
                start: 0,
                row_bytes,
            });
        }
        match fields.is_empty() {
            true => Err(LoadErrorKind::NoFields.into()),
            false => Ok(Self {
                samples,
                fields,
                columns,
                #[cfg(feature = "mmap")]
                files: Vec::new(),
            }),
        }
    }
}

/// Bytes of a row, after a look at the length.
fn checked(samples: usize, field: &Field, bytes: &[u8]) -> Result<usize, LoadErrorKind> {
    if !matches!(field.extent(), Extent::Fixed(_)) {
        return Err(LoadErrorKind::NotFixed);
    }
    let row_bytes = room_bytes(field)?;
    match row_bytes.checked_mul(samples) {
        Some(expected) if expected == bytes.len() => Ok(row_bytes),
        _ => Err(LoadErrorKind::ArrayLength {
            bytes: bytes.len(),
            samples,
            row_bytes,
        }),
    }
}
