//! Where a sample is written.

use super::SampleError;

/// The places of one sample's fields, in pinned memory. What a fixed field is not written with is
/// whatever was there before.
#[derive(Debug)]
pub struct SampleMut<'a> {
    places: Vec<Place<'a>>,
}

#[derive(Debug)]
enum Place<'a> {
    Fixed(&'a mut [u8]),
    Variable {
        room: &'a mut [u8],
        written: Option<usize>,
    },
}

impl<'a> SampleMut<'a> {
    /// A sample without fields yet. The loader makes these; tests of a dataset may, too.
    #[must_use]
    pub fn new() -> Self {
        Self { places: Vec::new() }
    }

    /// The next field is fixed, and lies here.
    pub fn push_fixed(&mut self, place: &'a mut [u8]) {
        self.places.push(Place::Fixed(place));
    }

    /// The next field is variable, and has this much room.
    pub fn push_variable(&mut self, room: &'a mut [u8]) {
        let written = None;
        self.places.push(Place::Variable { room, written });
    }

    /// The bytes of a fixed field.
    ///
    /// # Panics
    /// When there is no such field, or it is a variable one.
    pub fn fixed(&mut self, field: usize) -> &mut [u8] {
        match &mut self.places[field] {
            Place::Fixed(place) => place,
            Place::Variable { .. } => panic!("field {field} is variable"),
        }
    }

    /// Room for `bytes` bytes of a variable field: that is what the sample has of it.
    ///
    /// # Errors
    /// When the field allows for less.
    ///
    /// # Panics
    /// When there is no such field, or it is a fixed one.
    pub fn variable(&mut self, field: usize, bytes: usize) -> Result<&mut [u8], SampleError> {
        let Place::Variable { room, written } = &mut self.places[field] else {
            panic!("field {field} is fixed");
        };
        let at_most = room.len();
        if bytes > at_most {
            let says = format!("field {field} has {bytes} bytes, at most {at_most} are allowed");
            return Err(says.into());
        }
        *written = Some(bytes);
        Ok(&mut room[..bytes])
    }

    /// A sample without fields, in the memory of this one: making samples one behind the other this
    /// way allocates nothing.
    #[must_use]
    pub fn recycled<'b>(mut self) -> SampleMut<'b> {
        self.places.clear();
        // The standard library collects in place where sizes are the same, as they are here.
        let none = |_| -> Place<'b> { unreachable!("there are none left") };
        SampleMut {
            places: self.places.into_iter().map(none).collect(),
        }
    }

    /// Bytes that were asked for in a variable field; `None` if none were, or if it is fixed.
    #[must_use]
    pub fn written(&self, field: usize) -> Option<usize> {
        match self.places.get(field)? {
            Place::Variable { written, .. } => *written,
            Place::Fixed(_) => None,
        }
    }
}

impl Default for SampleMut<'_> {
    fn default() -> Self {
        Self::new()
    }
}
