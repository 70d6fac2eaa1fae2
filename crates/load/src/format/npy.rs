//! Headers of npy files: magic, version, length, and a Python dict literal.

use std::fs::File;
use std::ops::Range;

use super::{DIMS_MAX, check_length, check_size, data_start, read_exactly, utf8};
use crate::{Dtype, FileInfo, HeaderError, LoadError, LoadErrorKind, NpyError, TensorInfo};

const MAGIC: &[u8] = b"\x93NUMPY";

/// Size of magic, version and the 2-byte length of version 1.
const PREFIX_BYTES: u64 = 10;

/// Header size limit. Plain arrays need about a hundred bytes; only structured arrays need more.
const HEADER_BYTES_MAX: u64 = 1 << 20;

pub(super) fn read(file: &mut File, info: &mut FileInfo) -> Result<Vec<TensorInfo>, LoadError> {
    let file_bytes = info.len_bytes();
    let (header_bytes, prefix_bytes, latin1) = length(file, file_bytes)?;
    let data_start = data_start(prefix_bytes, header_bytes, HEADER_BYTES_MAX, file_bytes)?;
    let header = read_exactly(file, header_bytes)?;
    // Versions before 3 are Latin-1. It only differs from UTF-8 in field names of structured arrays.
    let header = match utf8(&header) {
        Err(_) if latin1 => return Err(NpyError::Structured.into()),
        header => header?,
    };
    let name = info.path.file_stem().and_then(|stem| stem.to_str());
    let name = name.ok_or(NpyError::NameNotUtf8)?;
    let tensor = tensor(name, header, data_start..file_bytes)
        .map_err(|kind| LoadError::from(kind).with_tensor(name))?;
    info.data_start = data_start;
    Ok(vec![tensor])
}

/// Length of the header, length of the prefix before it, and whether the header is Latin-1.
fn length(file: &mut File, file_bytes: u64) -> Result<(u64, u64, bool), LoadErrorKind> {
    let start = read_exactly(file, PREFIX_BYTES.min(file_bytes))?;
    if !start.starts_with(&MAGIC[..MAGIC.len().min(start.len())]) {
        return Err(NpyError::Magic.into());
    }
    check_length(file_bytes, PREFIX_BYTES)?;
    let (major, minor, low, high) = (start[6], start[7], start[8], start[9]);
    match (major, minor) {
        (1, 0) => Ok((u16::from_le_bytes([low, high]).into(), PREFIX_BYTES, true)),
        (2 | 3, 0) => {
            check_length(file_bytes, PREFIX_BYTES + 2)?;
            let rest = read_exactly(file, 2)?;
            let length = u32::from_le_bytes([low, high, rest[0], rest[1]]);
            Ok((length.into(), PREFIX_BYTES + 2, major == 2))
        }
        _ => Err(NpyError::Version { major, minor }.into()),
    }
}

fn tensor(name: &str, text: &str, bytes: Range<u64>) -> Result<TensorInfo, LoadErrorKind> {
    let (descr, fortran_order, shape) = DictParser { text, at: 0 }.parse()?;
    let dtype = dtype(descr)?;
    if fortran_order {
        return Err(NpyError::FortranOrder.into());
    }
    let (end, data_bytes) = (dtype.bytes_of(&shape)?, bytes.end - bytes.start);
    if end > data_bytes {
        return Err(HeaderError::DataPastEnd { end, data_bytes }.into());
    }
    check_size(dtype, &shape, data_bytes)?;
    Ok(TensorInfo::new(name.to_owned(), dtype, shape, bytes))
}

/// Parses a type such as `<f4`: byte order, kind, bytes.
fn dtype(text: &str) -> Result<Dtype, NpyError> {
    let descr = text.to_owned();
    let mut chars = text.chars();
    let order = chars.next();
    let dtype = match chars.as_str() {
        "b1" => Dtype::Bool,
        "u1" => Dtype::U8,
        "i1" => Dtype::I8,
        "i2" => Dtype::I16,
        "u2" => Dtype::U16,
        "f2" => Dtype::F16,
        "i4" => Dtype::I32,
        "u4" => Dtype::U32,
        "f4" => Dtype::F32,
        "c8" => Dtype::C64,
        "f8" => Dtype::F64,
        "i8" => Dtype::I64,
        "u8" => Dtype::U64,
        kind if kind.starts_with('O') => return Err(NpyError::PythonObjects),
        _ => return Err(NpyError::UnsupportedDescr { descr }),
    };
    match order {
        Some('<') => Ok(dtype),
        Some('|' | '>') if dtype.bits() == 8 => Ok(dtype),
        Some('>') => Err(NpyError::BigEndian { descr }),
        _ => Err(NpyError::UnsupportedDescr { descr }),
    }
}

