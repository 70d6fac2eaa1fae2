//! Arrays in files.

use std::collections::btree_map::{BTreeMap, Entry};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use super::{ArrayMemory, Arrays, Column};
use crate::file_info::read_exact;
use crate::{Catalog, Field, FileInfo, LoadError, LoadErrorKind, TensorInfo};

impl Arrays {
    /// All tensors of what [`Catalog::open`] takes: each is a field, with a row for each sample.
    ///
    /// ```
    /// use pinlane::load::dataset::{Arrays, Dataset};
    ///
    /// # let path = "tests/data/dataset/npy/label.npy";
    /// let arrays = Arrays::open(path)?;
    /// assert_eq!(arrays.origin(1), format!("row 1 of {path}"));
    /// # Ok::<(), pinlane::load::LoadError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Catalog::open`] and of [`of`](Self::of).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        let catalog = Catalog::open(path)?;
        Self::of(&catalog, catalog.tensors())
    }

    /// Tensors of a catalog, or rows of them, as fields in this order.
    ///
    /// # Errors
    /// [`LoadErrorKind::NoFields`], [`LoadErrorKind::NoRows`] for a scalar, [`LoadErrorKind::SamplesDiffer`]
    /// if numbers of rows differ, [`LoadErrorKind::RowsSplitByte`] if a row ends inside a byte,
    /// [`LoadErrorKind::OtherCatalog`], and [`LoadErrorKind::FileChanged`].
    pub fn of(catalog: &Catalog, tensors: &[TensorInfo]) -> Result<Self, LoadError> {
        let first = tensors.first().ok_or(LoadErrorKind::NoFields)?;
        let samples = first.shape().first().copied().unwrap_or(0);
        let mut arrays = Self {
            samples: usize::try_from(samples).map_err(|_| LoadErrorKind::TotalOverflow)?,
            fields: Vec::with_capacity(tensors.len()),
            columns: Vec::with_capacity(tensors.len()),
            files: Vec::new(),
        };
        // The files opened so far, by their index in the catalog.
        let mut opened = BTreeMap::new();
        for tensor in tensors {
            let file = catalog.files().get(tensor.file());
            let error = |fault: LoadErrorKind| {
                let error = LoadError::from(fault).with_tensor(tensor.name());
                match file {
                    Some(file) => error.with_file(file.path()),
                    None => error,
                }
            };
            let info = file.filter(|_| catalog.contains(tensor));
            let info = info.ok_or_else(|| error(LoadErrorKind::OtherCatalog))?;
            let file = match opened.entry(tensor.file()) {
                Entry::Occupied(file) => file.into_mut(),
                Entry::Vacant(place) => {
                    arrays.files.push(Arc::new(ArrayFile::new(info)?));
                    place.insert(Arc::clone(&arrays.files[arrays.files.len() - 1]))
                }
            };
            let (field, column) = column(tensor, first, file).map_err(error)?;
            arrays.fields.push(field);
            arrays.columns.push(column);
        }
        Ok(arrays)
    }
}

/// A tensor as a field, and its rows in its file.
fn column(
    tensor: &TensorInfo,
    first: &TensorInfo,
    file: &Arc<ArrayFile>,
) -> Result<(Field, Column), LoadErrorKind> {
    let [rows, row @ ..] = tensor.shape() else {
        return Err(LoadErrorKind::NoRows);
    };
    let expected = first.shape().first().copied().unwrap_or(0);
    if *rows != expected {
        return Err(LoadErrorKind::SamplesDiffer {
            samples: *rows,
            other: first.name().to_owned(),
            other_samples: expected,
        });
    }
    let row_bytes = tensor.dtype().bytes_of(row).map_err(|fault| match fault {
        LoadErrorKind::PartialByte { dtype, .. } => LoadErrorKind::RowsSplitByte {
            start: 0,
            end: 1,
            dtype,
            shape: tensor.shape().to_vec(),
        },
        other => other,
    })?;
    let number = |number: u64| usize::try_from(number).map_err(|_| LoadErrorKind::TotalOverflow);
    let shape: Result<Vec<usize>, LoadErrorKind> = row.iter().map(|dim| number(*dim)).collect();
    let column = Column {
        memory: ArrayMemory::File(Arc::clone(file)),
        start: number(tensor.bytes().start)?,
        row_bytes: number(row_bytes)?,
    };
    Ok((Field::fixed(tensor.name(), tensor.dtype(), shape?), column))
}

/// An open file. Rows are read, not mapped: if the file is truncated or its disk fails, a mapping kills the
/// process with `SIGBUS`.
pub(super) struct ArrayFile {
    file: File,
    pub(super) info: FileInfo,
}

impl ArrayFile {
    fn new(info: &FileInfo) -> Result<Self, LoadError> {
        let (file, info) = (info.open()?, info.clone());
        Ok(Self { file, info })
    }

    pub(super) fn check(&self) -> Result<(), LoadError> {
        self.info.check(&self.file)
    }

    /// Fill `target` with the bytes from `start`.
    pub(super) fn read(&self, start: usize, target: &mut [u8]) -> Result<(), LoadError> {
        let read = read_exact(&self.file, target, start as u64);
        read.map_err(|fault| LoadError::from(fault).with_file(self.info.path()))
    }
}
