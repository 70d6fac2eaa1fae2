//! Index files (`….safetensors.index.json`): which file each tensor is in.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Component, Path};

use serde_json::value::RawValue;

use super::json::{fields, for_each_entry, object, string_map, value};
use super::{HEADER_BYTES_MAX, HeaderError, check_names, data_start, detect, read_exactly, utf8};
use crate::{LoadError, LoadErrorKind, file_info};

/// Contents of an index file.
pub(crate) struct TensorIndex {
    /// Values that are not strings are JSON text.
    pub(crate) metadata: BTreeMap<String, String>,
    /// Tensor names, by file name.
    pub(crate) files: BTreeMap<String, Vec<String>>,
}

pub(crate) fn read(path: &Path) -> Result<TensorIndex, LoadError> {
    let read = || {
        let (mut file, stamp) = file_info::open_regular(path)?;
        parse(&mut file, stamp.len_bytes).map_err(|error| detect::explain(&file, None, error))
    };
    read().map_err(|error: LoadError| error.with_file(path))
}

fn parse(file: &mut File, len_bytes: u64) -> Result<TensorIndex, LoadError> {
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
/// resolve links: those on disk are the user's own, and model caches are made of them.
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
