//! Memory for samples on their way through a transformation.

use std::mem;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::size::room_bytes;
use super::{Dataset, Extent, Field, SampleError, SampleMut, SampleRef};
use crate::{LoadError, LoadErrorKind};

/// Unit of the memory: fields start at multiples of it.
type Unit = u128;
const UNIT_BYTES: usize = size_of::<Unit>();

/// Where each field of a sample lies in memory.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    rooms: Vec<Room>,
    units: usize,
}

#[derive(Clone, Debug)]
struct Room {
    name: String,
    fixed: bool,
    start: usize,
    bytes: usize,
}

impl Layout {
    pub(super) fn of(fields: &[Field]) -> Result<Self, LoadError> {
        let (mut rooms, mut units) = (Vec::with_capacity(fields.len()), 0_usize);
        for field in fields {
            let error = |fault: LoadErrorKind| LoadError::from(fault).with_tensor(field.name());
            let bytes = room_bytes(field).map_err(error)?;
            rooms.push(Room {
                name: field.name().to_owned(),
                fixed: matches!(field.extent(), Extent::Fixed(_)),
                start: units * UNIT_BYTES,
                bytes,
            });
            units = units
                .checked_add(bytes.div_ceil(UNIT_BYTES))
                .filter(|units| *units <= isize::MAX.unsigned_abs() / UNIT_BYTES)
                .ok_or_else(|| error(LoadErrorKind::TotalOverflow))?;
        }
        Ok(Self { rooms, units })
    }

    /// Where the fields are that a sample was written with.
    fn written(
        &self,
        places: &SampleMut<'_>,
        fields: &mut Vec<Range<usize>>,
    ) -> Result<(), SampleError> {
        places.check(self.rooms.iter().map(|room| room.name.as_str()))?;
        for (field, room) in self.rooms.iter().enumerate() {
            let written = places.written(field).expect("checked above");
            fields.push(room.start..room.start + written);
        }
        Ok(())
    }
}

/// Memory that is kept for the next samples: as many pieces as threads have used at one time.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<Vec<Scratch>>);

/// Memory for one sample.
#[derive(Debug, Default)]
struct Scratch {
    memory: Vec<Unit>,
    fields: Vec<Range<usize>>,
    places: SampleMut<'static>,
}

impl Pool {
    /// Read a sample of `source` and hand it on.
    pub(super) fn with(
        &self,
        source: &impl Dataset,
        layout: &Layout,
        index: usize,
        work: impl FnOnce(SampleRef<'_>) -> Result<(), SampleError>,
    ) -> Result<(), SampleError> {
        let kept = self.lock().pop();
        let mut scratch = kept.unwrap_or_default();
        let done = scratch
            .read(source, layout, index)
            .and_then(|()| work(scratch.sample()));
        self.lock().push(scratch);
        done
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Scratch>> {
        // A list is whole at any time.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scratch {
    fn read(
        &mut self,
        source: &impl Dataset,
        layout: &Layout,
        index: usize,
    ) -> Result<(), SampleError> {
        self.fields.clear();
        self.memory.resize(layout.units, 0);
        let mut places = mem::take(&mut self.places).recycled();
        let mut left: &mut [u8] = bytemuck::cast_slice_mut(&mut self.memory);
        for room in &layout.rooms {
            let (place, behind) = left.split_at_mut(room.bytes.next_multiple_of(UNIT_BYTES));
            let place = &mut place[..room.bytes];
            match room.fixed {
                true => places.push_fixed(place),
                false => places.push_variable(place),
            }
            left = behind;
        }
        places.seal();
        let read = source
            .read(index, &mut places)
            .and_then(|()| layout.written(&places, &mut self.fields));
        self.places = places.recycled();
        read
    }

    fn sample(&self) -> SampleRef<'_> {
        SampleRef::new(bytemuck::cast_slice(&self.memory), &self.fields)
    }
}
