//! Reading files: through the page cache, or past it.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Io;
use super::resident::resident_share;
use crate::{Fault, FileInfo, LoadError};

/// Direct reading wants offsets, lengths and addresses that are multiples of this.
pub(super) const GRAIN_BYTES: u64 = 4096;

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
    /// The same file, to be read past the page cache: opened when it is first wanted, since a model
    /// may have more files than a process may have open twice. None: it cannot be.
    direct: OnceLock<Option<File>>,
    /// The file system has refused to read directly.
    no_direct: AtomicBool,
    io: Io,
}

impl Source {
    pub(super) fn open(info: &FileInfo, io: Io) -> Result<Self, LoadError> {
        let source = Self {
            info: info.clone(),
            file: info.open()?,
            direct: OnceLock::new(),
            no_direct: AtomicBool::new(false),
            io,
        };
        if io == Io::Direct {
            let direct = open_directly(&source.file).map_err(|error| {
                let reason = error.to_string();
                source.failed(Fault::NoDirectReads { reason })
            })?;
            source.direct.get_or_init(|| Some(direct));
        }
        Ok(source)
    }

    pub(super) fn info(&self) -> &FileInfo {
        &self.info
    }

    /// How a range is read best.
    pub(super) fn way(&self, range: &Range<u64>) -> Way {
        match self.io {
            Io::Direct => Way::Direct,
            Io::Buffered => Way::Buffered,
            Io::Auto if self.no_direct.load(Ordering::Relaxed) => Way::Buffered,
            Io::Auto => match resident_share(&self.file, range) {
                Some(share) if share < RESIDENT_SHARE && self.direct().is_some() => Way::Direct,
                _ => Way::Buffered,
            },
        }
    }

    fn direct(&self) -> Option<&File> {
        let direct = self.direct.get_or_init(|| open_directly(&self.file).ok());
        direct.as_ref()
    }

    /// Read a range into memory that starts at a page, as the grain does in which the range starts.
    /// The way in which it was read at last.
    pub(super) fn read(
        &self,
        range: &Range<u64>,
        way: Way,
        target: &mut [u8],
    ) -> Result<Way, LoadError> {
        let direct = self.direct.get().and_then(Option::as_ref);
        let mut read_in = way;
        let read = match (way, direct) {
            (Way::Direct, Some(direct)) => match read_direct(direct, range, target) {
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
                    read_in = Way::Buffered;
                    read_buffered(&self.file, range, target)
                }
                read => read,
            },
            _ => read_buffered(&self.file, range, target),
        };
        // A file that became shorter ends where a piece does not.
        self.info.check(&self.file)?;
        match read {
            Ok(()) => Ok(read_in),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.failed(Fault::Changed))
            }
            Err(error) => Err(self.failed(Fault::io("read", &error))),
        }
    }

    fn failed(&self, fault: Fault) -> LoadError {
        LoadError::from(fault).of(self.info.path())
    }
}

/// The file itself, whatever its name leads to by now.
fn open_directly(file: &File) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(libc::O_DIRECT);
    options.open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn read_buffered(file: &File, range: &Range<u64>, target: &mut [u8]) -> io::Result<()> {
    let start = (range.start % GRAIN_BYTES) as usize;
    let bytes = (range.end - range.start) as usize;
    file.read_exact_at(&mut target[start..start + bytes], range.start)
}

/// Reads whole grains around the range.
fn read_direct(file: &File, range: &Range<u64>, target: &mut [u8]) -> io::Result<()> {
    let start = range.start / GRAIN_BYTES * GRAIN_BYTES;
    let end = range.end.next_multiple_of(GRAIN_BYTES);
    let wanted = (range.end - start) as usize;
    let target = &mut target[..(end - start) as usize];
    let mut filled = 0;
    while filled < wanted {
        // Behind a short read it goes on at a grain.
        let at = filled / GRAIN_BYTES as usize * GRAIN_BYTES as usize;
        match file.read_at(&mut target[at..], start + at as u64) {
            Ok(bytes) if at + bytes <= filled => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => filled = at + bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
