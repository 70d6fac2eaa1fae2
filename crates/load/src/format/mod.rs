//! Reading headers: everything here takes what it reads for a lie until it has been checked.
//!
//! The `safetensors` crate (0.8) is not used. It wants the whole file in one slice, so that a
//! header could only be read through a mapping; of two entries with the same key it silently takes
//! the last; and its errors mostly name neither the tensor nor what was found. What it checks is
//! checked here too, and a test compares the two on thousands of damaged files.
//!
//! Memory grows with the bytes of a header that are really in the file (by a small factor), never
//! with numbers that it contains.

mod fault;
mod index;
mod json;
mod npy;
mod other;
mod safetensors;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

pub use fault::HeaderFault;
pub(super) use index::{Index, read as read_index};
pub use npy::NpyFault;
pub use other::OtherFormat;

use super::file::{self, FileInfo, Format};
use super::{Fault, LoadError, TensorInfo};

/// The most bytes of a header: the limit of the reference implementation.
const HEADER_BYTES_MAX: u64 = 100_000_000;

/// The most dimensions of a tensor, as numpy and torch have it.
const DIMS_MAX: usize = 64;

/// What a header says.
struct Header {
    data_start: u64,
    metadata: BTreeMap<String, String>,
    tensors: Vec<TensorInfo>,
}

/// The file and its tensors, in the order of their bytes.
pub(super) fn read(path: &Path, format: Format) -> Result<(FileInfo, Vec<TensorInfo>), LoadError> {
    let read = || {
        let (mut file, stamp) = file::open_plain(path)?;
        let header = match format {
            Format::Safetensors => safetensors::read(&mut file, stamp.len_bytes),
            Format::Npy => npy::read(&mut file, stamp.len_bytes, path),
        };
        let header = header.map_err(|error| other::instead(&file, Some(format), error))?;
        let info = FileInfo {
            path: path.to_owned(),
            format,
            stamp,
            data_start: header.data_start,
            metadata: header.metadata,
            unlisted: 0,
        };
        Ok((info, header.tensors))
    };
    read().map_err(|error: LoadError| error.of(path))
}

/// Read `bytes` bytes, which the caller has checked to be in the file.
fn read_exactly(source: &mut impl Read, bytes: u64) -> Result<Vec<u8>, Fault> {
    // The file is at least that long, so that this is no promise of the header's alone.
    let mut read = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
    source
        .take(bytes)
        .read_to_end(&mut read)
        .map_err(|error| Fault::io("read", &error))?;
    match read.len() as u64 == bytes {
        true => Ok(read),
        false => Err(Fault::Changed),
    }
}

/// A header as text.
fn utf8(bytes: &[u8]) -> Result<&str, HeaderFault> {
    std::str::from_utf8(bytes).map_err(|error| HeaderFault::NotUtf8 {
        at_bytes: error.valid_up_to(),
    })
}
