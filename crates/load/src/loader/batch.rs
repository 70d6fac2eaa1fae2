//! A batch on the device.

use std::fmt;
use std::sync::{Arc, Weak};

use bytemuck::Pod;

use crate::Dtype;
use crate::dataset::{Field, FieldShape};
use pinlane_core::{DeviceSlice, DeviceSliceMut};

use super::depot::Depot;
use super::slot::Berth;
use super::{LoaderError, Skipped};

/// Some samples on the device, or on their way there: work on its memory waits for the copy by itself,
/// on any stream. Dropped, its memory goes back to the loader, which copies the next batch into it when
/// all work on it is done.
pub struct Batch {
    pub(super) number: u64,
    pub(super) indices: Vec<usize>,
    pub(super) padding: usize,
    pub(super) skipped: Vec<Skipped>,
    pub(super) kinds: Arc<[Field]>,
    pub(super) spans: Vec<Span>,
    /// Taken out by `drop`.
    pub(super) berth: Option<Berth>,
    pub(super) depot: Weak<Depot>,
}

/// Where a field of the batch lies.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) dtype: Dtype,
    /// Whether it lies in what the device made of fields.
    pub(super) finished: bool,
    pub(super) start: usize,
    pub(super) bytes: usize,
    /// For a variable field: where its offsets start, and what they are.
    pub(super) offsets: Option<(usize, Vec<u64>)>,
}

/// One field of all samples of a batch.
#[derive(Clone, Copy)]
pub struct BatchField<'a> {
    batch: &'a Batch,
    kind: &'a Field,
    span: &'a Span,
}

impl Batch {
    /// Which batch of its epoch it is, from 0.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Samples that are in it, padding included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Whether none are: all were left out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// Numbers of the samples in the dataset, in their order.
    #[must_use]
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }

    /// How many samples, the last ones, are there only to fill it up.
    #[must_use]
    pub fn padding(&self) -> usize {
        self.padding
    }

    /// Samples that could not be had and were left out.
    #[must_use]
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// The field of this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<BatchField<'_>> {
        self.fields().find(|field| field.name() == name)
    }

    /// All fields, as the dataset has them.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = BatchField<'_>> {
        self.kinds
            .iter()
            .zip(&self.spans)
            .map(|(kind, span)| BatchField {
                batch: self,
                kind,
                span,
            })
    }

    /// A field's bytes, to be changed in place: field `field` as the dataset numbers them.
    ///
    /// # Panics
    /// When there is no such field.
    pub fn bytes_mut(&mut self, field: usize) -> DeviceSliceMut<'_, u8> {
        let span = &self.spans[field];
        let berth = self.berth.as_mut().expect("there until it is dropped");
        let memory = match span.finished {
            true => &mut berth.finished,
            false => &mut berth.raw,
        };
        memory.range_mut(span.start..span.start + span.bytes)
    }

    fn berth(&self) -> &Berth {
        self.berth.as_ref().expect("there until it is dropped")
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let berth = self.berth.take();
        if let (Some(depot), Some(berth)) = (self.depot.upgrade(), berth) {
            depot.give_back(berth);
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
        self.kind.name()
    }

    /// Type of its elements, after the device has made of it what the loader was told to.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.span.dtype
    }

    /// Samples first, then the shape of a sample; all elements in a row for a variable field.
    #[must_use]
    pub fn shape(&self) -> Vec<usize> {
        match self.kind.shape() {
            FieldShape::Fixed(shape) => {
                let samples = [self.batch.len()];
                samples.into_iter().chain(shape.iter().copied()).collect()
            }
            FieldShape::Variable { .. } => {
                let offsets = self.offsets().unwrap_or_default();
                let elements = offsets.last().map_or(0, |&end| end as usize);
                vec![elements]
            }
        }
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> DeviceSlice<'a, u8> {
        let berth = self.batch.berth();
        let memory = match self.span.finished {
            true => &berth.finished,
            false => &berth.raw,
        };
        memory.range(self.span.start..self.span.start + self.span.bytes)
    }

    /// Its elements, as a type of the same size.
    ///
    /// # Errors
    /// When an element has another size.
    pub fn typed<T: Pod>(&self) -> Result<DeviceSlice<'a, T>, LoaderError> {
        let element_bytes = size_of::<T>();
        if element_bytes as u64 * 8 != self.dtype().bits() {
            return Err(LoaderError::ElementSize {
                field: self.name().to_owned(),
                dtype: self.dtype(),
                element_bytes,
            });
        }
        Ok(self.bytes().cast())
    }

    /// Where each sample of a variable field begins, and the end of the last, in elements. `None` for a
    /// fixed field.
    #[must_use]
    pub fn offsets(&self) -> Option<&'a [u64]> {
        let (_, offsets) = self.span.offsets.as_ref()?;
        Some(offsets)
    }

    /// The same on the device.
    #[must_use]
    pub fn device_offsets(&self) -> Option<DeviceSlice<'a, u64>> {
        let (start, offsets) = self.span.offsets.as_ref()?;
        let bytes = offsets.len() * size_of::<u64>();
        let raw = &self.batch.berth().raw;
        Some(raw.range(*start..start + bytes).cast())
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
