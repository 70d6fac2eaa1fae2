//! The files in an archive, which is untrusted: any content gives an error, or entries inside the archive.

use std::fs::File;
use std::num::NonZeroU64;

use super::TarError;
use super::archive::read_exact;
use super::header::{BLOCK_BYTES, Block, PaxHeader, TarHeader, until_nul};
use crate::LoadErrorKind;

/// Bytes to read at a time: the headers of several small entries, little more than that of a large one.
const WINDOW_BYTES: u64 = 8 << 10;

/// Limit of a long name or a pax header. Real ones have a few hundred bytes.
const EXTENSION_BYTES_MAX: u64 = 1 << 20;

/// A file in an archive.
#[derive(Debug)]
pub(super) struct TarEntry {
    pub(super) name: Vec<u8>,
    pub(super) data: EntryData,
}

/// The data of an entry in its archive.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryData {
    /// Never zero, since a header comes first.
    pub(super) start: NonZeroU64,
    pub(super) bytes: u64,
}

/// Reads the files in an archive one after the other. Folders, links and devices are ignored.
pub(super) struct TarEntries<'a> {
    file: &'a File,
    len_bytes: u64,
    /// Position of the next header.
    at: u64,
    window: Vec<u8>,
    window_start: u64,
}

/// What preceding headers say about an entry.
#[derive(Default)]
struct EntryExtensions {
    long_name: Option<Vec<u8>>,
    pax: PaxHeader,
}

impl<'a> TarEntries<'a> {
    pub(super) fn new(file: &'a File, len_bytes: u64) -> Self {
        Self {
            file,
            len_bytes,
            at: 0,
            window: Vec::new(),
            window_start: 0,
        }
    }

    /// The next file. `None` at the end, which is a block of zeros or the end of the archive.
    pub(super) fn next(&mut self) -> Result<Option<TarEntry>, LoadErrorKind> {
        let mut extensions: Option<EntryExtensions> = None;
        loop {
            let at_bytes = self.at;
            let Some(header) = self.header()? else {
                return match extensions {
                    Some(_) => Err(TarError::Truncated { at_bytes }.into()),
                    None => Ok(None),
                };
            };
            match header.kind {
                b'L' => {
                    let name = until_nul(&self.extension(&header)?).to_vec();
                    extensions.get_or_insert_default().long_name = Some(name);
                }
                b'x' | b'X' => {
                    let pax = PaxHeader::parse(&self.extension(&header)?);
                    let pax = pax.ok_or(TarError::Pax { at_bytes })?;
                    extensions.get_or_insert_default().pax = pax;
                }
                // The target of a link with a long name.
                b'K' => {
                    self.skip(&header)?;
                    extensions.get_or_insert_default();
                }
                // Defaults for all entries; a path or a size for all would be meaningless.
                b'g' => self.skip(&header)?,
                _ => {
                    let entry = self.entry(header, extensions.take().unwrap_or_default())?;
                    if entry.is_some() {
                        return Ok(entry);
                    }
                }
            }
        }
    }

    /// The header at the current position.
    fn header(&mut self) -> Result<Option<TarHeader>, LoadErrorKind> {
        let at = self.at;
        if at == self.len_bytes {
            return Ok(None);
        }
        let block = self.block(at)?;
        let header = TarHeader::parse(block, at).map_err(|fault| match compression(block) {
            Some(how) if at == 0 => TarError::Compressed { how },
            _ => fault,
        });
        Ok(header?)
    }

    /// The entry of a header, if it is a file. Skips its data.
    fn entry(
        &mut self,
        mut header: TarHeader,
        EntryExtensions { long_name, pax }: EntryExtensions,
    ) -> Result<Option<TarEntry>, LoadErrorKind> {
        header.bytes = pax.bytes.unwrap_or(header.bytes);
        header.name = pax.path.or(long_name).unwrap_or(header.name);
        // Links, devices, folders and pipes have no data, whatever their size says.
        let old_folder = header.kind == 0 && header.name.ends_with(b"/");
        if matches!(header.kind, b'1'..=b'6') || old_folder {
            self.at += BLOCK_BYTES;
            return Ok(None);
        }
        if header.kind == b'S' || pax.sparse {
            let entry = header.display_name();
            return Err(TarError::Sparse { entry }.into());
        }
        let start = NonZeroU64::new(self.at + BLOCK_BYTES).expect("after its header");
        self.skip(&header)?;
        let (name, bytes) = (header.name, header.bytes);
        let data = EntryData { start, bytes };
        Ok(matches!(header.kind, 0 | b'0' | b'7').then_some(TarEntry { name, data }))
    }

    /// The data of a header that describes the next entry; continues after it.
    fn extension(&mut self, header: &TarHeader) -> Result<Vec<u8>, LoadErrorKind> {
        if header.bytes > EXTENSION_BYTES_MAX {
            return Err(LoadErrorKind::Tar(TarError::ExtensionTooLarge {
                at_bytes: self.at,
                header_bytes: header.bytes,
                limit_bytes: EXTENSION_BYTES_MAX,
            }));
        }
        let start = self.at + BLOCK_BYTES;
        self.skip(header)?;
        self.bytes(start, header.bytes)
    }

    /// Move on past a header and its data, which must be inside the archive.
    fn skip(&mut self, header: &TarHeader) -> Result<(), TarError> {
        let (start, bytes) = (self.at + BLOCK_BYTES, header.bytes);
        let left_bytes = self.len_bytes.saturating_sub(start);
        if bytes > left_bytes {
            return Err(TarError::PastEnd {
                entry: header.display_name(),
                bytes,
                left_bytes,
            });
        }
        // Data is padded to a whole block. Without the padding, the archive is truncated.
        let next = bytes
            .checked_next_multiple_of(BLOCK_BYTES)
            .and_then(|bytes| bytes.checked_add(start))
            .filter(|next| *next <= self.len_bytes);
        self.at = next.ok_or(TarError::Truncated { at_bytes: start })?;
        Ok(())
    }

    /// The block at a position.
    fn block(&mut self, at: u64) -> Result<&Block, LoadErrorKind> {
        let left_bytes = self.len_bytes.saturating_sub(at);
        if left_bytes < BLOCK_BYTES {
            return Err(TarError::Truncated { at_bytes: at }.into());
        }
        let window_end = self.window_start + self.window.len() as u64;
        if at < self.window_start || window_end < at + BLOCK_BYTES {
            self.window = self.bytes(at, left_bytes.min(WINDOW_BYTES))?;
            self.window_start = at;
        }
        let start = usize::try_from(at - self.window_start).expect("inside the window");
        let block = self.window[start..].first_chunk();
        Ok(block.expect("the window has the whole block"))
    }

    /// Bytes of the archive. The caller has checked that they are inside.
    fn bytes(&self, at: u64, bytes: u64) -> Result<Vec<u8>, LoadErrorKind> {
        let mut read = vec![0; usize::try_from(bytes).map_err(|_| LoadErrorKind::TotalOverflow)?];
        read_exact(self.file, &mut read, at)?;
        Ok(read)
    }
}

/// The compression of a file that starts with these bytes.
fn compression(start: &[u8]) -> Option<&'static str> {
    const KNOWN: [(&[u8], &str); 5] = [
        (b"\x1f\x8b", "gzip"),
        (b"BZh", "bzip2"),
        (b"\xfd7zXZ\0", "xz"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"\x04\x22\x4d\x18", "lz4"),
    ];
    let known = KNOWN.iter().find(|(magic, _)| start.starts_with(magic));
    known.map(|(_, how)| *how)
}
