//! The expected content of device memory.

use std::ops::Range;

/// The expected bytes of one device buffer.
#[derive(Clone)]
pub(crate) struct Shadow {
    bytes: Vec<u8>,
    /// False if a failed operation made the byte unknown.
    known: Vec<bool>,
}

impl Shadow {
    /// New memory, with unknown content.
    pub(crate) fn unknown(len: usize) -> Self {
        Self {
            bytes: vec![0; len],
            known: vec![false; len],
        }
    }

    /// Memory with this content.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.to_vec(),
            known: vec![true; bytes.len()],
        }
    }

    pub(crate) fn write(&mut self, at: Range<usize>, values: &[u8]) {
        self.bytes[at.clone()].copy_from_slice(values);
        self.known[at].fill(true);
    }

    pub(crate) fn forget(&mut self, at: Range<usize>) {
        self.known[at].fill(false);
    }

    pub(crate) fn part(&self, at: Range<usize>) -> Shadow {
        Self {
            bytes: self.bytes[at.clone()].to_vec(),
            known: self.known[at].to_vec(),
        }
    }

    pub(crate) fn overwrite(&mut self, at: Range<usize>, with: &Shadow) {
        self.bytes[at.clone()].copy_from_slice(&with.bytes);
        self.known[at].copy_from_slice(&with.known);
    }

    /// Maps each word of four bytes; unknown ones stay unknown.
    pub(crate) fn map_words<const N: usize>(&self, map: impl Fn([u8; 4]) -> [u8; N]) -> Shadow {
        let mut mapped = Self::unknown(self.bytes.len() / 4 * N);
        let words = self.bytes.as_chunks::<4>().0.iter();
        let known = self.known.as_chunks::<4>().0.iter();
        for (at, (word, known)) in words.zip(known).enumerate() {
            if *known == [true; 4] {
                mapped.write(at * N..(at + 1) * N, &map(*word));
            }
        }
        mapped
    }

    /// Adds to each word; unknown ones stay unknown.
    pub(crate) fn add(&mut self, value: u32) {
        *self = self.map_words(|word| u32::from_le_bytes(word).wrapping_add(value).to_le_bytes());
    }

    /// Number of bytes compared, or the first difference.
    pub(crate) fn compare(&self, found: &[u8]) -> Result<u64, String> {
        if self.bytes == found && !self.known.contains(&false) {
            return Ok(found.len() as u64); // much faster than byte by byte
        }
        let mut compared = 0;
        let expected = self.bytes.iter().zip(&self.known);
        for (at, ((expected, known), found)) in expected.zip(found).enumerate() {
            if *known && expected != found {
                return Err(format!("byte {at} is {found}, must be {expected}"));
            }
            compared += u64::from(*known);
        }
        Ok(compared)
    }
}
