//! Headers of npy files: a magic, a version, a length, and a dictionary in Python's own syntax.

mod fault;
mod literal;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

pub use fault::NpyFault;

use self::literal::Descr;
use super::{DIMS_MAX, Header, HeaderFault, read_exactly, utf8};
use crate::{Dtype, Fault, LoadError, TensorInfo};

const MAGIC: &[u8] = b"\x93NUMPY";

/// Bytes of magic, version and the shorter kind of length.
const PREFIX_BYTES: u64 = 10;

/// The most bytes of a header. Those of plain arrays have some hundred; only records need more.
const HEADER_BYTES_MAX: u64 = 1 << 20;

pub(super) fn read(
    source: &mut impl Read,
    file_bytes: u64,
    path: &Path,
) -> Result<Header, LoadError> {
    let (header_bytes, prefix_bytes, latin1) = length(source, file_bytes)?;
    if header_bytes > HEADER_BYTES_MAX {
        return Err(LoadError::from(HeaderFault::TooLarge {
            header_bytes,
            limit_bytes: HEADER_BYTES_MAX,
        }));
    }
    let data_start = prefix_bytes + header_bytes;
    if data_start > file_bytes {
        return Err(LoadError::from(HeaderFault::PastEnd {
            header_bytes,
            file_bytes,
        }));
    }
    let header = read_exactly(source, header_bytes)?;
    // Versions before 3 are Latin-1, which differs where field names do, and so is not needed.
    let header = match utf8(&header) {
        Err(HeaderFault::NotUtf8 { .. }) if latin1 => {
            return Err(LoadError::from(NpyFault::Structured));
        }
        header => header?,
    };
    let name = path
        .file_stem()
        .and_then(|stem| stem.to_str())
        .ok_or(NpyFault::NameNotUtf8)?;
    let tensor = tensor(name, header, data_start, file_bytes)
        .map_err(|fault| LoadError::from(fault).with_tensor(name))?;
    Ok(Header {
        data_start,
        metadata: BTreeMap::new(),
        tensors: vec![tensor],
    })
}

/// Bytes of the header, bytes before it, and whether it is in Latin-1.
fn length(source: &mut impl Read, file_bytes: u64) -> Result<(u64, u64, bool), Fault> {
    let start = read_exactly(source, PREFIX_BYTES.min(file_bytes))?;
    if !start.starts_with(&MAGIC[..MAGIC.len().min(start.len())]) {
        return Err(NpyFault::Magic.into());
    }
    let too_short = |needed_bytes| HeaderFault::TooShort {
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
        _ => Err(NpyFault::Version { major, minor }.into()),
    }
}

fn tensor(name: &str, header: &str, data_start: u64, file_bytes: u64) -> Result<TensorInfo, Fault> {
    let dict = literal::parse(header, DIMS_MAX)?;
    let dtype = match dict.descr {
        Descr::Plain(descr) => dtype(descr)?,
        Descr::Structured => return Err(NpyFault::Structured.into()),
    };
    if dict.fortran_order {
        return Err(NpyFault::FortranOrder.into());
    }
    let expected_bytes = dtype.bytes_of(&dict.shape)?;
    let found_bytes = file_bytes - data_start;
    if expected_bytes != found_bytes {
        return Err(Fault::Header(HeaderFault::SizeMismatch {
            dtype,
            shape: dict.shape,
            expected_bytes,
            found_bytes,
        }));
    }
    let bytes = data_start..file_bytes;
    Ok(TensorInfo::new(name.to_owned(), dtype, dict.shape, bytes))
}

/// The type that numpy writes as `<f4`: byte order, kind, bytes.
fn dtype(descr: &str) -> Result<Dtype, NpyFault> {
    let unsupported = || NpyFault::UnsupportedDescr {
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
        kind if kind.starts_with('O') => return Err(NpyFault::PythonObjects),
        _ => return Err(unsupported()),
    };
    match order {
        '<' => Ok(dtype),
        '|' | '>' if dtype.bits() == 8 => Ok(dtype),
        '>' => Err(NpyFault::BigEndian {
            descr: descr.to_owned(),
        }),
        _ => Err(unsupported()),
    }
}
