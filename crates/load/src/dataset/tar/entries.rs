//! The files in an archive, which is untrusted: any content gives an error, or entries inside the archive.

use std::fs::File;
use std::num::NonZeroU64;
use std::ops::Range;

use crate::LoadErrorKind;
use crate::TarError;
use crate::file_info::read_exact;

/// Bytes to read at a time: the headers of several small entries, little more than that of a large one.
const WINDOW_BYTES: u64 = 8 << 10;

/// Limit of a long name or a pax header. Real ones have a few hundred bytes.
const EXTENSION_BYTES_MAX: u64 = 1 << 20;

pub(super) struct TarEntry {
    pub(super) name: Vec<u8>,
    pub(super) data: EntryData,
}

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
        let mut extensions: Option<TarExtensions> = None;
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
                    let long_name = extensions.and_then(|before| before.long_name);
                    let pax = TarExtensions::parse_pax(&self.extension(&header)?);
                    let pax = pax.ok_or(TarError::Pax { at_bytes })?;
                    extensions = Some(TarExtensions { long_name, ..pax });
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

    fn header(&mut self) -> Result<Option<TarHeader>, LoadErrorKind> {
        let at = self.at;
        if at == self.len_bytes {
            return Ok(None);
        }
        if at == 0
            && self.len_bytes < BLOCK_BYTES
            && let Some(how) = compression(&self.bytes(0, self.len_bytes)?)
        {
            return Err(TarError::Compressed { how }.into());
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
        extensions: TarExtensions,
    ) -> Result<Option<TarEntry>, LoadErrorKind> {
        header.bytes = extensions.bytes.unwrap_or(header.bytes);
        let long_name = extensions.path.or(extensions.long_name);
        header.name = long_name.unwrap_or(header.name);
        // Links, devices, folders and pipes have no data, whatever their size says.
        let old_folder = header.kind == 0 && header.name.ends_with(b"/");
        if matches!(header.kind, b'1'..=b'6') || old_folder {
            self.at += BLOCK_BYTES;
            return Ok(None);
        }
        if header.kind == b'S' || extensions.sparse {
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

/// Everything in an archive starts at a multiple of this.
const BLOCK_BYTES: u64 = 512;

type Block = [u8; BLOCK_BYTES as usize];

const NAME: Range<usize> = 0..100;
const SIZE: Range<usize> = 124..136;
const CHECKSUM: Range<usize> = 148..156;
const KIND: usize = 156;
const MAGIC: Range<usize> = 257..263;
const PREFIX: Range<usize> = 345..500;

struct TarHeader {
    /// Type of the entry: `b'0'` for a file.
    kind: u8,
    bytes: u64,
    name: Vec<u8>,
}

impl TarHeader {
    /// The header in a block, or `None` if the block is all zeros, which ends an archive.
    fn parse(block: &Block, at_bytes: u64) -> Result<Option<Self>, TarError> {
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let checksum = number(&block[CHECKSUM]).ok_or(TarError::Checksum { at_bytes })?;
        if !i64::try_from(checksum).is_ok_and(|checksum| checksum_matches(block, checksum)) {
            return Err(TarError::Checksum { at_bytes });
        }
        let bytes = number(&block[SIZE]).ok_or(TarError::Size { at_bytes })?;
        let (kind, name) = (block[KIND], name(block));
        Ok(Some(Self { kind, bytes, name }))
    }

    fn display_name(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }
}

/// Whether this is the sum of all bytes, with spaces for the sum itself. Old programs summed signed bytes.
fn checksum_matches(block: &Block, checksum: i64) -> bool {
    let sum = |value: fn(u8) -> i64| {
        let others = block[..CHECKSUM.start].iter().chain(&block[CHECKSUM.end..]);
        let sum: i64 = others.map(|byte| value(*byte)).sum();
        sum + CHECKSUM.len() as i64 * value(b' ')
    };
    sum(i64::from) == checksum || sum(|byte| i64::from(byte.cast_signed())) == checksum
}

/// A number in octal digits, with spaces around it or zeros after it; or binary if the first bit is set.
fn number(field: &[u8]) -> Option<u64> {
    match field {
        [0x80, rest @ ..] => rest.iter().try_fold(0_u64, |sum, byte| {
            Some(sum.checked_mul(256)? + u64::from(*byte))
        }),
        [first, ..] if first & 0x80 != 0 => None, // negative, or more than 64 bits
        _ => until_nul(field)
            .trim_ascii()
            .iter()
            .try_fold(0_u64, |sum, digit| match digit {
                b'0'..=b'7' => Some(sum.checked_mul(8)? + u64::from(digit - b'0')),
                _ => None,
            }),
    }
}

/// The bytes before the first zero.
fn until_nul(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|byte| *byte == 0);
    &field[..end.unwrap_or(field.len())]
}

/// The name, with the prefix of the POSIX format. GNU tar stores something else there.
fn name(block: &Block) -> Vec<u8> {
    let name = until_nul(&block[NAME]);
    match until_nul(&block[PREFIX]) {
        prefix if block[MAGIC] == *b"ustar\0" && !prefix.is_empty() => {
            [prefix, b"/", name].concat()
        }
        _ => name.to_vec(),
    }
}

/// What preceding headers say about an entry: a long name in GNU format, the rest in a pax header.
#[derive(Default)]
struct TarExtensions {
    long_name: Option<Vec<u8>>,
    path: Option<Vec<u8>>,
    bytes: Option<u64>,
    /// The data of the entry is stored without its holes.
    sparse: bool,
}

impl TarExtensions {
    /// Lines of `length key=value`, of which the last counts. `None` if the text is invalid.
    fn parse_pax(mut text: &[u8]) -> Option<Self> {
        let mut pax = Self::default();
        while !text.is_empty() {
            let space = text.iter().position(|byte| *byte == b' ')?;
            let length = usize::try_from(decimal(&text[..space])?).ok()?;
            let (line, rest) = text.split_at_checked(length)?;
            let line = line.get(space + 1..)?.strip_suffix(b"\n")?;
            let equals = line.iter().position(|byte| *byte == b'=')?;
            let (key, value) = (&line[..equals], &line[equals + 1..]);
            match key {
                b"path" => pax.path = Some(value.to_vec()).filter(|path| !path.is_empty()),
                b"size" => pax.bytes = Some(decimal(value)?),
                _ if key.starts_with(b"GNU.sparse.") => pax.sparse = true,
                _ => {}
            }
            text = rest;
        }
        Some(pax)
    }
}

/// Parses digits only.
fn decimal(digits: &[u8]) -> Option<u64> {
    let all_digits = digits.iter().all(u8::is_ascii_digit);
    let text = str::from_utf8(digits).ok().filter(|_| all_digits);
    text?.parse().ok()
}
