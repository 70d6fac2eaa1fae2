//! The tensors of files, folders and index files.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{FileInfo, Format, LoadError, LoadErrorKind, Selection, TensorInfo, format};

/// The tensors of one or more files. Only headers are read.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Catalog {
    files: Vec<FileInfo>,
    tensors: Vec<TensorInfo>,
    /// Positions in `tensors`, by name.
    by_name: HashMap<Arc<str>, usize>,
    metadata: BTreeMap<String, String>,
}

impl Catalog {
    /// Opens a file or a folder.
    ///
    /// - `….json`: an index file. The catalog has the tensors it lists, in the files it lists, which
    ///   are beside it.
    /// - `….npy`: one array, named after the file.
    /// - A folder: its `….safetensors.index.json` if it has one, otherwise all its `.safetensors`
    ///   and `.npy` files.
    /// - Anything else: a safetensors file.
    ///
    /// # Errors
    ///
    /// [`LoadError`] for the first problem found.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        Self::open_all([path])
    }

    /// Opens several files or folders, each as [`open`](Self::open) does.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and [`LoadErrorKind::DuplicateTensor`] if two files have a tensor
    /// with the same name.
    ///
    /// ```
    /// use pinlane::load::{Catalog, LoadErrorKind};
    ///
    /// # let folder = std::path::Path::new("tests/data/load");
    /// let catalog = Catalog::open_all([folder.join("sharded"), folder.join("npy/vector.npy")])?;
    /// assert_eq!(catalog.tensors().len(), 4);
    /// assert_eq!(catalog.tensor("vector")?.shape().len(), 1);
    ///
    /// let error = Catalog::open_all([folder.join("npy"), folder.join("npy/vector.npy")]).unwrap_err();
    /// assert!(matches!(error.kind(), LoadErrorKind::DuplicateTensor { .. }));
    /// assert_eq!(error.tensor(), Some("vector"));
    /// # Ok::<(), pinlane::load::LoadError>(())
    /// ```
    pub fn open_all(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Self, LoadError> {
        let mut catalog = Self::default();
        for path in paths {
            catalog.add(path.as_ref())?;
        }
        catalog.index_names()?;
        Ok(catalog)
    }

    /// The files, in the order given; those of a folder sorted by name.
    pub fn files(&self) -> &[FileInfo] {
        &self.files
    }

    /// The tensors: file by file, by offset.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// Metadata of the index file, such as `total_size`. Values that are not strings are JSON text.
    pub fn index_metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// The tensor with this name.
    ///
    /// # Errors
    ///
    /// [`LoadErrorKind::UnknownTensor`] if there is none.
    pub fn tensor(&self, name: &str) -> Result<&TensorInfo, LoadError> {
        match self.by_name.get(name) {
            Some(at) => Ok(&self.tensors[*at]),
            None => Err(LoadError::from(LoadErrorKind::UnknownTensor).with_tensor(name)),
        }
    }

    /// The selected tensors, each once, in the catalog's order.
    ///
    /// # Errors
    ///
    /// [`LoadErrorKind::UnknownTensor`] for a name that does not exist, [`LoadErrorKind::NoMatch`]
    /// for a pattern that matches nothing.
    pub fn select(&self, selection: &Selection) -> Result<Vec<TensorInfo>, LoadError> {
        selection.of(self)
    }

    /// Whether a tensor, or the tensor it is rows of, is in this catalog.
    pub(crate) fn contains(&self, part: &TensorInfo) -> bool {
        self.tensor(part.name()).is_ok_and(|whole| {
            let (whole_bytes, bytes) = (whole.bytes(), part.bytes());
            let skipped = bytes.start.saturating_sub(whole_bytes.start);
            whole.is_in_same_file(part)
                && whole.dtype() == part.dtype()
                && whole_bytes.start <= bytes.start
                && bytes.end <= whole_bytes.end
                && (u128::from(skipped) * 8).is_multiple_of(u128::from(part.dtype().bits()))
        })
    }

    fn add(&mut self, path: &Path) -> Result<(), LoadError> {
        let metadata = fs::metadata(path)
            .map_err(|error| LoadError::from(LoadErrorKind::io("open", &error)).with_file(path))?;
        if metadata.is_dir() {
            return self.add_folder(path);
        }
        match extension(path).as_deref() {
            Some("json") => self.add_index(path),
            Some("npy") => self.add_file(path, Format::Npy),
            _ => self.add_file(path, Format::Safetensors),
        }
    }

    fn add_file(&mut self, path: &Path, format: Format) -> Result<(), LoadError> {
        let (file, tensors) = format::read(path, format)?;
        self.push(file, tensors);
        Ok(())
    }

    fn add_folder(&mut self, folder: &Path) -> Result<(), LoadError> {
        let failed = |kind: LoadErrorKind| LoadError::from(kind).with_file(folder);
        let mut paths =
            visible_files(folder).map_err(|error| failed(LoadErrorKind::io("list", &error)))?;
        paths.sort();
        let mut indexes = paths.iter().filter(|path| is_index(path));
        match (indexes.next(), indexes.next()) {
            (Some(index), None) => return self.add_index(index),
            (Some(first), Some(second)) => {
                return Err(failed(LoadErrorKind::MultipleIndexes {
                    first: first.clone(),
                    second: second.clone(),
                }));
            }
            (None, _) => {}
        }
        let files_before = self.files.len();
        for path in &paths {
            match extension(path).as_deref() {
                Some("safetensors") => self.add_file(path, Format::Safetensors)?,
                Some("npy") => self.add_file(path, Format::Npy)?,
                _ => {}
            }
        }
        match self.files.len() == files_before {
            true => Err(failed(LoadErrorKind::EmptyFolder)),
            false => Ok(()),
        }
    }

    fn add_index(&mut self, path: &Path) -> Result<(), LoadError> {
        let index = format::read_index(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for (target, names) in index.files {
            let added = self.add_indexed_file(&folder.join(&target), target, &names);
            added.map_err(|error| match error.kind() {
                // Errors of the index, not of the file it names.
                LoadErrorKind::IndexedFileMissing { .. }
                | LoadErrorKind::IndexedTensorMissing { .. } => error.with_file(path),
                _ => error,
            })?;
        }
        self.metadata.extend(index.metadata);
        Ok(())
    }

    /// Adds the tensors of a file that the index lists, and counts the others.
    fn add_indexed_file(
        &mut self,
        path: &Path,
        target: String,
        names: &[String],
    ) -> Result<(), LoadError> {
        if matches!(fs::metadata(path), Err(error) if error.kind() == io::ErrorKind::NotFound) {
            let first = names.first().map_or("", String::as_str);
            let missing = LoadErrorKind::IndexedFileMissing { target };
            return Err(LoadError::from(missing).with_tensor(first));
        }
        let (mut file, mut tensors) = format::read(path, Format::Safetensors)?;
        let mut missing: HashSet<&str> = names.iter().map(String::as_str).collect();
        let in_file = tensors.len();
        tensors.retain(|tensor| missing.remove(tensor.name()));
        // The first by name, so that the error is the same on every run.
        if let Some(name) = missing.into_iter().min() {
            let missing = LoadErrorKind::IndexedTensorMissing { target };
            return Err(LoadError::from(missing).with_tensor(name));
        }
        file.unlisted = in_file - tensors.len();
        self.push(file, tensors);
        Ok(())
    }

    fn push(&mut self, file: FileInfo, tensors: Vec<TensorInfo>) {
        let (number, stamp) = (self.files.len(), file.stamp);
        self.files.push(file);
        let tensors = tensors.into_iter();
        self.tensors
            .extend(tensors.map(|tensor| tensor.in_file(number, stamp)));
    }

    fn index_names(&mut self) -> Result<(), LoadError> {
        self.by_name.reserve(self.tensors.len());
        for (at, tensor) in self.tensors.iter().enumerate() {
            match self.by_name.entry(tensor.shared_name()) {
                Entry::Vacant(entry) => {
                    entry.insert(at);
                }
                Entry::Occupied(first) => {
                    let path = |at: usize| self.files[self.tensors[at].file()].path();
                    let error = LoadError::from(LoadErrorKind::DuplicateTensor {
                        other: path(*first.get()).to_owned(),
                    });
                    return Err(error.with_tensor(tensor.name()).with_file(path(at)));
                }
            }
        }
        Ok(())
    }
}

/// The entries of a folder, without hidden files: some systems leave one beside every real file.
fn visible_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
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
    path.file_name().is_some_and(|name| {
        name.as_encoded_bytes()
            .ends_with(b".safetensors.index.json")
    })
}

fn extension(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}
