//! Parts of an archive, read with little effort where they are close together.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::header::{BLOCK_BYTES, Block};
use crate::{LoadErrorKind, TarError};

/// What is read at once: headers of small entries come together, those of large ones cost little
/// more than their own block.
const WINDOW_BYTES: u64 = 8 << 10;

/// An archive that is read from front to back, with leaps.
pub(super) struct Blocks<'a> {
    file: &'a File,
    len_bytes: u64,
    window: Vec<u8>,
    window_start: u64,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(file: &'a File, len_bytes: u64) -> Self {
        Self {
            file,
            len_bytes,
            window: Vec::new(),
            window_start: 0,
        }
    }

    pub(super) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// The block at this place.
    pub(super) fn block(&mut self, at: u64) -> Result<&Block, LoadErrorKind> {
        if self.left(at) < BLOCK_BYTES {
            return Err(TarError::Truncated { at_bytes: at }.into());
        }
        let window_end = self.window_start + self.window.len() as u64;
        if at < self.window_start || window_end < at + BLOCK_BYTES {
            let bytes = self.left(at).min(WINDOW_BYTES);
            self.window = self.bytes(at, bytes)?;
            self.window_start = at;
        }
        let skip = usize::try_from(at - self.window_start).expect("inside of the window");
        Ok(self.window[skip..]
            .first_chunk()
            .expect("the window has the whole block"))
    }

    /// Bytes that are in the archive, as the caller has checked.
    pub(super) fn bytes(&self, at: u64, bytes: u64) -> Result<Vec<u8>, LoadErrorKind> {
        debug_assert!(bytes <= self.left(at));
        let mut read = vec![0; usize::try_from(bytes).map_err(|_| LoadErrorKind::TotalOverflow)?];
        match self.file.read_exact_at(&mut read, at) {
            Ok(()) => Ok(read),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(LoadErrorKind::FileChanged)
            }
            Err(error) => Err(LoadErrorKind::io("read", &error)),
        }
    }

    /// Bytes from here to the end.
    pub(super) fn left(&self, at: u64) -> u64 {
        self.len_bytes.saturating_sub(at)
    }
}