/// Accepts only the small part of Python's syntax that numpy writes.
struct DictParser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> DictParser<'a> {
    /// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
    fn parse(mut self) -> Result<(&'a str, bool, Vec<u64>), LoadErrorKind> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect("{")?;
        while !self.take("}") {
            let key_at = self.at;
            let key = self.string()?;
            self.expect(":")?;
            let repeated = match key {
                // A list of fields, or a subarray.
                "descr" if self.rest().starts_with(['[', '(']) => {
                    return Err(NpyError::Structured.into());
                }
                "descr" => descr.replace(self.string()?).is_some(),
                "fortran_order" => fortran_order.replace(self.bool()?).is_some(),
                "shape" => shape.replace(self.shape()?).is_some(),
                _ => {
                    self.at = key_at;
                    return Err(self.expected("'descr', 'fortran_order' or 'shape'").into());
                }
            };
            if repeated {
                let key = key.to_owned();
                return Err(HeaderError::DuplicateKey { key }.into());
            }
            if !self.take(",") && !self.rest().starts_with('}') {
                return Err(self.expected(", or }").into());
            }
        }
        if !self.rest().is_empty() {
            return Err(self.expected("nothing after }").into());
        }
        let missing = |field| HeaderError::MissingField { field };
        Ok((
            descr.ok_or(missing("descr"))?,
            fortran_order.ok_or(missing("fortran_order"))?,
            shape.ok_or(missing("shape"))?,
        ))
    }

    fn bool(&mut self) -> Result<bool, NpyError> {
        let value = self.take("True");
        match value || self.take("False") {
            true => Ok(value),
            false => Err(self.expected("True or False")),
        }
    }

    /// A tuple of numbers. Python 2 wrote an L after long ones.
    fn shape(&mut self) -> Result<Vec<u64>, LoadErrorKind> {
        self.expect("(")?;
        let mut shape = Vec::new();
        while !self.take(")") {
            let (dims, limit) = (shape.len() + 1, DIMS_MAX);
            if dims > limit {
                return Err(HeaderError::TooManyDims { dims, limit }.into());
            }
            shape.push(self.number()?);
            let comma = self.take(",");
            // `(3)` is a number in Python, not a tuple.
            if !comma && (shape.len() == 1 || !self.rest().starts_with(')')) {
                return Err(self.expected(", or )").into());
            }
        }
        Ok(shape)
    }

    fn number(&mut self) -> Result<u64, NpyError> {
        let rest = self.rest();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let Ok(number) = rest[..digits].parse() else {
            return Err(self.expected("a number that fits in 64 bits"));
        };
        self.at += digits;
        self.take("L");
        Ok(number)
    }

    /// A string without escapes, in either kind of quotes.
    fn string(&mut self) -> Result<&'a str, NpyError> {
        let rest = self.rest();
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
        match quote.and_then(|quote| rest[1..].split_once(quote)) {
            Some((inner, _)) if !inner.contains(['\\', '\n']) => {
                self.at += inner.len() + 2;
                Ok(inner)
            }
            _ => Err(self.expected("a string")),
        }
    }

    /// Skips white space, and returns the rest of the text.
    fn rest(&mut self) -> &'a str {
        let rest = self.text[self.at..].trim_start_matches([' ', '\t', '\n', '\r']);
        self.at = self.text.len() - rest.len();
        rest
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn expect(&mut self, word: &'static str) -> Result<(), NpyError> {
        match self.take(word) {
            true => Ok(()),
            false => Err(self.expected(word)),
        }
    }

    fn expected(&self, expected: &'static str) -> NpyError {
        let at_bytes = self.at;
        NpyError::Header { at_bytes, expected }
    }
}
