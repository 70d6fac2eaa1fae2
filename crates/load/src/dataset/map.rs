//! Datasets whose samples are those of another one, transformed by a function.

use std::mem;
use std::ops::Range;
use std::sync::Mutex;

use pinlane_core::internal::lock;

use super::{Dataset, Field, Result, SampleMut, SampleRef};
use crate::{LoadError, LoadErrorKind};

/// A dataset whose samples go through a function. Made by [`Dataset::map`].
///
/// A sample of the source is read into reused memory; the function writes its result to where it is needed.
#[derive(Debug)]
pub struct Map<D, F> {
    source: D,
    fields: Vec<Field>,
    transform: F,
    places: Result<Vec<Range<usize>>, LoadError>,
    /// Idle buffers: as many as threads have read at the same time.
    buffers: Mutex<Vec<SampleBuffer>>,
}

impl<D: Dataset, F> Map<D, F> {
    pub(super) fn new(source: D, fields: Vec<Field>, transform: F) -> Self {
        Self {
            places: places(source.fields()),
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
    F: Fn(usize, SampleRef<'_>, &mut SampleMut<'_>) -> Result<()> + Send + Sync + 'static,
{
    fn len(&self) -> usize {
        self.source.len()
    }

    fn fields(&self) -> &[Field] {
        &self.fields
    }

    fn read(&self, index: usize, sample: &mut SampleMut<'_>) -> Result<()> {
        let places = self.places.as_ref().map_err(Clone::clone)?;
        let mut buffer = lock(&self.buffers).pop().unwrap_or_default();
        let done = buffer
            .read(&self.source, places, index)
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
fn places(fields: &[Field]) -> Result<Vec<Range<usize>>, LoadError> {
    const BYTES_MAX: usize = isize::MAX.unsigned_abs() / UNIT_BYTES * UNIT_BYTES;
    let (mut places, mut end) = (Vec::with_capacity(fields.len()), 0_usize);
    for field in fields {
        let bytes = field.room_bytes().map_err(|fault| field.error(fault))?;
        let start = end.next_multiple_of(UNIT_BYTES);
        end = start.saturating_add(bytes);
        if end > BYTES_MAX {
            return Err(field.error(LoadErrorKind::TotalOverflow));
        }
        places.push(start..end);
    }
    Ok(places)
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
        places: &[Range<usize>],
        index: usize,
    ) -> Result<SampleRef<'a>> {
        self.ranges.clear();
        let end = places.last().map_or(0, |last| last.end);
        self.memory.resize(end.div_ceil(UNIT_BYTES), 0);
        let mut sample = mem::take(&mut self.sample).recycled();
        let mut left: &mut [u8] = bytemuck::cast_slice_mut(&mut self.memory);
        for (field, range) in source.fields().iter().zip(places) {
            let (room, rest) = left.split_at_mut(range.len().next_multiple_of(UNIT_BYTES));
            sample.push(field, &mut room[..range.len()]);
            left = rest;
        }
        sample.seal();
        let read = source.read(index, &mut sample);
        let read = read.and_then(|()| sample.check());
        if read.is_ok() {
            for (field, range) in places.iter().enumerate() {
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
