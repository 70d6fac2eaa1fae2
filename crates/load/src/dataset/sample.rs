//! Where a sample is written.

use super::SampleError;

/// The places of one sample's fields, in pinned memory.
///
/// Whoever takes the place of a field fills all of it: what is left as it is there is whatever was
/// there before. A field whose place is not taken at all is an error of the sample, be it fixed or
/// variable. A variable field of which the sample has nothing is written with 0 bytes.
#[derive(Debug)]
pub struct SampleMut<'a> {
    places: Vec<Place<'a>>,
    /// The library has made it, and looks whether it gets this one back.
    sealed: bool,
}

#[derive(Debug)]
struct Place<'a> {
    room: &'a mut [u8],
    variable: bool,
    /// Bytes that the sample has of it.
    written: Option<usize>,
}

impl<'a> SampleMut<'a> {
    /// A sample without fields yet. The loader makes these; tests of a dataset may, too.
    #[must_use]
    pub fn new() -> Self {
        Self {
            places: Vec::new(),
            sealed: false,
        }
    }

    /// The next field is fixed, and lies here.
    pub fn push_fixed(&mut self, place: &'a mut [u8]) {
        // Where there is nothing to write, nothing can be left out.
        let written = place.is_empty().then_some(0);
        self.push(place, false, written);
    }

    /// The next field is variable, and has this much room.
    pub fn push_variable(&mut self, room: &'a mut [u8]) {
        self.push(room, true, None);
    }

    fn push(&mut self, room: &'a mut [u8], variable: bool, written: Option<usize>) {
        self.sealed = false;
        self.places.push(Place {
            room,
            variable,
            written,
        });
    }

    /// The bytes of a fixed field, to be written, all of them.
    ///
    /// # Panics
    /// When there is no such field, or it is a variable one.
    pub fn fixed(&mut self, field: usize) -> &mut [u8] {
        let place = &mut self.places[field];
        assert!(!place.variable, "field {field} is variable");
        place.written = Some(place.room.len());
        place.room
    }

    /// Room for `bytes` bytes of a variable field: that is what the sample has of it.
    ///
    /// # Errors
    /// When the field allows for less.
    ///
    /// # Panics
    /// When there is no such field, or it is a fixed one.
    pub fn variable(&mut self, field: usize, bytes: usize) -> Result<&mut [u8], SampleError> {
        let place = &mut self.places[field];
        assert!(place.variable, "field {field} is fixed");
        let at_most = place.room.len();
        if bytes > at_most {
            let says = format!("field {field} has {bytes} bytes, at most {at_most} are allowed");
            return Err(says.into());
        }
        place.written = Some(bytes);
        Ok(&mut place.room[..bytes])
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
            sealed: false,
        }
    }

    /// Bytes that the sample has of a field: those that were asked for in a variable one, all in a
    /// fixed one. `None` if nobody took its place, or if there is no such field.
    #[must_use]
    pub fn written(&self, field: usize) -> Option<usize> {
        self.places.get(field)?.written
    }

    /// All fields are there: from here on it is known from any other sample. Safe code of a dataset
    /// can put another in its place, but never another that is sealed.
    pub(crate) fn seal(&mut self) {
        self.sealed = true;
    }

    /// Whether it is still the one that was sealed, and all of it was written. The names are those of
    /// the fields, in their order.
    pub(crate) fn check<'n>(
        &self,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<(), SampleError> {
        if !self.sealed {
            return Err("the dataset has put another sample in the place of the given one".into());
        }
        let mut parts = names.into_iter().zip(&self.places);
        match parts.find(|(_, place)| place.written.is_none()) {
            Some((name, _)) => Err(format!("field `{name}` was not written").into()),
            None => Ok(()),
        }
    }
}

impl Default for SampleMut<'_> {
    fn default() -> Self {
        Self::new()
    }
}
