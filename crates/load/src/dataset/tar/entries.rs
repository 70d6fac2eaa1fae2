//! The files in an archive.
//!
//! An archive is untrusted: whatever is in it gives an error, or entries whose data is inside of
//! it.

use super::blocks::Blocks;
use super::header::{BLOCK_BYTES, Header, text};
use super::pax::{self, Pax};
use crate::{LoadErrorKind, TarError};

/// The most bytes of a long name or an extended header; real ones have some hundred.
const EXTENSION_BYTES_MAX: u64 = 1 << 20;

/// A file in an archive.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    /// Where its data is.
    pub(super) at: u64,
    pub(super) bytes: u64,
}

/// The files in an archive, one after the other. Folders, links and devices are passed over.
pub(super) struct Entries<'a> {
    blocks: Blocks<'a>,
    at: u64,
}

/// What headers before an entry's own say about it.
#[derive(Default)]
struct Extensions {
    any: bool,
    long_name: Option<Vec<u8>>,
    pax: Pax,
}

impl<'a> Entries<'a> {
    pub(super) fn new(blocks: Blocks<'a>) -> Self {
        Self { blocks, at: 0 }
    }

    /// The next file; `None` at the end, which is a block of zeros or the end of the archive.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, LoadErrorKind> {
        let mut extensions = Extensions::default();
        loop {
            let Some(header) = self.header()? else {
                return match extensions.any {
                    true => Err(TarError::Truncated { at_bytes: self.at }.into()),
                    false => Ok(None),
                };
            };
            match header.kind {
                b'L' => extensions.long_name = Some(text(&self.extension(&header)?).to_vec()),
                b'x' | b'X' => {
                    let at_bytes = self.at;
                    let pax = pax::parse(&self.extension(&header)?);
                    extensions.pax = pax.ok_or(TarError::Pax { at_bytes })?;
                }
                // The target of a link with a long name.
                b'K' => self.skip(&header, header.bytes)?,
                // Words about all entries; a path or a size of all would be senseless.
                b'g' => {
                    self.skip(&header, header.bytes)?;
                    continue;
                }
                _ => {
                    if let Some(entry) = self.entry(header, extensions)? {
                        return Ok(Some(entry));
                    }
                    extensions = Extensions::default();
                    continue;
                }
            }
            extensions.any = true;
        }
    }

    /// The header here.
    fn header(&mut self) -> Result<Option<Header>, LoadErrorKind> {
        let at = self.at;
        if at == self.blocks.len_bytes() {
            return Ok(None);
        }
        let block = self.blocks.block(at)?;
        let header = Header::parse(block, at).map_err(|fault| match compression(block) {
            Some(how) if at == 0 => TarError::Compressed { how },
            _ => fault,
        });
        Ok(header?)
    }

    /// What a header is about, if it is a file. Goes on behind its data.
    fn entry(
        &mut self,
        header: Header,
        extensions: Extensions,
    ) -> Result<Option<Entry>, LoadErrorKind> {
        let Extensions { long_name, pax, .. } = extensions;
        let bytes = pax.bytes.unwrap_or(header.bytes);
        let kind = header.kind;
        let named = Header {
            name: pax.path.or(long_name).unwrap_or(header.name),
            ..header
        };
        match kind {
            // Links, devices, folders, pipes: whatever size they have, there is no data.
            b'1'..=b'6' => {
                self.at += BLOCK_BYTES;
                return Ok(None);
            }
            0 if named.name.ends_with(b"/") => {
                self.at += BLOCK_BYTES;
                return Ok(None);
            }
            b'S' => return Err(sparse(&named).into()),
            _ if pax.sparse => return Err(sparse(&named).into()),
            _ => {}
        }
        let at = self.at + BLOCK_BYTES;
        self.skip(&named, bytes)?;
        let file = matches!(kind, 0 | b'0' | b'7');
        Ok(file.then_some(Entry {
            name: named.name,
            at,
            bytes,
        }))
    }

    /// The data of a header that is about another one. Goes on behind it.
    fn extension(&mut self, header: &Header) -> Result<Vec<u8>, LoadErrorKind> {
        if header.bytes > EXTENSION_BYTES_MAX {
            return Err(LoadErrorKind::Tar(TarError::ExtensionTooLarge {
                at_bytes: self.at,
                header_bytes: header.bytes,
                limit_bytes: EXTENSION_BYTES_MAX,
            }));
        }
        let at = self.at + BLOCK_BYTES;
        self.skip(header, header.bytes)?;
        self.blocks.bytes(at, header.bytes)
    }

    /// Go on behind a header and its data, which is inside of the archive.
    fn skip(&mut self, header: &Header, bytes: u64) -> Result<(), TarError> {
        let at = self.at + BLOCK_BYTES;
        let left = self.blocks.left(at);
        if bytes > left {
            return Err(TarError::PastEnd {
                entry: String::from_utf8_lossy(&header.name).into_owned(),
                bytes,
                left_bytes: left,
            });
        }
        // Data is filled up to a whole block. If that is missing, so is the end of the archive.
        let next = bytes
            .checked_next_multiple_of(BLOCK_BYTES)
            .and_then(|bytes| bytes.checked_add(at))
            .filter(|next| *next <= self.blocks.len_bytes());
        self.at = next.ok_or(TarError::Truncated { at_bytes: at })?;
        Ok(())
    }
}

fn sparse(header: &Header) -> TarError {
    TarError::Sparse {
        entry: String::from_utf8_lossy(&header.name).into_owned(),
    }
}

/// How a file that begins so is compressed.
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
