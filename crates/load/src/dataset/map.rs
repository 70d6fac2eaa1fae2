//! Samples transformed by a function.

use std::mem;
use std::ops::Range;
use std::sync::Mutex;

use pinlane_core::internal::lock;

use super::{Dataset, Field, SampleError, SampleMut, SampleRef};
use crate::{LoadError, LoadErrorKind};

/// A dataset whose samples go through a function. Made by [`Dataset::map`].
///
/// A sample of the source is read into memory that is reused for the next ones. The function writes its
/// result directly to where it is needed.
#[derive(Debug)]
pub struct Map<D, F> {
    source: D,
    fields: Vec<Field>,
    transform: F,
    layout: Result<SampleLayout, LoadError>,
    /// Idle buffers: as many as threads have read at the same time.
    buffers: Mutex<Vec<SampleBuffer>>,
}

impl<D: Dataset, F> Map<D, F> {
    pub(super) fn new(source: D, fields: Vec<Field>, transform: F) -> Self {
        Self {
            layout: SampleLayout::new(source.fields()),
            source,
            fields,
            transform,
            buffers: Mutex::default(),
        }
    }

    /// The dataset that samples come from.
    pub fn inner(&self) -> &D {
        &self.source
    }
}

impl<D, F> Dataset for Map<D, F>
where
    D: Dataset,
    F: Fn(usize, SampleRef<'_>, &mut SampleMut<'_>) -> Result<(), SampleError>
        + Send
        + Sync
        + 'static,
{
    fn len(&self) -> usize {
        self.source.len()
    }

    fn fields(&self) -> &[Field] {
        &self.fields
    }

    fn read(&self, index: usize, sample: &mut SampleMut<'_>) -> Result<(), SampleError> {
        let layout = self.layout.as_ref().map_err(Clone::clone)?;
        let idle = lock(&self.buffers).pop();
        let mut buffer = idle.unwrap_or_default();
        let done = buffer
            .read(&self.source, layout, index)
            .and_then(|input| (self.transform)(index, input, sample));
        lock(&self.buffers).push(buffer);
        done
    }

    fn origin(&self, index: usize) -> String {
        self.source.origin(index)
    }
}

/// Fields start at multiples of this unit.
type Unit = u128;
const UNIT_BYTES: usize = size_of::<Unit>();

/// Where each field of a sample lies in memory.
#[derive(Clone, Debug)]
struct SampleLayout {
    fields: Vec<Range<usize>>,
    units: usize,
}

impl SampleLayout {
    fn new(fields: &[Field]) -> Result<Self, LoadError> {
        let (mut ranges, mut units) = (Vec::with_capacity(fields.len()), 0_usize);
        for field in fields {
            let bytes = field.room_bytes().map_err(|fault| field.error(fault))?;
            let start = units * UNIT_BYTES;
            units = units
                .checked_add(bytes.div_ceil(UNIT_BYTES))
                .filter(|units| *units <= isize::MAX.unsigned_abs() / UNIT_BYTES)
                .ok_or_else(|| field.error(LoadErrorKind::TotalOverflow))?;
            ranges.push(start..start + bytes);
        }
        Ok(Self {
            fields: ranges,
            units,
        })
    }
}

/// Memory for one sample of the source.
#[derive(Debug, Default)]
struct SampleBuffer {
    memory: Vec<Unit>,
    /// What the sample has of each field.
    ranges: Vec<Range<usize>>,
    sample: SampleMut<'static>,
}

impl SampleBuffer {
    fn read<'a>(
        &'a mut self,
        source: &'a impl Dataset,
        layout: &SampleLayout,
        index: usize,
    ) -> Result<SampleRef<'a>, SampleError> {
        self.ranges.clear();
        self.memory.resize(layout.units, 0);
        let mut sample = mem::take(&mut self.sample).recycled();
        let mut left: &mut [u8] = bytemuck::cast_slice_mut(&mut self.memory);
        for (field, range) in source.fields().iter().zip(&layout.fields) {
            let (room, rest) = left.split_at_mut(range.len().next_multiple_of(UNIT_BYTES));
            sample.push(field, &mut room[..range.len()]);
            left = rest;
        }
        sample.seal();
        let read = source
            .read(index, &mut sample)
            .and_then(|()| sample.check());
        if read.is_ok() {
            for (field, range) in layout.fields.iter().enumerate() {
                let written = sample.written(field).expect("checked above");
                self.ranges.push(range.start..range.start + written);
            }
        }
        self.sample = sample.recycled();
        read?;
        Ok(SampleRef {
            memory: bytemuck::cast_slice(&self.memory),
            fields: source.fields(),
            ranges: &self.ranges,
        })
    }
}
