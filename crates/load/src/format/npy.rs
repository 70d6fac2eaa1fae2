//! Headers of npy files: magic, version, length, and a Python dict literal.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use super::{
    DIMS_MAX, FileHeader, HeaderError, NpyError, check_size, data_start, read_exactly, utf8,
};
use crate::{Dtype, LoadError, LoadErrorKind, TensorInfo};

const MAGIC: &[u8] = b"\x93NUMPY";

/// Size of magic, version and the 2-byte length of version 1.
const PREFIX_BYTES: u64 = 10;

/// Header size limit. Plain arrays need about a hundred bytes; only structured arrays need more.
const HEADER_BYTES_MAX: u64 = 1 << 20;

pub(super) fn read(
    source: &mut impl Read,
    file_bytes: u64,
    path: &Path,
) -> Result<FileHeader, LoadError> {
    let (header_bytes, prefix_bytes, latin1) = length(source, file_bytes)?;
    let data_start = data_start(prefix_bytes, header_bytes, HEADER_BYTES_MAX, file_bytes)?;
    let header = read_exactly(source, header_bytes)?;
    // Versions before 3 are Latin-1. It only differs from UTF-8 in field names of structured arrays.
    let header = match utf8(&header) {
        Err(HeaderError::NotUtf8 { .. }) if latin1 => {
            return Err(LoadError::from(NpyError::Structured));
        }
        header => header?,
    };
    let name = path
        .file_stem()
        .and_then(|stem| stem.to_str())
        .ok_or(NpyError::NameNotUtf8)?;
    let tensor = tensor(name, header, data_start, file_bytes)
        .map_err(|kind| LoadError::from(kind).with_tensor(name))?;
    Ok(FileHeader {
        data_start,
        metadata: BTreeMap::new(),
        tensors: vec![tensor],
    })
}

/// Length of the header, length of the prefix before it, and whether the header is Latin-1.
fn length(source: &mut impl Read, file_bytes: u64) -> Result<(u64, u64, bool), LoadErrorKind> {
    let start = read_exactly(source, PREFIX_BYTES.min(file_bytes))?;
    if !start.starts_with(&MAGIC[..MAGIC.len().min(start.len())]) {
        return Err(NpyError::Magic.into());
    }
    let too_short = |needed_bytes| HeaderError::TooShort {
        file_bytes,
        needed_bytes,
    };
    if start.len() as u64 != PREFIX_BYTES {
        return Err(too_short(PREFIX_BYTES).into());
    }
    let (major, minor, low, high) = (start[6], start[7], start[8], start[9]);
    match (major, minor) {
        (1, 0) => Ok((u16::from_le_bytes([low, high]).into(), PREFIX_BYTES, true)),
        (2 | 3, 0) if file_bytes < PREFIX_BYTES + 2 => Err(too_short(PREFIX_BYTES + 2).into()),
        (2 | 3, 0) => {
            let rest = read_exactly(source, 2)?;
            let length = u32::from_le_bytes([low, high, rest[0], rest[1]]);
            Ok((length.into(), PREFIX_BYTES + 2, major == 2))
        }
        _ => Err(NpyError::Version { major, minor }.into()),
    }
}

fn tensor(
    name: &str,
    header: &str,
    data_start: u64,
    file_bytes: u64,
) -> Result<TensorInfo, LoadErrorKind> {
    let dict = DictParser {
        text: header,
        at: 0,
    }
    .parse()?;
    let dtype = dtype(dict.descr)?;
    if dict.fortran_order {
        return Err(NpyError::FortranOrder.into());
    }
    check_size(dtype, &dict.shape, file_bytes - data_start)?;
    let bytes = data_start..file_bytes;
    Ok(TensorInfo::new(name.to_owned(), dtype, dict.shape, bytes))
}

/// Parses a type such as `<f4`: byte order, kind, bytes.
fn dtype(descr: &str) -> Result<Dtype, NpyError> {
    let unsupported = || NpyError::UnsupportedDescr {
        descr: descr.to_owned(),
    };
    let mut chars = descr.chars();
    let order = chars.next().ok_or_else(unsupported)?;
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
        _ => return Err(unsupported()),
    };
    match order {
        '<' => Ok(dtype),
        '|' | '>' if dtype.bits() == 8 => Ok(dtype),
        '>' => Err(NpyError::BigEndian {
            descr: descr.to_owned(),
        }),
        _ => Err(unsupported()),
    }
}

/// The Python dict of a header: `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
struct NpyDict<'a> {
    /// Element type, such as `<f4`.
    descr: &'a str,
    fortran_order: bool,
    shape: Vec<u64>,
}

/// Accepts only the small part of Python's syntax that numpy writes.
struct DictParser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> DictParser<'a> {
    fn parse(mut self) -> Result<NpyDict<'a>, LoadErrorKind> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect("{")?;
        while !self.take("}") {
            let key_at = self.at;
            let key = self.string()?;
            self.expect(":")?;
            let repeated = match key {
                "descr" => descr.replace(self.descr()?).is_some(),
                "fortran_order" => fortran_order.replace(self.bool()?).is_some(),
                "shape" => shape.replace(self.shape()?).is_some(),
                _ => {
                    self.at = key_at;
                    return Err(self.expected("'descr', 'fortran_order' or 'shape'").into());
                }
            };
            if repeated {
                return Err(LoadErrorKind::Header(HeaderError::DuplicateKey {
                    key: key.to_owned(),
                }));
            }
            if !self.take(",") && !self.rest().starts_with('}') {
                return Err(self.expected(", or }").into());
            }
        }
        if !self.rest().is_empty() {
            return Err(self.expected("nothing after }").into());
        }
        let missing = |field| HeaderError::MissingField { field };
        Ok(NpyDict {
            descr: descr.ok_or(missing("descr"))?,
            fortran_order: fortran_order.ok_or(missing("fortran_order"))?,
            shape: shape.ok_or(missing("shape"))?,
        })
    }

    fn descr(&mut self) -> Result<&'a str, NpyError> {
        match self.rest().starts_with(['[', '(']) {
            // A list of fields, or a subarray.
            true => Err(NpyError::Structured),
            false => self.string(),
        }
    }

    fn bool(&mut self) -> Result<bool, NpyError> {
        if self.take("True") {
            Ok(true)
        } else if self.take("False") {
            Ok(false)
        } else {
            Err(self.expected("True or False"))
        }
    }

    /// A tuple of numbers. Python 2 wrote an L after long ones.
    fn shape(&mut self) -> Result<Vec<u64>, LoadErrorKind> {
        self.expect("(")?;
        let mut shape = Vec::new();
        while !self.take(")") {
            if shape.len() == DIMS_MAX {
                return Err(LoadErrorKind::Header(HeaderError::TooManyDims {
                    dims: DIMS_MAX + 1,
                    limit: DIMS_MAX,
                }));
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
        let inner = quote.and_then(|quote| rest[1..].split_once(quote));
        match inner {
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
        NpyError::Header {
            at_bytes: self.at,
            expected,
        }
    }
}
