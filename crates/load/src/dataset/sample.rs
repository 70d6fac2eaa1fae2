//! One sample to write or to read, the room it needs, and why it could not be read.

use std::error::Error;
use std::ops::{Deref, Range};
use std::{fmt, iter};

use bytemuck::{NoUninit, Pod};

use super::Result;
use crate::{Field, FieldShape, LoadError, LoadErrorKind};

impl Field {
    /// Bytes that a sample reserves for the field.
    pub(crate) fn room_bytes(&self) -> Result<usize, LoadErrorKind> {
        let dtype = self.dtype();
        let shape: Vec<u64> = match self.shape() {
            FieldShape::Fixed(shape) => shape.iter().map(|dim| *dim as u64).collect(),
            FieldShape::Variable { at_most } => vec![*at_most as u64],
        };
        let bytes = match self.is_fixed() {
            true => u128::from(dtype.bytes_of(&shape)?),
            // May end inside a byte: no sample has to have this many elements.
            false => (u128::from(shape[0]) * u128::from(dtype.bits())).div_ceil(8),
        };
        isize::try_from(bytes)
            .map(isize::unsigned_abs)
            .map_err(|_| LoadErrorKind::SizeOverflow { dtype, shape })
    }

    /// An error that names the field.
    pub(crate) fn error(&self, fault: LoadErrorKind) -> LoadError {
        LoadError::from(fault).with_tensor(self.name())
    }
}

/// The memory of one sample's fields, to be written.
///
/// Every field must be written, even with 0 elements. [`write`](Self::write) writes typed values;
/// [`fixed`](Self::fixed) and [`variable`](Self::variable) return bytes with old data: fill all of them.
#[derive(Debug, Default)]
pub struct SampleMut<'a> {
    slots: Vec<FieldSlot<'a>>,
    /// Made by the library, which checks that it gets the same one back.
    sealed: bool,
}

#[derive(Debug)]
struct FieldSlot<'a> {
    field: &'a Field,
    room: &'a mut [u8],
    /// Bytes that the sample has of the field.
    written: Option<usize>,
}

impl<'a> SampleMut<'a> {
    /// A sample without fields. The loader makes these, and so do tests of a dataset.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Add the next field and its memory: for a variable field, room for the longest value.
    pub fn push(&mut self, field: &'a Field, room: &'a mut [u8]) {
        self.sealed = false;
        // An empty fixed field needs no writing.
        let written = (field.is_fixed() && room.is_empty()).then_some(0);
        self.slots.push(FieldSlot {
            field,
            room,
            written,
        });
    }

    /// Write the values of the field with this name.
    ///
    /// ```
    /// use pinlane::load::Dtype;
    /// use pinlane::load::dataset::{Field, SampleMut};
    ///
    /// let (field, mut bytes) = (Field::fixed("label", Dtype::I64, []), [0; 8]);
    /// let mut sample = SampleMut::new();
    /// sample.push(&field, &mut bytes);
    /// assert!(sample.write("label", &[3_i32]).is_err()); // not 64 bits
    /// sample.write("label", &[3_i64])?;
    /// assert_eq!(i64::from_le_bytes(bytes), 3);
    /// # Ok::<(), pinlane::load::SampleError>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such field, its elements are not of the size of `T`, or it does not take this many.
    pub fn write<T: NoUninit>(&mut self, name: &str, values: &[T]) -> Result<()> {
        let slot = self.slots.iter_mut().find(|slot| slot.field.name() == name);
        let slot = slot.ok_or_else(|| no_such_field(name))?;
        check_element::<T>(slot.field)?;
        let bytes: &[u8] = bytemuck::cast_slice(values);
        if slot.field.is_fixed() && bytes.len() != slot.room.len() {
            let (given, takes) = (values.len(), slot.room.len() / size_of::<T>().max(1));
            return Err(format!("field `{name}` takes {takes} elements, not {given}").into());
        }
        slot.take(bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    /// The bytes of a fixed field. Fill all of them.
    ///
    /// # Panics
    /// If there is no such field, or it is variable.
    pub fn fixed(&mut self, field: usize) -> &mut [u8] {
        let slot = &mut self.slots[field];
        assert!(slot.field.is_fixed(), "field {field} is variable");
        slot.written = Some(slot.room.len());
        slot.room
    }

    /// `bytes` bytes for the value of a variable field. Fill all of them.
    ///
    /// # Errors
    /// If the field does not take this many.
    ///
    /// # Panics
    /// If there is no such field, or it is fixed.
    pub fn variable(&mut self, field: usize, bytes: usize) -> Result<&mut [u8]> {
        let slot = &mut self.slots[field];
        assert!(!slot.field.is_fixed(), "field {field} is fixed");
        slot.take(bytes)
    }

    /// A sample without fields that reuses the memory of this one, so that making it allocates nothing.
    #[must_use]
    pub fn recycled<'b>(mut self) -> SampleMut<'b> {
        self.slots.clear();
        // The standard library collects in place, since both types have the same size.
        let none = |_| -> FieldSlot<'b> { unreachable!("the list is empty") };
        SampleMut {
            slots: self.slots.into_iter().map(none).collect(),
            sealed: false,
        }
    }

    /// Bytes that the sample has of a field. `None` if it was not written, or if there is no such field.
    #[must_use]
    pub fn written(&self, field: usize) -> Option<usize> {
        self.slots.get(field)?.written
    }

    /// Mark it as having all fields. A dataset can replace it by another sample, but never by a sealed one.
    pub(crate) fn seal(&mut self) {
        self.sealed = true;
    }

    /// Check that it is still the sample that was sealed, and that every field was written.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.sealed {
            return Err("the dataset replaced the sample it was given by another one".into());
        }
        match self.slots.iter().find(|slot| slot.written.is_none()) {
            Some(slot) => Err(format!("field `{}` was not written", slot.field.name()).into()),
            None => Ok(()),
        }
    }
}

