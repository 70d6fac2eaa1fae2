//! What device memory must look like.

use std::ops::Range;

/// The bytes of one device buffer, as the program's order makes them.
#[derive(Clone)]
pub(crate) struct Shadow {
    /// `None`: nobody can tell, after an operation that failed.
    bytes: Vec<Option<u8>>,
}

impl Shadow {
    /// Freshly allocated memory holds anything.
    pub(crate) fn unknown(len: usize) -> Self {
        Self {
            bytes: vec![None; len],
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn write(&mut self, at: Range<usize>, values: &[u8]) {
        for (byte, value) in self.bytes[at].iter_mut().zip(values) {
            *byte = Some(*value);
        }
    }

    pub(crate) fn forget(&mut self, at: Range<usize>) {
        self.bytes[at].fill(None);
    }

    pub(crate) fn part(&self, at: Range<usize>) -> Shadow {
        Self {
            bytes: self.bytes[at].to_vec(),
        }
    }

    pub(crate) fn overwrite(&mut self, at: Range<usize>, with: &Shadow) {
        self.bytes[at].copy_from_slice(&with.bytes);
    }

    /// Add to each four bytes as one number; unknown stays unknown.
    pub(crate) fn add(&mut self, value: u32) {
        for word in self.bytes.chunks_exact_mut(4) {
            let known: Option<Vec<u8>> = word.iter().copied().collect();
            let sum = known.map(|known| {
                let old = u32::from_le_bytes(known.try_into().expect("four bytes"));
                old.wrapping_add(value).to_le_bytes()
            });
            for (at, byte) in word.iter_mut().enumerate() {
                *byte = sum.map(|sum| sum[at]);
            }
        }
    }

    /// How many bytes could be compared, or where the first wrong one is.
    pub(crate) fn compare(&self, found: &[u8]) -> Result<u64, String> {
        let mut compared = 0;
        for (at, (must, found)) in self.bytes.iter().zip(found).enumerate() {
            match must {
                Some(must) if must != found => {
                    return Err(format!("byte {at} is {found}, must be {must}"));
                }
                Some(_) => compared += 1,
                None => {}
            }
        }
        Ok(compared)
    }
}
