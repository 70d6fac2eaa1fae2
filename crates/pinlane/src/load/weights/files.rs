//! Reading files: through the page cache, or past it.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::{AtomicBool, Ordering};

use super::Io;
use super::resident::resident_share;
use crate::load::{Fault, FileInfo, LoadError, Piece};

/// Direct reading wants offsets, lengths and addresses that are multiples of this.
const GRAIN_BYTES: u64 = 4096;

/// With less than this in the page cache a piece is read past it: the disk is busy either way, and
/// less of the CPU is.
const RESIDENT_SHARE: f64 = 0.5;

/// How a piece is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    Buffered,
    Direct,
}

/// A file that is read.
#[derive(Debug)]
pub(super) struct Source {
    info: FileInfo,
    file: File,
    direct: Option<File>,
    /// The file system has refused to read directly.
    no_direct: AtomicBool,
    io: Io,
}

impl Source {
    pub(super) fn open(info: &FileInfo, io: Io) -> Result<Self, LoadError> {
        let file = info.open()?;
        let direct = match io {
            Io::Buffered => None,
            Io::Auto | Io::Direct => {
                let mut options = OpenOptions::new();
                let opened = options
                    .read(true)
                    .custom_flags(libc::O_DIRECT)
                    .open(info.path());
                match (opened, io) {
                    (Ok(direct), _) => {
                        info.check(&direct)?;
                        Some(direct)
                    }
                    (Err(error), Io::Direct) => {
                        let reason = error.to_string();
                        let fault = Fault::NoDirectReads { reason };
                        return Err(LoadError::from(fault).of(info.path()));
                    }
                    (Err(_), _) => None,
                }
            }
        };
        Ok(Self {
            info: info.clone(),
            file,
            direct,
            no_direct: AtomicBool::new(false),
            io,
        })
    }

    pub(super) fn info(&self) -> &FileInfo {
        &self.info
    }

    /// How a range is read best.
    pub(super) fn way(&self, range: &Range<u64>) -> Way {
        let can_direct = self.direct.is_some() && !self.no_direct.load(Ordering::Relaxed);
        match self.io {
            Io::Direct => Way::Direct,
            Io::Auto if can_direct => match resident_share(&self.file, range) {
                Some(share) if share < RESIDENT_SHARE => Way::Direct,
                _ => Way::Buffered,
            },
            Io::Auto | Io::Buffered => Way::Buffered,
        }
    }

    /// Read a piece into a slot that starts at a page. Where in the slot its first byte is.
    pub(super) fn read(
        &self,
        piece: &Piece,
        way: Way,
        slot: &mut [u8],
    ) -> Result<usize, LoadError> {
        let read = match (way, &self.direct) {
            (Way::Direct, Some(direct)) => match read_direct(direct, &piece.bytes, slot) {
                // This file system wants other multiples than ours.
                Err(error)
                    if self.io == Io::Direct && error.raw_os_error() == Some(libc::EINVAL) =>
                {
                    let reason = error.to_string();
                    return Err(self.failed(Fault::NoDirectReads { reason }));
                }
                // Whatever it has against direct reading: what is really wrong shows here, too.
                Err(_) if self.io == Io::Auto => {
                    self.no_direct.store(true, Ordering::Relaxed);
                    read_buffered(&self.file, &piece.bytes, slot)
                }
                read => read,
            },
            _ => read_buffered(&self.file, &piece.bytes, slot),
        };
        // A file that became shorter ends where a piece does not.
        self.info.check(&self.file)?;
        read.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.failed(Fault::Changed),
            _ => self.failed(Fault::io("read", &error)),
        })
    }

    fn failed(&self, fault: Fault) -> LoadError {
        LoadError::from(fault).of(self.info.path())
    }
}

fn read_buffered(file: &File, range: &Range<u64>, slot: &mut [u8]) -> io::Result<usize> {
    let bytes = (range.end - range.start) as usize;
    file.read_exact_at(&mut slot[..bytes], range.start)?;
    Ok(0)
}

/// Reads whole grains around the range.
fn read_direct(file: &File, range: &Range<u64>, slot: &mut [u8]) -> io::Result<usize> {
    let start = range.start / GRAIN_BYTES * GRAIN_BYTES;
    let end = range.end.next_multiple_of(GRAIN_BYTES);
    let wanted = (range.end - start) as usize;
    let slot = &mut slot[..(end - start) as usize];
    let mut filled = 0;
    while filled < wanted {
        // Behind a short read it goes on at a grain.
        let at = filled / GRAIN_BYTES as usize * GRAIN_BYTES as usize;
        match file.read_at(&mut slot[at..], start + at as u64) {
            Ok(bytes) if at + bytes <= filled => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => filled = at + bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok((range.start - start) as usize)
}
