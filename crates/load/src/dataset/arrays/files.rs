//! Arrays in memory-mapped files.

use std::collections::btree_map::{BTreeMap, Entry};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use memmap2::{MmapOptions, MmapRaw};

use super::{ArrayMemory, Arrays, Column};
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
        // The files mapped so far, by their index in the catalog.
        let mut mapped = BTreeMap::new();
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
            let file = match mapped.entry(tensor.file()) {
                Entry::Occupied(file) => file.into_mut(),
                Entry::Vacant(place) => {
                    arrays.files.push(Arc::new(MappedFile::new(info)?));
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
    file: &Arc<MappedFile>,
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

/// A file mapped for reading. Its bytes are only copied, never borrowed as a slice: another process may write
/// to the file at any time.
pub(super) struct MappedFile {
    map: MmapRaw,
    file: File,
    pub(super) info: FileInfo,
}

impl MappedFile {
    fn new(info: &FileInfo) -> Result<Self, LoadError> {
        let error = |fault: LoadErrorKind| LoadError::from(fault).with_file(info.path());
        let file = info.open()?;
        let map = MmapOptions::new()
            .map_raw_read_only(&file)
            .map_err(|problem| error(LoadErrorKind::io("map", &problem)))?;
        if map.len() as u64 != info.len_bytes() {
            return Err(error(LoadErrorKind::FileChanged));
        }
        let info = info.clone();
        Ok(Self { map, file, info })
    }

    pub(super) fn check(&self) -> Result<(), LoadError> {
        self.info.check(&self.file)
    }

    /// Fill `target` with the bytes from `start`. Panics if the mapping is shorter.
    pub(super) fn copy_to(&self, start: usize, target: &mut [u8]) {
        let (bytes, len) = (target.len(), self.map.len());
        let inside = start.checked_add(bytes).is_some_and(|end| end <= len);
        assert!(inside, "{bytes} bytes at {start} are past the end at {len}");
        // SAFETY: the bytes are inside the mapping, which lives as long as `self` and is only read;
        // `target` is borrowed exclusively, so it is other memory. If the file changes meanwhile, the bytes
        // are arbitrary; if it gets shorter, the access raises a signal, which is not undefined behaviour.
        unsafe {
            let source = self.map.as_ptr().add(start);
            source.copy_to_nonoverlapping(target.as_mut_ptr(), bytes);
        }
    }
}
