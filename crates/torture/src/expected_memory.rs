//! The expected content of device memory.

use std::ops::Range;

use bytemuck::{NoUninit, cast_slice};

/// The expected bytes of one device buffer, which are addressed by words of four bytes.
#[derive(Clone)]
pub(crate) struct Shadow {
    bytes: Vec<u8>,
    /// False if a failed operation made the byte unknown.
    known: Vec<bool>,
}

impl Shadow {
    /// New memory, with unknown content.
    pub(crate) fn unknown(words: usize) -> Self {
        Self {
            bytes: vec![0; 4 * words],
            known: vec![false; 4 * words],
        }
    }

    /// Memory with this content.
    pub(crate) fn of<T: NoUninit>(content: &[T]) -> Self {
        let bytes: &[u8] = cast_slice(content);
        Self {
            bytes: bytes.to_vec(),
            known: vec![true; bytes.len()],
        }
    }

    pub(crate) fn part(&self, words: Range<usize>) -> Self {
        let at = bytes(words);
        Self {
            bytes: self.bytes[at.clone()].to_vec(),
            known: self.known[at].to_vec(),
        }
    }

    /// Applies a write. If it failed, the content is unknown.
    pub(crate) fn write(&mut self, words: Range<usize>, with: &Self, written: bool) {
        let at = bytes(words);
        if written {
            self.bytes[at.clone()].copy_from_slice(&with.bytes);
            self.known[at].copy_from_slice(&with.known);
        } else {
            self.known[at].fill(false);
        }
    }

    /// Maps each word; unknown ones stay unknown.
    pub(crate) fn map_words<const N: usize>(&self, map: impl Fn([u8; 4]) -> [u8; N]) -> Self {
        let words = self.bytes.as_chunks::<4>().0.iter();
        let known = self.known.as_chunks::<4>().0.iter();
        Self {
            bytes: words.flat_map(|word| map(*word)).collect(),
            known: known.flat_map(|known| [*known == [true; 4]; N]).collect(),
        }
    }

    /// The sum of each word and a value; unknown ones stay unknown.
    pub(crate) fn plus(&self, value: u32) -> Self {
        self.map_words(|word| u32::from_le_bytes(word).wrapping_add(value).to_le_bytes())
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

/// A range of words, in bytes.
fn bytes(words: Range<usize>) -> Range<usize> {
    words.start * 4..words.end * 4
}
