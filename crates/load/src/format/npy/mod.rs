//! Headers of npy files: magic, version, length, and a Python dict literal.

mod dict;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use self::dict::NpyDescr;
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
    let dict = dict::parse(header, DIMS_MAX)?;
    let dtype = match dict.descr {
        NpyDescr::Plain(descr) => dtype(descr)?,
        NpyDescr::Structured => return Err(NpyError::Structured.into()),
    };
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
