//! What device memory must look like.

use std::ops::Range;

/// The bytes of one device buffer, as the program's order makes them.
#[derive(Clone)]
pub(crate) struct Shadow {
    bytes: Vec<u8>,
    /// False: nobody can tell, after an operation that failed.
    known: Vec<bool>,
}

impl Shadow {
    /// Freshly allocated memory holds anything.
    pub(crate) fn unknown(len: usize) -> Self {
        Self {
            bytes: vec![0; len],
            known: vec![false; len],
        }
    }

    /// Memory that holds just this.
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

    /// Change each four bytes to so many others; unknown stays unknown.
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

    /// Add to each four bytes as one number; unknown stays unknown.
    pub(crate) fn add(&mut self, value: u32) {
        *self = self.map_words(|word| u32::from_le_bytes(word).wrapping_add(value).to_le_bytes());
    }

    /// How many bytes could be compared, or where the first wrong one is.
    pub(crate) fn compare(&self, found: &[u8]) -> Result<u64, String> {
        if self.bytes == found && !self.known.contains(&false) {
            return Ok(found.len() as u64); // much faster than one by one
        }
        let mut compared = 0;
        let must = self.bytes.iter().zip(&self.known);
        for (at, ((must, known), found)) in must.zip(found).enumerate() {
            if *known && must != found {
                return Err(format!("byte {at} is {found}, must be {must}"));
            }
            compared += u64::from(*known);
        }
        Ok(compared)
    }
}
