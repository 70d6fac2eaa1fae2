//! The tensors of files, folders and index files.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use crate::{FileInfo, Format, LoadError, LoadErrorKind, Selection, TensorInfo, format};

/// The tensors of one or more files. Only headers are read.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Catalog {
    files: Vec<FileInfo>,
    tensors: Vec<TensorInfo>,
    by_name: HashMap<Arc<str>, usize>,
    metadata: BTreeMap<String, String>,
}

impl Catalog {
    /// Opens a file or a folder.
    ///
    /// - `….json`: an index file. The catalog has the tensors it lists, in the files beside it.
    /// - `….npy`: one array, named after the file.
    /// - A folder: its `….safetensors.index.json` if it has one, otherwise all its `.safetensors`
    ///   and `.npy` files.
    /// - Anything else: a safetensors file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        Self::open_all([path])
    }

    /// Opens several files or folders, each as [`open`](Self::open) does.
    ///
    /// # Errors
    /// As [`open`](Self::open), and [`LoadErrorKind::DuplicateTensor`] for a name in two files.
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
    /// [`LoadErrorKind::UnknownTensor`], and [`LoadErrorKind::NoMatch`] for a pattern without a match.
    pub fn select(&self, selection: &Selection) -> Result<Vec<TensorInfo>, LoadError> {
        let Selection { names, globs } = selection;
        if names.is_empty() && globs.is_empty() {
            return Ok(self.tensors.clone());
        }
        let named = names.iter().map(|name| Ok(self.tensor(name)?.name()));
        let mut selected = named.collect::<Result<HashSet<_>, LoadError>>()?;
        for glob in globs {
            let mut matches: Vec<_> = self.tensors.iter().map(TensorInfo::name).collect();
            matches.retain(|name| glob.matches(name));
            if matches.is_empty() {
                let pattern = glob.pattern().to_owned();
                return Err(LoadErrorKind::NoMatch { pattern }.into());
            }
            selected.extend(matches);
        }
        let is_selected = |tensor: &&TensorInfo| selected.contains(tensor.name());
        Ok(self.tensors.iter().filter(is_selected).cloned().collect())
    }

    /// Whether a tensor, or the tensor it is rows of, is in this catalog.
    pub(crate) fn contains(&self, part: &TensorInfo) -> bool {
        self.tensor(part.name()).is_ok_and(|whole| {
            let (whole_bytes, bytes) = (whole.bytes(), part.bytes());
            let skipped = bytes.start.saturating_sub(whole_bytes.start);
            (whole.file, whole.stamp, whole.dtype()) == (part.file, part.stamp, part.dtype())
                && whole_bytes.start <= bytes.start
                && bytes.end <= whole_bytes.end
                && (u128::from(skipped) * 8).is_multiple_of(u128::from(part.dtype().bits()))
        })
    }

    fn add(&mut self, path: &Path) -> Result<(), LoadError> {
        match extension(path).as_deref() {
            _ if path.is_dir() => self.add_folder(path),
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
        let list = |entries: fs::ReadDir| entries.map(|entry| Ok(entry?.path())).collect();
        let listed: io::Result<Vec<PathBuf>> = fs::read_dir(folder).and_then(list);
        let mut paths = listed.map_err(|error| failed(LoadErrorKind::io("list", &error)))?;
        // Some systems leave a hidden file beside every real one.
        paths.retain(|path| !name_bytes(path).starts_with(b"."));
        paths.sort();
        let is_index = |path: &&PathBuf| name_bytes(path).ends_with(b".safetensors.index.json");
        let mut indexes = paths.iter().filter(is_index).cloned();
        match (indexes.next(), indexes.next()) {
            (Some(index), None) => return self.add_index(&index),
            (Some(first), Some(second)) => {
                return Err(failed(LoadErrorKind::MultipleIndexes { first, second }));
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

    /// Adds the tensors that the index lists, and counts the others in its files.
    fn add_index(&mut self, index_path: &Path) -> Result<(), LoadError> {
        let index = format::read_index(index_path)?;
        let failed = |kind: LoadErrorKind, tensor: &str| {
            let error = LoadError::from(kind).with_file(index_path);
            Err(error.with_tensor(tensor))
        };
        for (target, names) in index.files {
            let path = index_path.with_file_name(&target);
            if matches!(fs::metadata(&path), Err(error) if error.kind() == io::ErrorKind::NotFound)
            {
                let first = names.first().map_or("", String::as_str);
                return failed(LoadErrorKind::IndexedFileMissing { target }, first);
            }
            let (mut file, mut tensors) = format::read(&path, Format::Safetensors)?;
            let mut missing: HashSet<&str> = names.iter().map(String::as_str).collect();
            let in_file = tensors.len();
            tensors.retain(|tensor| missing.remove(tensor.name()));
            // The first by name, so that the error is the same on every run.
            if let Some(name) = missing.into_iter().min() {
                return failed(LoadErrorKind::IndexedTensorMissing { target }, name);
            }
            file.unlisted = in_file - tensors.len();
            self.push(file, tensors);
        }
        self.metadata.extend(index.metadata);
        Ok(())
    }

    fn push(&mut self, file: FileInfo, mut tensors: Vec<TensorInfo>) {
        for tensor in &mut tensors {
            (tensor.file, tensor.stamp) = (self.files.len(), Some(file.stamp));
        }
        self.files.push(file);
        self.tensors.append(&mut tensors);
    }

    fn index_names(&mut self) -> Result<(), LoadError> {
        self.by_name.reserve(self.tensors.len());
        for (at, tensor) in self.tensors.iter().enumerate() {
            if let Some(first) = self.by_name.insert(Arc::clone(&tensor.name), at) {
                let path = |at: usize| self.files[self.tensors[at].file()].path();
                let other = path(first).to_owned();
                let error = LoadError::from(LoadErrorKind::DuplicateTensor { other });
                return Err(error.with_tensor(tensor.name()).with_file(path(at)));
            }
        }
        Ok(())
    }
}

fn name_bytes(path: &Path) -> &[u8] {
    path.file_name().unwrap_or_default().as_encoded_bytes()
}

fn extension(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}
