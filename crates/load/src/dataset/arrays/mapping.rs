//! A file in the address space.

use std::fs::File;
use std::path::Path;

use memmap2::{MmapOptions, MmapRaw};

use crate::{FileInfo, LoadError, LoadErrorKind};

/// A file that is mapped for reading.
///
/// There is never a slice of it: another process may write to the file at any time, and what a
/// slice shows must not change.
pub(super) struct Mapping {
    map: MmapRaw,
    file: File,
    info: FileInfo,
}

impl Mapping {
    pub(super) fn new(info: &FileInfo) -> Result<Self, LoadError> {
        let error = |fault: LoadErrorKind| LoadError::from(fault).with_file(info.path());
        let file = info.open()?;
        let map = MmapOptions::new()
            .map_raw_read_only(&file)
            .map_err(|problem| error(LoadErrorKind::io("map", &problem)))?;
        match map.len() as u64 == info.len_bytes() {
            true => Ok(Self {
                map,
                file,
                info: info.clone(),
            }),
            false => Err(error(LoadErrorKind::FileChanged)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.info.path()
    }

    /// Whether the file is still what it was.
    pub(super) fn check(&self) -> Result<(), LoadError> {
        self.info.check(&self.file)
    }

    /// Copy bytes from `start` on, as many as there is place for.
    ///
    /// # Panics
    /// When the mapping has less.
    pub(super) fn copy_to(&self, start: usize, place: &mut [u8]) {
        let end = start.checked_add(place.len());
        let inside = end.is_some_and(|end| end <= self.map.len());
        assert!(inside, "{} bytes at {start} are not there", place.len());
        // SAFETY: these bytes are inside of the mapping, which lives as long as `self` and is only
        // read from; `place` is other memory, since it is borrowed exclusively. The file may change
        // meanwhile, which makes the bytes any bytes. Where it has become shorter, touching them is
        // a signal, not undefined behaviour.
        unsafe {
            let source = self.map.as_ptr().add(start);
            source.copy_to_nonoverlapping(place.as_mut_ptr(), place.len());
        }
    }
}
