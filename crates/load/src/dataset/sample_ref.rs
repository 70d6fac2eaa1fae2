//! A sample that has been read.

use std::ops::Range;

/// A sample that has been read: what a [`Map`](super::Map) transforms.
#[derive(Clone, Copy, Debug)]
pub struct SampleRef<'a> {
    memory: &'a [u8],
    fields: &'a [Range<usize>],
}

impl<'a> SampleRef<'a> {
    pub(super) fn new(memory: &'a [u8], fields: &'a [Range<usize>]) -> Self {
        Self { memory, fields }
    }

    /// The bytes of a field; of a variable one, those that the sample has. They start at a multiple
    /// of 16 bytes in memory, so that they can be seen as numbers of any type.
    ///
    /// # Panics
    /// When there is no such field.
    #[must_use]
    pub fn field(self, field: usize) -> &'a [u8] {
        &self.memory[self.fields[field].clone()]
    }

    /// How many fields there are.
    #[must_use]
    pub fn fields(self) -> usize {
        self.fields.len()
    }
}
