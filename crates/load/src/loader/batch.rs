//! A batch on the device.

use std::fmt;
use std::sync::{Arc, Weak};

use bytemuck::Pod;

use crate::Dtype;
use crate::dataset::{Field, FieldShape};
use pinlane_core::{DeviceBuf, DeviceSlice, DeviceSliceMut, Stream};

use super::batch_layout::FieldSpan;
use super::buffers::{BatchBuffers, DeviceBatch};
use super::{LoaderError, Result, SkippedSample};

/// Samples on the device, or on their way there: work on its memory waits for the copy, on any stream.
///
/// Dropping it returns its memory to the loader, for another batch after all work on it is done. Other libraries
/// use the memory by its address, on streams of their own: see [`ready_on`](Self::ready_on) and
/// [`used_on`](Self::used_on). Share it in an [`Arc`] to keep the memory for fields that are exported one by one.
pub struct Batch {
    pub(super) number: u64,
    pub(super) indices: Vec<usize>,
    pub(super) padding: usize,
    pub(super) skipped: Vec<SkippedSample>,
    pub(super) fields: Arc<[Field]>,
    pub(super) spans: Vec<FieldSpan>,
    /// Taken by `drop`.
    pub(super) memory: Option<DeviceBatch>,
    pub(super) buffers: Weak<BatchBuffers>,
}

/// One field of all samples of a batch.
#[derive(Clone, Copy)]
pub struct BatchField<'a> {
    batch: &'a Batch,
    field: &'a Field,
    span: &'a FieldSpan,
}

impl Batch {
    /// Its number in the epoch, from 0.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Number of samples, including padding.
    #[must_use]
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Whether all samples were left out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// Indices of the samples in the dataset, in order.
    #[must_use]
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }

    /// Number of samples, at the end, that only fill it up.
    #[must_use]
    pub fn padding(&self) -> usize {
        self.padding
    }

    /// Samples that could not be read and were left out.
    #[must_use]
    pub fn skipped(&self) -> &[SkippedSample] {
        &self.skipped
    }

    /// The field with this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<BatchField<'_>> {
        self.fields().find(|field| field.name() == name)
    }

    /// All fields, in the order of the dataset.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = BatchField<'_>> {
        let (batch, fields) = (self, self.fields.iter().zip(&self.spans));
        fields.map(move |(field, span)| BatchField { batch, field, span })
    }

    /// The bytes of field number `field`, to change in place.
    ///
    /// # Panics
    /// If there is no such field.
    pub fn bytes_mut(&mut self, field: usize) -> DeviceSliceMut<'_, u8> {
        let span = &self.spans[field];
        let memory = self.memory.as_mut().expect("present until dropped");
        let memory = match span.transformed {
            Some(_) => &mut memory.transformed,
            None => &mut memory.raw,
        };
        memory.range_mut(span.bytes.clone())
    }

    /// The elements of field number `field`, as a type of the same size, to change in place.
    ///
    /// # Errors
    /// If an element has another size.
    ///
    /// # Panics
    /// If there is no such field.
    pub fn typed_mut<T: Pod>(&mut self, field: usize) -> Result<DeviceSliceMut<'_, T>> {
        let checked = self.fields().nth(field).expect("no such field");
        checked.check_element::<T>()?;
        Ok(self.bytes_mut(field).cast())
    }

    /// The bytes of field number `field`, to change while others use the batch. The ledger orders all uses.
    ///
    /// # Panics
    /// If there is no such field.
    #[doc(hidden)]
    pub fn shared_bytes_mut(&self, field: usize) -> DeviceSliceMut<'_, u8> {
        let span = &self.spans[field];
        let memory = match span.transformed {
            Some(_) => &self.memory().transformed,
            None => &self.memory().raw,
        };
        memory.shared_range_mut(span.bytes.clone())
    }

    /// The offsets of field number `field` on the device, if it is variable, like
    /// [`shared_bytes_mut`](Self::shared_bytes_mut).
    ///
    /// # Panics
    /// If there is no such field.
    #[doc(hidden)]
    pub fn shared_offsets_mut(&self, field: usize) -> Option<DeviceSliceMut<'_, u8>> {
        let (start, offsets) = self.spans[field].offsets.as_ref()?;
        let range = *start..start + size_of_val(&offsets[..]);
        Some(self.memory().raw.shared_range_mut(range))
    }

    /// Makes later work on `stream` wait until the batch is on the device, for kernels and libraries that use it by
    /// its address. The host does not wait.
    ///
    /// # Errors
    /// If the stream belongs to another device, or the driver's error, for example while the stream is being
    /// captured.
    pub fn ready_on(&self, stream: &Stream) -> pinlane_core::Result<()> {
        self.in_use()
            .try_for_each(|memory| memory.whole().ready_on(stream))
    }

    /// Records that everything submitted to `stream` so far may use the batch, also what others submitted to it
    /// ([`Stream::from_raw`]). The loader writes another batch into its memory only after that, without a wait on
    /// the host. Where the stream is not known, or if this fails, drop the batch by
    /// [`Device::release_when_idle`](pinlane_core::Device::release_when_idle).
    ///
    /// ```
    /// # fn example(batch: pinlane::load::Batch, device: &pinlane::Device, current_stream: u64)
    /// # -> pinlane::Result<()> {
    /// # use pinlane::Stream;
    /// // SAFETY: the other library's current stream.
    /// let theirs = unsafe { Stream::from_raw(device, current_stream) };
    /// batch.ready_on(&theirs)?;
    /// // … the other library works on the fields, at `field.bytes().device_ptr()` …
    /// batch.used_on(&theirs)?;
    /// drop(batch); // its memory returns to the loader at once
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`ready_on`](Self::ready_on).
    pub fn used_on(&self, stream: &Stream) -> pinlane_core::Result<()> {
        self.in_use()
            .try_for_each(|memory| memory.whole().used_on(stream))
    }

    /// The device memory that has any bytes.
    fn in_use(&self) -> impl Iterator<Item = &DeviceBuf<u8>> {
        let DeviceBatch { raw, transformed } = self.memory();
        [raw, transformed]
            .into_iter()
            .filter(|memory| !memory.is_empty())
    }

    fn memory(&self) -> &DeviceBatch {
        self.memory.as_ref().expect("present until dropped")
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if let (Some(memory), Some(buffers)) = (self.memory.take(), self.buffers.upgrade()) {
            buffers.return_device_batch(memory);
        }
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("number", &self.number)
            .field("indices", &self.indices)
            .finish_non_exhaustive()
    }
}

