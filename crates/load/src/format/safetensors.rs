//! Headers of safetensors files: an 8-byte length, a JSON object, then the data without holes. Index files
//! (`….safetensors.index.json`): which file each tensor is in.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Component, Path};

use serde::{Deserialize, Deserializer, de::Error};
use serde_json::value::RawValue;

use super::json_object::{fields, for_each_entry, is_object, object, string_map, value};
use super::{
    DIMS_MAX, HEADER_BYTES_MAX, check_length, check_names, check_size, data_start, detect_other,
    read_exactly, utf8,
};
use crate::{Dtype, FileInfo, HeaderError, LoadError, LoadErrorKind, TensorInfo, file_info};

const LENGTH_BYTES: u64 = 8;

const METADATA: &str = "__metadata__";

pub(super) fn read(file: &mut File, info: &mut FileInfo) -> Result<Vec<TensorInfo>, LoadError> {
    let file_bytes = info.len_bytes();
    check_length(file_bytes, LENGTH_BYTES)?;
    let length = read_exactly(file, LENGTH_BYTES)?;
    let header_bytes = u64::from_le_bytes(length.try_into().expect("8 bytes were read"));
    if header_bytes == 0 {
        return Err(HeaderError::Empty.into());
    }
    let data_start = data_start(LENGTH_BYTES, header_bytes, HEADER_BYTES_MAX, file_bytes)?;
    let header = read_exactly(file, header_bytes)?;
    let mut metadata = None;
    let mut tensors = Vec::new();
    for_each_entry(utf8(&header)?, |name, raw| {
        if name != METADATA {
            let tensor = TensorEntry::parse(raw).and_then(|entry| {
                let bytes = entry.bytes(data_start, file_bytes)?;
                Ok((entry, bytes))
            });
            let (entry, bytes) = tensor.map_err(|error| error.with_tensor(&name))?;
            tensors.push(TensorInfo::new(name, entry.dtype, entry.shape, bytes));
        } else if metadata.replace(parse_metadata(raw)?).is_some() {
            return Err(HeaderError::DuplicateKey { key: name }.into());
        }
        Ok(())
    })?;
    check_names(tensors.iter().map(TensorInfo::name))?;
    // Empty tensors come before the one that starts at the same byte, sorted by name.
    tensors.sort_unstable_by(|a, b| order(a).cmp(&order(b)));
    check_coverage(&tensors, data_start..file_bytes)?;
    (info.data_start, info.metadata) = (data_start, metadata.unwrap_or_default());
    Ok(tensors)
}

fn order(tensor: &TensorInfo) -> (u64, u64, &str) {
    let bytes = tensor.bytes();
    (bytes.start, bytes.end, tensor.name())
}

/// `__metadata__`: strings only. The reference implementation accepts `null` as well.
fn parse_metadata(raw: &RawValue) -> Result<BTreeMap<String, String>, LoadError> {
    match raw.get() {
        "null" => Ok(BTreeMap::new()),
        text if is_object(text) => string_map(text, |key, raw| {
            value(METADATA, raw).map_err(|_| HeaderError::InvalidMetadata {
                key: Some(key.to_owned()),
            })
        }),
        _ => Err(HeaderError::InvalidMetadata { key: None }.into()),
    }
}

/// An entry of the header. Unknown fields are ignored, as in the reference implementation.
#[derive(Deserialize)]
struct TensorEntry {
    #[serde(deserialize_with = "dtype")]
    dtype: Dtype,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

fn dtype<'de, D: Deserializer<'de>>(name: D) -> Result<Dtype, D::Error> {
    let dtype = Dtype::from_name(<&str>::deserialize(name)?);
    dtype.ok_or_else(|| D::Error::custom("unknown dtype"))
}

impl TensorEntry {
    fn parse(raw: &RawValue) -> Result<Self, LoadError> {
        // Fast path for valid entries. Many commas may mean many dimensions.
        if comma_count(raw) < DIMS_MAX
            && is_object(raw.get())
            && let Ok(entry) = serde_json::from_str(raw.get())
        {
            return Ok(entry);
        }
        let keys = ["dtype", "shape", "data_offsets"];
        let [dtype, shape, offsets] = fields(object("the entry", raw)?, keys)?;
        let missing = |field| HeaderError::MissingField { field };
        let name: String = value("dtype", dtype.ok_or(missing("dtype"))?)?;
        Ok(Self {
            dtype: Dtype::from_name(&name).ok_or(HeaderError::UnknownDtype { dtype: name })?,
            shape: parse_shape(shape.ok_or(missing("shape"))?)?,
            data_offsets: value("data_offsets", offsets.ok_or(missing("data_offsets"))?)?,
        })
    }

