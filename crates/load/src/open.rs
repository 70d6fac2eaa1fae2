//! From paths to files: folders, index files, and what a name says about a format.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Catalog, Fault, Format, LoadError, format};

/// How the name of an index file ends.
const INDEX_END: &str = ".safetensors.index.json";

/// Add what a path names to the catalog.
pub(super) fn add(catalog: &mut Catalog, path: &Path) -> Result<(), LoadError> {
    let metadata =
        fs::metadata(path).map_err(|error| LoadError::from(Fault::io("open", &error)).of(path))?;
    if metadata.is_dir() {
        return add_folder(catalog, path);
    }
    match extension(path).as_deref() {
        Some("json") => add_index(catalog, path),
        Some("npy") => add_file(catalog, path, Format::Npy),
        _ => add_file(catalog, path, Format::Safetensors),
    }
}

fn add_file(catalog: &mut Catalog, path: &Path, format: Format) -> Result<(), LoadError> {
    let (file, tensors) = format::read(path, format)?;
    catalog.push(file, tensors);
    Ok(())
}

fn add_folder(catalog: &mut Catalog, folder: &Path) -> Result<(), LoadError> {
    let mut paths =
        listing(folder).map_err(|error| LoadError::from(Fault::io("list", &error)).of(folder))?;
    paths.sort();
    let mut indexes = paths.iter().filter(|path| is_index(path));
    match (indexes.next(), indexes.next()) {
        (Some(index), None) => return add_index(catalog, index),
        (Some(first), Some(second)) => {
            let fault = Fault::SeveralIndexes {
                first: first.clone(),
                second: second.clone(),
            };
            return Err(LoadError::from(fault).of(folder));
        }
        (None, _) => {}
    }
    let before = catalog.files().len();
    for path in &paths {
        match extension(path).as_deref() {
            Some("safetensors") => add_file(catalog, path, Format::Safetensors)?,
            Some("npy") => add_file(catalog, path, Format::Npy)?,
            _ => {}
        }
    }
    match catalog.files().len() == before {
        true => Err(LoadError::from(Fault::NothingHere).of(folder)),
        false => Ok(()),
    }
}

/// What is in a folder, without hidden files: some systems leave such beside every real one.
fn listing(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            paths.push(entry.path());
        }
    }
    Ok(paths)
}

fn is_index(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_encoded_bytes().ends_with(INDEX_END.as_bytes()))
}

fn extension(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}

fn add_index(catalog: &mut Catalog, path: &Path) -> Result<(), LoadError> {
    let format::Index { metadata, files } = format::read_index(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    for (target, names) in files {
        add_indexed(catalog, &folder.join(&target), target, &names).map_err(|error| match error
            .fault()
        {
            // These two are faults of the index, not of the file that it names.
            Fault::IndexedFileMissing { .. } | Fault::IndexedTensorMissing { .. } => error.of(path),
            _ => error,
        })?;
    }
    catalog.add_metadata(metadata);
    Ok(())
}

/// Add those tensors of a file that the index names. The file may have others, which are counted.
fn add_indexed(
    catalog: &mut Catalog,
    path: &Path,
    target: String,
    names: &[String],
) -> Result<(), LoadError> {
    let first = names.first().map_or("", String::as_str);
    if matches!(fs::metadata(path), Err(error) if error.kind() == io::ErrorKind::NotFound) {
        return Err(LoadError::from(Fault::IndexedFileMissing { target }).with_tensor(first));
    }
    let (mut file, mut tensors) = format::read(path, Format::Safetensors)?;
    let mut missing: HashSet<&str> = names.iter().map(String::as_str).collect();
    let in_file = tensors.len();
    tensors.retain(|tensor| missing.remove(tensor.name()));
    // The first by name, so that the error is the same on every run.
    if let Some(name) = missing.into_iter().min() {
        return Err(LoadError::from(Fault::IndexedTensorMissing { target }).with_tensor(name));
    }
    file.unlisted = in_file - tensors.len();
    catalog.push(file, tensors);
    Ok(())
}
