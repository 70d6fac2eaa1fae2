//! Headers of entries: the fixed block, and pax headers with more fields.

use std::ops::Range;
use std::str;

use super::TarError;

/// Everything in an archive starts at a multiple of this.
pub(super) const BLOCK_BYTES: u64 = 512;

pub(super) type Block = [u8; BLOCK_BYTES as usize];

const NAME: Range<usize> = 0..100;
const SIZE: Range<usize> = 124..136;
const CHECKSUM: Range<usize> = 148..156;
const KIND: usize = 156;
const MAGIC: Range<usize> = 257..263;
const PREFIX: Range<usize> = 345..500;

/// A parsed header block.
#[derive(Debug)]
pub(super) struct TarHeader {
    /// Type of the entry: `b'0'` for a file.
    pub(super) kind: u8,
    /// Bytes of its data.
    pub(super) bytes: u64,
    pub(super) name: Vec<u8>,
}

impl TarHeader {
    /// The header in a block, or `None` if the block is all zeros, which ends an archive.
    pub(super) fn parse(block: &Block, at_bytes: u64) -> Result<Option<Self>, TarError> {
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let checksum = number(&block[CHECKSUM]).ok_or(TarError::Checksum { at_bytes })?;
        if !i64::try_from(checksum).is_ok_and(|checksum| checksum_matches(block, checksum)) {
            return Err(TarError::Checksum { at_bytes });
        }
        let bytes = number(&block[SIZE]).ok_or(TarError::Size { at_bytes })?;
        Ok(Some(Self {
            kind: block[KIND],
            bytes,
            name: name(block),
        }))
    }

    pub(super) fn display_name(&self) -> String {
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
pub(super) fn until_nul(field: &[u8]) -> &[u8] {
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

/// The fields of a pax header that matter here. A pax header has lines of `length key=value`.
#[derive(Default, Debug, PartialEq, Eq)]
pub(super) struct PaxHeader {
    pub(super) path: Option<Vec<u8>>,
    pub(super) bytes: Option<u64>,
    /// The data of the entry is stored without its holes.
    pub(super) sparse: bool,
}

impl PaxHeader {
    /// If a key is repeated, the last line counts. `None` if the text is invalid.
    pub(super) fn parse(mut text: &[u8]) -> Option<Self> {
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
