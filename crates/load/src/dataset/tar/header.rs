//! One header of an archive: a block of fixed fields.

use std::ops::Range;

use crate::TarError;

/// Everything in an archive starts at a multiple of this.
pub(super) const BLOCK_BYTES: u64 = 512;

pub(super) type Block = [u8; BLOCK_BYTES as usize];

const NAME: Range<usize> = 0..100;
const SIZE: Range<usize> = 124..136;
const CHECKSUM: Range<usize> = 148..156;
const KIND: usize = 156;
const MAGIC: Range<usize> = 257..263;
const PREFIX: Range<usize> = 345..500;

/// What a header says.
#[derive(Debug)]
pub(super) struct Header {
    /// What the entry is: `b'0'` for a file.
    pub(super) kind: u8,
    /// Bytes of its data.
    pub(super) bytes: u64,
    pub(super) name: Vec<u8>,
}

impl Header {
    /// The header in a block, or `None` if the block is all zeros, which ends an archive.
    pub(super) fn parse(block: &Block, at_bytes: u64) -> Result<Option<Self>, TarError> {
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let checksum = number(&block[CHECKSUM]).ok_or(TarError::Checksum { at_bytes })?;
        if !i64::try_from(checksum).is_ok_and(|checksum| adds_up(block, checksum)) {
            return Err(TarError::Checksum { at_bytes });
        }
        let bytes = number(&block[SIZE]).ok_or(TarError::Size { at_bytes })?;
        Ok(Some(Self {
            kind: block[KIND],
            bytes,
            name: name(block),
        }))
    }
}

/// Whether this is the sum of all bytes, with blanks for the sum itself; or, as some old programs
/// wrote it, the sum of signed bytes.
fn adds_up(block: &Block, checksum: i64) -> bool {
    let sum = |value: fn(u8) -> i64| {
        let mut sum = CHECKSUM.len() as i64 * value(b' ');
        for byte in &block[..CHECKSUM.start] {
            sum += value(*byte);
        }
        for byte in &block[CHECKSUM.end..] {
            sum += value(*byte);
        }
        sum
    };
    sum(i64::from) == checksum || sum(|byte| i64::from(byte.cast_signed())) == checksum
}

/// A number in octal digits with blanks around it or zeros behind it; or, where the first bit is
/// set, in plain binary.
fn number(field: &[u8]) -> Option<u64> {
    match field {
        [0x80, rest @ ..] => rest.iter().try_fold(0_u64, |sum, byte| {
            Some(sum.checked_mul(256)? + u64::from(*byte))
        }),
        [first, ..] if first & 0x80 != 0 => None, // negative, or more than 64 bits
        _ => octal(text(field).trim_ascii()),
    }
}

fn octal(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |sum, digit| match digit {
        b'0'..=b'7' => Some(sum.checked_mul(8)? + u64::from(digit - b'0')),
        _ => None,
    })
}

/// Up to the first zero.
pub(super) fn text(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|byte| *byte == 0);
    &field[..end.unwrap_or(field.len())]
}

/// The name, with what stands before it in the format of POSIX. GNU tar has other things there.
fn name(block: &Block) -> Vec<u8> {
    let prefix = match block[MAGIC] == *b"ustar\0" {
        true => text(&block[PREFIX]),
        false => &[],
    };
    let name = text(&block[NAME]);
    match prefix {
        [] => name.to_vec(),
        _ => [prefix, b"/", name].concat(),
    }
}
