//! Headers of safetensors files: eight bytes of length, a JSON object, then the data without holes.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::ops::Range;

use serde_json::value::RawValue;

use super::json::{each, fields, is_object, value};
use super::{DIMS_MAX, HEADER_BYTES_MAX, Header, HeaderFault, read_exactly, utf8};
use crate::{Dtype, Fault, LoadError, TensorInfo};

/// Bytes of the header's length.
const LENGTH_BYTES: u64 = 8;

const METADATA: &str = "__metadata__";

pub(super) fn read(source: &mut impl Read, file_bytes: u64) -> Result<Header, LoadError> {
    let header_bytes = header_bytes(source, file_bytes)?;
    let data_start = LENGTH_BYTES + header_bytes;
    let header = read_exactly(source, header_bytes)?;
    let mut metadata = None;
    let mut tensors = Vec::new();
    each(utf8(&header)?, |name, raw| {
        if name != METADATA {
            let (dtype, shape, bytes) =
                tensor(raw, data_start, file_bytes).map_err(|error| error.with_tensor(&name))?;
            tensors.push(TensorInfo::new(name, dtype, shape, bytes));
        } else if metadata.replace(strings(raw)?).is_some() {
            return Err(LoadError::from(HeaderFault::DuplicateKey { key: name }));
        }
        Ok(())
    })?;
    check_names(&tensors)?;
    tensors.sort_unstable_by(|a, b| order(a).cmp(&order(b)));
    check_cover(&tensors, data_start, file_bytes)?;
    Ok(Header {
        data_start,
        metadata: metadata.unwrap_or_default(),
        tensors,
    })
}

/// Empty tensors come before the one that starts at the same byte. Names make the order of several
/// empty ones the same on every run.
fn order(tensor: &TensorInfo) -> (u64, u64, &str) {
    let bytes = tensor.bytes();
    (bytes.start, bytes.end, tensor.name())
}

fn header_bytes(source: &mut impl Read, file_bytes: u64) -> Result<u64, Fault> {
    if file_bytes < LENGTH_BYTES {
        return Err(Fault::Header(HeaderFault::TooShort {
            file_bytes,
            needed_bytes: LENGTH_BYTES,
        }));
    }
    let length = read_exactly(source, LENGTH_BYTES)?;
    let length = length.try_into().expect("as many bytes as were asked for");
    let header_bytes = u64::from_le_bytes(length);
    let fault = if header_bytes == 0 {
        HeaderFault::Empty
    } else if header_bytes > HEADER_BYTES_MAX {
        HeaderFault::TooLarge {
            header_bytes,
            limit_bytes: HEADER_BYTES_MAX,
        }
    } else if header_bytes > file_bytes - LENGTH_BYTES {
        HeaderFault::PastEnd {
            header_bytes,
            file_bytes,
        }
    } else {
        return Ok(header_bytes);
    };
    Err(fault.into())
}

/// `__metadata__`: strings only. The reference implementation takes `null` for none.
fn strings(raw: &RawValue) -> Result<BTreeMap<String, String>, LoadError> {
    let mut strings = BTreeMap::new();
    if raw.get() == "null" {
        return Ok(strings);
    }
    if !is_object(raw.get()) {
        return Err(LoadError::from(HeaderFault::BadMetadata { key: None }));
    }
    each(raw.get(), |key, raw| {
        let Ok(text) = value(METADATA, raw) else {
            return Err(LoadError::from(HeaderFault::BadMetadata { key: Some(key) }));
        };
        match strings.insert(key.clone(), text) {
            Some(_) => Err(LoadError::from(HeaderFault::DuplicateKey { key })),
            None => Ok(()),
        }
    })?;
    Ok(strings)
}

/// Type, shape and bytes in the file. Fields that are not known are left alone, as the reference
/// implementation does.
type Entry = (Dtype, Vec<u64>, Range<u64>);

fn tensor(raw: &RawValue, data_start: u64, file_bytes: u64) -> Result<Entry, LoadError> {
    let (dtype, shape, [start, end]) = match plain(raw) {
        Some(entry) => entry,
        None => careful(raw)?,
    };
    Ok(check(dtype, shape, start..end, data_start, file_bytes)?)
}

/// What an entry says, before it is checked.
type Said = (Dtype, Vec<u64>, [u64; 2]);

