//! Reads a file, buffered or direct.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Io;
use super::page_cache::cached_share;
use crate::{FileInfo, LoadError, LoadErrorKind};

/// Direct I/O needs offsets, lengths and addresses that are multiples of this.
pub(super) const ALIGN_BYTES: u64 = 4096;

/// With a smaller share in the page cache, the disk is busy either way, and direct reads take less CPU.
const CACHED_SHARE_MIN: f64 = 0.5;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReadMode {
    Buffered,
    Direct,
}

#[derive(Debug)]
pub(super) struct SourceFile {
    pub(super) info: FileInfo,
    file: File,
    /// The same file opened with `O_DIRECT`; `None` if that failed. On first use: a model may have too
    /// many files to open each of them twice.
    direct: OnceLock<Option<File>>,
    /// A direct read has failed.
    direct_failed: AtomicBool,
    io: Io,
}

impl SourceFile {
    pub(super) fn open(info: &FileInfo, io: Io) -> Result<Self, LoadError> {
        let source = Self {
            info: info.clone(),
            file: info.open()?,
            direct: OnceLock::new(),
            direct_failed: AtomicBool::new(false),
            io,
        };
        if io == Io::Direct {
            let direct = open_direct(&source.file).map_err(|error| source.no_direct_io(&error))?;
            source.direct.get_or_init(|| Some(direct));
        }
        Ok(source)
    }

    pub(super) fn mode(&self, range: &Range<u64>) -> ReadMode {
        match self.io {
            Io::Direct => ReadMode::Direct,
            Io::Buffered => ReadMode::Buffered,
            Io::Auto if self.direct_failed.load(Ordering::Relaxed) => ReadMode::Buffered,
            Io::Auto => match cached_share(&self.file, range) {
                Some(share) if share < CACHED_SHARE_MIN && self.direct().is_some() => {
                    ReadMode::Direct
                }
                _ => ReadMode::Buffered,
            },
        }
    }

    fn direct(&self) -> Option<&File> {
        let direct = self.direct.get_or_init(|| open_direct(&self.file).ok());
        direct.as_ref()
    }

    /// Reads a range. `target` is page-aligned and corresponds to the range widened to [`ALIGN_BYTES`].
    /// Returns the mode that was finally used.
    pub(super) fn read(
        &self,
        range: &Range<u64>,
        mode: ReadMode,
        target: &mut [u8],
    ) -> Result<ReadMode, LoadError> {
        let direct = self.direct.get().and_then(Option::as_ref);
        let mut used = mode;
        let read = match (mode, direct) {
            (ReadMode::Direct, Some(direct)) => match read_direct(direct, range, target) {
                // The file system needs another alignment.
                Err(error)
                    if self.io == Io::Direct && error.raw_os_error() == Some(libc::EINVAL) =>
                {
                    return Err(self.no_direct_io(&error));
                }
                // If the error has nothing to do with direct I/O, the buffered read fails too.
                Err(_) if self.io == Io::Auto => {
                    self.direct_failed.store(true, Ordering::Relaxed);
                    used = ReadMode::Buffered;
                    read_buffered(&self.file, range, target)
                }
                read => read,
            },
            _ => read_buffered(&self.file, range, target),
        };
        // First, so that a truncated file counts as changed.
        self.info.check(&self.file)?;
        match read {
            Ok(()) => Ok(used),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.error(LoadErrorKind::FileChanged))
            }
            Err(error) => Err(self.error(LoadErrorKind::io("read", &error))),
        }
    }

    fn no_direct_io(&self, error: &io::Error) -> LoadError {
        let reason = error.to_string();
        self.error(LoadErrorKind::DirectIoUnsupported { reason })
    }

    fn error(&self, kind: LoadErrorKind) -> LoadError {
        LoadError::from(kind).with_file(self.info.path())
    }
}

/// Reopens the same inode, even if its path now names another file.
fn open_direct(file: &File) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(libc::O_DIRECT);
    options.open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn read_buffered(file: &File, range: &Range<u64>, target: &mut [u8]) -> io::Result<()> {
    let start = (range.start % ALIGN_BYTES) as usize;
    let bytes = (range.end - range.start) as usize;
    file.read_exact_at(&mut target[start..start + bytes], range.start)
}

/// Reads the range widened to [`ALIGN_BYTES`].
fn read_direct(file: &File, range: &Range<u64>, target: &mut [u8]) -> io::Result<()> {
    let start = range.start / ALIGN_BYTES * ALIGN_BYTES;
    let end = range.end.next_multiple_of(ALIGN_BYTES);
    let wanted = (range.end - start) as usize;
    let target = &mut target[..(end - start) as usize];
    let mut filled = 0;
    while filled < wanted {
        // After a short read, continue at an aligned offset.
        let at = filled / ALIGN_BYTES as usize * ALIGN_BYTES as usize;
        match file.read_at(&mut target[at..], start + at as u64) {
            Ok(bytes) if at + bytes <= filled => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => filled = at + bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