impl FieldSlot<'_> {
    fn take(&mut self, bytes: usize) -> Result<&mut [u8]> {
        let (name, room_bytes) = (self.field.name(), self.room.len());
        if bytes > room_bytes {
            let reason = format!("field `{name}` has {bytes} bytes; the limit is {room_bytes}");
            return Err(reason.into());
        }
        self.written = Some(bytes);
        Ok(&mut self.room[..bytes])
    }
}

/// A sample that has been read: the input of a [`Map`](super::Map).
#[derive(Clone, Copy, Debug)]
pub struct SampleRef<'a> {
    pub(super) memory: &'a [u8],
    pub(super) fields: &'a [Field],
    /// The bytes of each field.
    pub(super) ranges: &'a [Range<usize>],
}

impl<'a> SampleRef<'a> {
    /// The bytes of a field. They are aligned to 16 bytes, so they can be cast to any element type.
    ///
    /// # Panics
    /// If there is no such field.
    #[must_use]
    pub fn field(self, field: usize) -> &'a [u8] {
        &self.memory[self.ranges[field].clone()]
    }

    /// The values of the field with this name.
    ///
    /// # Errors
    /// If there is no such field, or its elements are not of the size of `T`.
    pub fn values<T: Pod>(self, name: &str) -> Result<&'a [T]> {
        let at = self.fields.iter().position(|field| field.name() == name);
        let at = at.ok_or_else(|| no_such_field(name))?;
        check_element::<T>(&self.fields[at])?;
        let values = bytemuck::try_cast_slice(self.field(at));
        Ok(values.map_err(|error| format!("field `{name}`: {error}"))?)
    }

    /// Number of fields.
    #[must_use]
    pub fn fields(self) -> usize {
        self.fields.len()
    }
}

fn no_such_field(name: &str) -> SampleError {
    format!("the sample has no field `{name}`").into()
}

fn check_element<T>(field: &Field) -> Result<()> {
    let (name, dtype, bytes) = (field.name(), field.dtype(), size_of::<T>());
    if bytes as u64 * 8 == dtype.bits() {
        return Ok(());
    }
    Err(format!("field `{name}` holds {dtype}, not elements of {bytes} bytes").into())
}

/// Why a sample could not be read. Converts from any error and from text, and derefs to the original error.
///
/// ```
/// use std::error::Error;
/// use pinlane::load::SampleError;
///
/// let error = SampleError::from(std::io::Error::other("disk failure"));
/// assert!(error.is::<std::io::Error>() && error.source().is_none());
/// assert_eq!(error.to_string(), "disk failure");
/// ```
#[derive(Debug)]
pub struct SampleError {
    cause: Box<dyn Error + Send + Sync>,
    ends_epoch: bool,
}

impl SampleError {
    /// An error that ends the epoch even if bad samples are skipped: it is not the sample's fault, such as a
    /// user's wish to stop.
    pub fn ending_epoch(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            cause: cause.into(),
            ends_epoch: true,
        }
    }

    /// Whether it ends the epoch even if bad samples are skipped.
    #[must_use]
    pub fn ends_epoch(&self) -> bool {
        self.ends_epoch
    }

    /// The original error.
    #[must_use]
    pub fn cause(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.cause
    }

    /// The error and its sources in one line. A source that its error already quotes is not repeated.
    pub(crate) fn chain(&self) -> String {
        /// Stops cycles.
        const DEPTH_MAX: usize = 16;
        let sources = iter::successors(self.cause.source(), |&error| error.source());
        let mut text = self.cause.to_string();
        for source in sources.take(DEPTH_MAX).map(ToString::to_string) {
            if !text.ends_with(&source) {
                text = format!("{text}: {source}");
            }
        }
        text
    }
}

impl Deref for SampleError {
    type Target = dyn Error + Send + Sync;

    fn deref(&self) -> &Self::Target {
        self.cause()
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for SampleError {
    fn from(error: E) -> Self {
        Self {
            cause: error.into(),
            ends_epoch: false,
        }
    }
}

impl fmt::Display for SampleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}