    /// The tensor's bytes in the file, if the offsets match type and shape and lie inside the file.
    fn bytes(&self, data_start: u64, file_bytes: u64) -> Result<Range<u64>, LoadErrorKind> {
        let [start, end] = self.data_offsets;
        let data_bytes = file_bytes - data_start;
        if start > end {
            return Err(HeaderError::ReversedOffsets { start, end }.into());
        }
        if end > data_bytes {
            return Err(HeaderError::DataPastEnd { end, data_bytes }.into());
        }
        check_size(self.dtype, &self.shape, end - start)?;
        Ok(data_start + start..data_start + end)
    }
}

fn parse_shape(raw: &RawValue) -> Result<Vec<u64>, HeaderError> {
    // Checked before parsing, which takes eight bytes of memory for every two in the file.
    let dims = 1 + comma_count(raw);
    let limit = DIMS_MAX;
    if dims > limit && raw.get().starts_with('[') {
        return Err(HeaderError::TooManyDims { dims, limit });
    }
    value("shape", raw)
}

fn comma_count(raw: &RawValue) -> usize {
    raw.get().bytes().filter(|byte| *byte == b',').count()
}

/// Every data byte must belong to exactly one tensor.
fn check_coverage(tensors: &[TensorInfo], data: Range<u64>) -> Result<(), LoadError> {
    let hole = |start, end| HeaderError::Hole {
        start: start - data.start,
        end: end - data.start,
    };
    let (mut end, mut previous) = (data.start, "");
    for tensor in tensors {
        let bytes = tensor.bytes();
        let error = match bytes.start.cmp(&end) {
            Ordering::Equal => {
                (end, previous) = (bytes.end, tensor.name());
                continue;
            }
            Ordering::Less => HeaderError::Overlap {
                start: bytes.start - data.start,
                other: previous.to_owned(),
                other_end: end - data.start,
            },
            Ordering::Greater => hole(end, bytes.start),
        };
        return Err(tensor.error(error.into()));
    }
    match end == data.end {
        true => Ok(()),
        false => Err(hole(end, data.end).into()),
    }
}

pub(crate) struct TensorIndex {
    /// Values that are not strings are JSON text.
    pub(crate) metadata: BTreeMap<String, String>,
    /// Tensor names, by file name.
    pub(crate) files: BTreeMap<String, Vec<String>>,
}

pub(crate) fn read_index(path: &Path) -> Result<TensorIndex, LoadError> {
    let read = || {
        let (mut file, stamp) = file_info::open_regular(path)?;
        parse_index(&mut file, stamp.len_bytes)
            .map_err(|error| detect_other::explain(&file, None, error))
    };
    read().map_err(|error: LoadError| error.with_file(path))
}

fn parse_index(file: &mut File, len_bytes: u64) -> Result<TensorIndex, LoadError> {
    data_start(0, len_bytes, HEADER_BYTES_MAX, len_bytes)?;
    let text = read_exactly(file, len_bytes)?;
    let [metadata, weight_map] = fields(utf8(&text)?, ["metadata", "weight_map"])?;
    let field = "weight_map";
    let weight_map = weight_map.ok_or(HeaderError::MissingField { field })?;
    // Writers put numbers there too (`total_size`).
    let any_text = |_: &str, raw: &RawValue| {
        Ok(value("metadata", raw).unwrap_or_else(|_| raw.get().to_owned()))
    };
    let metadata = match metadata {
        Some(raw) => string_map(object("metadata", raw)?, any_text)?,
        None => BTreeMap::new(),
    };
    let files = files(weight_map)?;
    Ok(TensorIndex { metadata, files })
}

fn files(weight_map: &RawValue) -> Result<BTreeMap<String, Vec<String>>, LoadError> {
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for_each_entry(object("weight_map", weight_map)?, |tensor, raw| {
        let target = || {
            let target: String = value("weight_map", raw)?;
            path_inside(&target).ok_or(LoadErrorKind::OutsideFolder { target })
        };
        let target = target().map_err(|kind| LoadError::from(kind).with_tensor(&tensor))?;
        files.entry(target).or_default().push(tensor);
        Ok(())
    })?;
    check_names(files.values().flatten().map(String::as_str))?;
    Ok(files)
}

/// Normalizes a relative path that stays inside its folder, so each file is opened once. Does not
/// resolve links: model caches are made of them.
fn path_inside(target: &str) -> Option<String> {
    if target.contains(char::is_control) {
        return None;
    }
    let mut words = Vec::new();
    for component in Path::new(target).components() {
        match component {
            Component::Normal(word) => words.push(word.to_str()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    (!words.is_empty()).then(|| words.join("/"))
}
