//! Reads headers. All input is untrusted until it has been checked. Memory use is bounded by the size of
//! the header in the file, never by numbers in it.
//!
//! The `safetensors` crate (0.8) is not used: it needs the whole file in one slice, takes the last of two
//! entries with the same key, and most of its errors name neither the tensor nor the value. All its checks
//! are made here too, and a test compares the two on thousands of damaged files.

mod detect_other;
mod json_object;
mod npy;
mod safetensors;

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;

pub(crate) use safetensors::read_index;

use crate::file_info::{self, FileInfo, Format};
use crate::{Dtype, HeaderError, LoadError, LoadErrorKind, TensorInfo};

/// Header size limit of the reference implementation.
const HEADER_BYTES_MAX: u64 = 100_000_000;

/// Dimension limit of numpy and torch.
const DIMS_MAX: usize = 64;

/// Reads the header of a file. Tensors are sorted by offset.
pub(crate) fn read(path: &Path, format: Format) -> Result<(FileInfo, Vec<TensorInfo>), LoadError> {
    let read = || {
        let (mut file, stamp) = file_info::open_regular(path)?;
        let mut info = FileInfo {
            path: path.to_owned(),
            format,
            stamp,
            data_start: 0,
            metadata: BTreeMap::new(),
            unlisted: 0,
        };
        let tensors = match format {
            Format::Safetensors => safetensors::read(&mut file, &mut info),
            Format::Npy => npy::read(&mut file, &mut info),
        };
        let tensors = tensors.map_err(|error| detect_other::explain(&file, Some(format), error))?;
        Ok((info, tensors))
    };
    read().map_err(|error: LoadError| error.with_file(path))
}

/// Reads `bytes` bytes. The caller has checked that the file is long enough to allocate them.
fn read_exactly(file: &mut File, bytes: u64) -> Result<Vec<u8>, LoadErrorKind> {
    let mut read = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
    match file.take(bytes).read_to_end(&mut read) {
        Ok(len) if len as u64 == bytes => Ok(read),
        Ok(_) => Err(LoadErrorKind::FileChanged),
        Err(error) => Err(LoadErrorKind::io("read", &error)),
    }
}

fn utf8(header: &[u8]) -> Result<&str, HeaderError> {
    std::str::from_utf8(header).map_err(|error| HeaderError::NotUtf8 {
        at_bytes: error.valid_up_to(),
    })
}

fn check_length(file_bytes: u64, needed_bytes: u64) -> Result<(), HeaderError> {
    match file_bytes >= needed_bytes {
        true => Ok(()),
        false => Err(HeaderError::TooShort {
            file_bytes,
            needed_bytes,
        }),
    }
}

/// Checks the length of a header after a prefix. Returns the offset of the data.
fn data_start(
    prefix_bytes: u64,
    header_bytes: u64,
    limit_bytes: u64,
    file_bytes: u64,
) -> Result<u64, HeaderError> {
    if header_bytes > limit_bytes {
        Err(HeaderError::TooLarge {
            header_bytes,
            limit_bytes,
        })
    } else if header_bytes > file_bytes - prefix_bytes {
        Err(HeaderError::PastEnd {
            header_bytes,
            file_bytes,
        })
    } else {
        Ok(prefix_bytes + header_bytes)
    }
}

fn check_names<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), LoadError> {
    let mut seen = HashSet::with_capacity(names.size_hint().0);
    for name in names {
        if !seen.insert(name) {
            let key = name.to_owned();
            return Err(LoadError::from(HeaderError::DuplicateKey { key }).with_tensor(name));
        }
    }
    Ok(())
}

/// Checks that a tensor has as many bytes as its type and shape take.
fn check_size(dtype: Dtype, shape: &[u64], found_bytes: u64) -> Result<(), LoadErrorKind> {
    let expected_bytes = dtype.bytes_of(shape)?;
    match expected_bytes == found_bytes {
        true => Ok(()),
        false => Err(LoadErrorKind::Header(HeaderError::SizeMismatch {
            dtype,
            shape: shape.to_vec(),
            expected_bytes,
            found_bytes,
        })),
    }
}