impl<'a> BatchField<'a> {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.field.name()
    }

    /// Type of its elements, after its device transform.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.span.transformed.unwrap_or(self.field.dtype())
    }

    /// The number of samples, then the shape of a sample. For a variable field, the number of all elements.
    #[must_use]
    pub fn shape(&self) -> Vec<usize> {
        match self.field.shape() {
            FieldShape::Fixed(shape) => [&[self.batch.len()], &shape[..]].concat(),
            FieldShape::Variable { .. } => {
                let elements = self.offsets().and_then(<[u64]>::last);
                vec![elements.map_or(0, |&end| end as usize)]
            }
        }
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> DeviceSlice<'a, u8> {
        let memory = self.batch.memory();
        let memory = match self.span.transformed {
            Some(_) => &memory.transformed,
            None => &memory.raw,
        };
        memory.range(self.span.bytes.clone())
    }

    /// Its elements, as a type of the same size.
    ///
    /// # Errors
    /// If an element has another size.
    pub fn typed<T: Pod>(&self) -> Result<DeviceSlice<'a, T>> {
        self.check_element::<T>()?;
        Ok(self.bytes().cast())
    }

    fn check_element<T>(&self) -> Result<()> {
        let (dtype, element_bytes) = (self.dtype(), size_of::<T>());
        if element_bytes as u64 * 8 == dtype.bits() {
            return Ok(());
        }
        Err(LoaderError::ElementSize {
            field: self.name().to_owned(),
            dtype,
            element_bytes,
        })
    }

    /// Where each sample starts, and the end of the last, in elements. `None` for a fixed field.
    #[must_use]
    pub fn offsets(&self) -> Option<&'a [u64]> {
        self.span.offsets.as_ref().map(|(_, offsets)| &offsets[..])
    }

    /// The [`offsets`](Self::offsets) on the device.
    #[must_use]
    pub fn device_offsets(&self) -> Option<DeviceSlice<'a, u64>> {
        let (start, offsets) = self.span.offsets.as_ref()?;
        let raw = &self.batch.memory().raw;
        Some(raw.range(*start..start + size_of_val(&offsets[..])).cast())
    }
}

impl fmt::Debug for BatchField<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchField")
            .field("name", &self.name())
            .field("dtype", &self.dtype())
            .field("shape", &self.shape())
            .finish()
    }
}
