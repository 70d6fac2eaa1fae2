//! All tensors of one or many files.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use super::{Fault, FileInfo, LoadError, Selection, TensorInfo, open};

/// The tensors of one or many files. Only headers have been read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Catalog {
    files: Vec<FileInfo>,
    tensors: Vec<TensorInfo>,
    /// Numbers of the tensors, by name.
    by_name: HashMap<Arc<str>, usize>,
    metadata: BTreeMap<String, String>,
}

impl Catalog {
    /// Open a file or a folder.
    ///
    /// - `….json`: an index. The catalog has the tensors that it names, in the files that it names
    ///   them in, which are looked for beside it.
    /// - `….npy`: an array, named as the file is.
    /// - A folder: its `….safetensors.index.json` if it has one, else all its `.safetensors` and
    ///   `.npy` files.
    /// - Anything else: a safetensors file.
    ///
    /// # Errors
    ///
    /// [`LoadError`], for the first thing that is wrong.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        Self::open_all([path])
    }

    /// Open several, each as [`open`](Self::open) does.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and [`Fault::DuplicateTensor`] if two of them have a tensor of the
    /// same name.
    ///
    /// ```
    /// use pinlane::load::{Catalog, Fault};
    ///
    /// # let folder = std::env::temp_dir().join(format!("pinlane-doc-open-{}", std::process::id()));
    /// # std::fs::create_dir_all(folder.join("more"))?;
    /// # let array = b"\x93NUMPY\x01\0\x3a\0{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }\n\0\0\0\0";
    /// # for name in ["a.npy", "b.npy", "more/a.npy"] { std::fs::write(folder.join(name), array)?; }
    /// let catalog = Catalog::open_all([folder.join("a.npy"), folder.join("b.npy")])?;
    /// assert_eq!(catalog.tensors().len(), 2);
    /// assert_eq!(catalog.tensor("b")?.shape(), [2]);
    ///
    /// let error = Catalog::open_all([folder.join("a.npy"), folder.join("more")]).unwrap_err();
    /// assert!(matches!(error.fault(), Fault::DuplicateTensor { .. }));
    /// assert_eq!(error.tensor(), Some("a"));
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open_all(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Self, LoadError> {
        let mut catalog = Self {
            files: Vec::new(),
            tensors: Vec::new(),
            by_name: HashMap::new(),
            metadata: BTreeMap::new(),
        };
        for path in paths {
            open::add(&mut catalog, path.as_ref())?;
        }
        catalog.note_names()?;
        Ok(catalog)
    }

    /// Its files, in the order in which they were named or, in a folder, by name.
    pub fn files(&self) -> &[FileInfo] {
        &self.files
    }

    /// Its tensors: file by file, in the order of their bytes.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// What the index says about the whole, such as `total_size`: text as it is, anything else as
    /// JSON.
    pub fn index_metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// The tensor of this name.
    ///
    /// # Errors
    ///
    /// [`Fault::UnknownTensor`] if there is none.
    pub fn tensor(&self, name: &str) -> Result<&TensorInfo, LoadError> {
        let number = self.by_name.get(name);
        number
            .map(|number| &self.tensors[*number])
            .ok_or_else(|| LoadError::from(Fault::UnknownTensor).with_tensor(name))
    }

    /// The tensors of a selection, in the order of the catalog, each once.
    ///
    /// # Errors
    ///
    /// [`Fault::UnknownTensor`] for a name that is not there, [`Fault::NothingMatches`] for a
    /// pattern that matches nothing.
    pub fn select(&self, selection: &Selection) -> Result<Vec<TensorInfo>, LoadError> {
        selection.of(self)
    }

    /// Whether a tensor is one of these, or rows of one.
    pub(super) fn holds(&self, part: &TensorInfo) -> bool {
        self.tensor(part.name()).is_ok_and(|whole| {
            let (whole_bytes, bytes) = (whole.bytes(), part.bytes());
            let skipped = bytes.start.saturating_sub(whole_bytes.start);
            whole.is_beside(part)
                && whole.dtype() == part.dtype()
                && whole_bytes.start <= bytes.start
                && bytes.end <= whole_bytes.end
                && (u128::from(skipped) * 8).is_multiple_of(u128::from(part.dtype().bits()))
        })
    }

    pub(super) fn push(&mut self, file: FileInfo, tensors: Vec<TensorInfo>) {
        let (number, stamp) = (self.files.len(), file.stamp);
        self.files.push(file);
        let tensors = tensors.into_iter();
        self.tensors
            .extend(tensors.map(|tensor| tensor.in_file(number, stamp)));
    }

    pub(super) fn add_metadata(&mut self, metadata: BTreeMap<String, String>) {
        self.metadata.extend(metadata);
    }

    fn note_names(&mut self) -> Result<(), LoadError> {
        self.by_name.reserve(self.tensors.len());
        for (number, tensor) in self.tensors.iter().enumerate() {
            match self.by_name.entry(tensor.shared_name()) {
                Entry::Vacant(entry) => {
                    entry.insert(number);
                }
                Entry::Occupied(first) => {
                    let file = |number: usize| self.files[self.tensors[number].file()].path();
                    let fault = Fault::DuplicateTensor {
                        other: file(*first.get()).to_owned(),
                    };
                    let error = LoadError::from(fault).with_tensor(tensor.name());
                    return Err(error.of(file(number)));
                }
            }
        }
        Ok(())
    }
}
