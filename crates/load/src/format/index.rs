//! Index files (`….safetensors.index.json`): which tensor is in which file.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Component, Path};

use serde_json::value::RawValue;

use super::json::{each, fields, is_object, value};
use super::{HEADER_BYTES_MAX, HeaderFault, other, read_exactly, utf8};
use crate::{Fault, LoadError, file};

/// What an index says.
pub(crate) struct Index {
    /// What its writer said about the whole; text as it is, anything else as JSON.
    pub(crate) metadata: BTreeMap<String, String>,
    /// Files, by the name that the index has for them, and the tensors that should be in each.
    pub(crate) files: BTreeMap<String, Vec<String>>,
}

pub(crate) fn read(path: &Path) -> Result<Index, LoadError> {
    parse_file(path).map_err(|error| error.of(path))
}

fn parse_file(path: &Path) -> Result<Index, LoadError> {
    let (mut file, stamp) = file::open_plain(path)?;
    parse(&mut file, stamp.len_bytes).map_err(|error| other::instead(&file, None, error))
}

fn parse(file: &mut File, len_bytes: u64) -> Result<Index, LoadError> {
    if len_bytes > HEADER_BYTES_MAX {
        return Err(LoadError::from(HeaderFault::TooLarge {
            header_bytes: len_bytes,
            limit_bytes: HEADER_BYTES_MAX,
        }));
    }
    let text = read_exactly(file, len_bytes)?;
    let [metadata, weight_map] = fields(utf8(&text)?, ["metadata", "weight_map"])?;
    let weight_map = weight_map.ok_or(HeaderFault::MissingField {
        field: "weight_map",
    })?;
    Ok(Index {
        metadata: metadata.map(about).transpose()?.unwrap_or_default(),
        files: files(weight_map)?,
    })
}

fn files(weight_map: &RawValue) -> Result<BTreeMap<String, Vec<String>>, LoadError> {
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    each(object("weight_map", weight_map)?, |tensor, raw| {
        let target: Result<String, Fault> = value("weight_map", raw).map_err(Fault::Header);
        let target =
            target.and_then(|target| inside(&target).ok_or(Fault::OutsideFolder { target }));
        let target = target.map_err(|fault| LoadError::from(fault).with_tensor(&tensor))?;
        files.entry(target).or_default().push(tensor);
        Ok(())
    })?;
    let mut tensors: Vec<&String> = files.values().flatten().collect();
    tensors.sort_unstable();
    match tensors.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(files),
        Some(pair) => {
            let key = pair[0].clone();
            Err(LoadError::from(HeaderFault::DuplicateKey { key }).with_tensor(pair[0]))
        }
    }
}

/// The text of a value that must be an object.
fn object<'a>(field: &'static str, raw: &'a RawValue) -> Result<&'a str, HeaderFault> {
    match is_object(raw.get()) {
        true => Ok(raw.get()),
        false => Err(HeaderFault::BadField {
            field,
            reason: "not an object".to_owned(),
        }),
    }
}

/// Writers put numbers here (`total_size`), too.
fn about(raw: &RawValue) -> Result<BTreeMap<String, String>, LoadError> {
    let mut about = BTreeMap::new();
    each(object("metadata", raw)?, |key, raw| {
        let text = value("metadata", raw).unwrap_or_else(|_| raw.get().to_owned());
        match about.insert(key.clone(), text) {
            Some(_) => Err(LoadError::from(HeaderFault::DuplicateKey { key })),
            None => Ok(()),
        }
    })?;
    Ok(about)
}

/// A path that stays inside of the folder that it is looked up in, in its shortest spelling: one
/// file is opened once. Only words are looked at: links on the disk are the user's own, and model
/// caches are made of them.
fn inside(target: &str) -> Option<String> {
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