/// An entry in which nothing is wrong or odd, as nearly all are, in one go.
fn plain(raw: &RawValue) -> Option<Said> {
    #[derive(serde::Deserialize)]
    struct Plain<'a> {
        dtype: &'a str,
        shape: Vec<u64>,
        data_offsets: [u64; 2],
    }
    // Many commas may be many dimensions.
    let commas = raw.get().bytes().filter(|byte| *byte == b',').count();
    let text = Some(raw.get()).filter(|text| commas < DIMS_MAX && is_object(text))?;
    let said: Plain<'_> = serde_json::from_str(text).ok()?;
    Some((Dtype::from_name(said.dtype)?, said.shape, said.data_offsets))
}

/// Any entry, field by field.
fn careful(raw: &RawValue) -> Result<Said, LoadError> {
    if !is_object(raw.get()) {
        return Err(LoadError::from(HeaderFault::BadField {
            field: "the entry",
            reason: "not an object".to_owned(),
        }));
    }
    let [dtype, shape, offsets] = fields(raw.get(), ["dtype", "shape", "data_offsets"])?;
    let missing = |field| HeaderFault::MissingField { field };
    let name: String = value("dtype", dtype.ok_or(missing("dtype"))?)?;
    let dtype = Dtype::from_name(&name).ok_or(HeaderFault::UnknownDtype { dtype: name })?;
    let shape = dims(shape.ok_or(missing("shape"))?)?;
    let offsets = value("data_offsets", offsets.ok_or(missing("data_offsets"))?)?;
    Ok((dtype, shape, offsets))
}

/// The entry, if its offsets are those of its type and shape and inside of the file.
fn check(
    dtype: Dtype,
    shape: Vec<u64>,
    Range { start, end }: Range<u64>,
    data_start: u64,
    file_bytes: u64,
) -> Result<Entry, Fault> {
    let data_bytes = file_bytes - data_start;
    if start > end {
        return Err(HeaderFault::ReversedOffsets { start, end }.into());
    }
    if end > data_bytes {
        return Err(HeaderFault::DataPastEnd { end, data_bytes }.into());
    }
    let expected_bytes = dtype.bytes_of(&shape)?;
    if expected_bytes != end - start {
        return Err(Fault::Header(HeaderFault::SizeMismatch {
            dtype,
            shape,
            expected_bytes,
            found_bytes: end - start,
        }));
    }
    // No overflow: `end` is inside of the file.
    Ok((dtype, shape, data_start + start..data_start + end))
}

fn dims(raw: &RawValue) -> Result<Vec<u64>, HeaderFault> {
    // Counted before it is parsed, which takes eight bytes for what may be two in the file.
    let dims = 1 + raw.get().bytes().filter(|byte| *byte == b',').count();
    if dims > DIMS_MAX && raw.get().starts_with('[') {
        return Err(HeaderFault::TooManyDims {
            dims,
            limit: DIMS_MAX,
        });
    }
    value("shape", raw)
}

fn check_names(tensors: &[TensorInfo]) -> Result<(), LoadError> {
    let mut names = HashSet::with_capacity(tensors.len());
    match tensors.iter().find(|tensor| !names.insert(tensor.name())) {
        None => Ok(()),
        Some(twin) => {
            let key = twin.name().to_owned();
            Err(LoadError::from(HeaderFault::DuplicateKey { key }).with_tensor(twin.name()))
        }
    }
}

/// Every byte of the data belongs to exactly one tensor.
fn check_cover(tensors: &[TensorInfo], data_start: u64, file_bytes: u64) -> Result<(), LoadError> {
    let mut end = data_start;
    let mut previous = "";
    for tensor in tensors {
        let bytes = tensor.bytes();
        let fault = match bytes.start.cmp(&end) {
            Ordering::Equal => {
                (end, previous) = (bytes.end, tensor.name());
                continue;
            }
            Ordering::Less => HeaderFault::Overlap {
                start: bytes.start - data_start,
                other: previous.to_owned(),
                other_end: end - data_start,
            },
            Ordering::Greater => HeaderFault::Hole {
                start: end - data_start,
                end: bytes.start - data_start,
            },
        };
        return Err(LoadError::from(fault).with_tensor(tensor.name()));
    }
    match end == file_bytes {
        true => Ok(()),
        false => Err(LoadError::from(HeaderFault::Hole {
            start: end - data_start,
            end: file_bytes - data_start,
        })),
    }
}
