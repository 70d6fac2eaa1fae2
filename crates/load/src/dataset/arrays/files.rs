//! Arrays in memory-mapped files.

use std::fs::File;
use std::path::Path;

use memmap2::{MmapOptions, MmapRaw};

use super::{ArrayMemory, Arrays, Column};
use crate::{Catalog, Field, FileInfo, LoadError, LoadErrorKind, TensorInfo};

impl Arrays {
    /// All tensors of a file or a folder, as accepted by [`Catalog::open`]. Each is a field with its name,
    /// and has one row for each sample.
    ///
    /// ```
    /// use pinlane::load::dataset::{Arrays, Dataset};
    ///
    /// # let path = std::env::temp_dir().join(format!("pinlane-doc-arrays-{}.npy", std::process::id()));
    /// # std::fs::write(&path, b"\x93NUMPY\x01\0\x3c\0{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }\n\0\0\0\0\0\0\0\0\0\0\0\0")?;
    /// let arrays = Arrays::open(&path)?; // two rows of three numbers
    /// assert_eq!(arrays.len(), 2);
    /// assert!(arrays.origin(1).starts_with("row 1 of "));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
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
    /// [`LoadErrorKind::NoFields`] without tensors, [`LoadErrorKind::NoRows`] for a scalar, [`LoadErrorKind::SamplesDiffer`] for a
    /// tensor with a different number of rows than the first, [`LoadErrorKind::RowsSplitByte`] if a row ends inside
    /// a byte, [`LoadErrorKind::OtherCatalog`] for a tensor of another catalog, and [`LoadErrorKind::FileChanged`] if a file has
    /// changed.
    pub fn of(catalog: &Catalog, tensors: &[TensorInfo]) -> Result<Self, LoadError> {
        let first = tensors.first().ok_or(LoadErrorKind::NoFields)?;
        let samples = first.shape().first().copied().unwrap_or(0);
        let mut arrays = Self {
            samples: usize::try_from(samples).map_err(|_| LoadErrorKind::TotalOverflow)?,
            fields: Vec::with_capacity(tensors.len()),
            columns: Vec::with_capacity(tensors.len()),
            files: Vec::new(),
        };
        // Catalog indices of the files mapped so far.
        let mut mapped: Vec<usize> = Vec::new();
        for tensor in tensors {
            let file = catalog.files().get(tensor.file());
            let error = |fault: LoadErrorKind| {
                let error = LoadError::from(fault).with_tensor(tensor.name());
                match file {
                    Some(file) => error.with_file(file.path()),
                    None => error,
                }
            };
            let info = file
                .filter(|_| catalog.contains(tensor))
                .ok_or_else(|| error(LoadErrorKind::OtherCatalog))?;
            let number = match mapped.iter().position(|number| *number == tensor.file()) {
                Some(number) => number,
                None => {
                    arrays.files.push(MappedFile::new(info)?);
                    mapped.push(tensor.file());
                    mapped.len() - 1
                }
            };
            let (field, start, row_bytes) = column(tensor, first).map_err(error)?;
            arrays.fields.push(field);
            arrays.columns.push(Column {
                memory: ArrayMemory::File(number),
                start,
                row_bytes,
            });
        }
        Ok(arrays)
    }
}

/// A tensor as a field, the byte where its first row starts, and the bytes of a row.
fn column(tensor: &TensorInfo, first: &TensorInfo) -> Result<(Field, usize, usize), LoadErrorKind> {
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
    let field = Field::fixed(tensor.name(), tensor.dtype(), shape?);
    Ok((field, number(tensor.bytes().start)?, number(row_bytes)?))
}

/// A file mapped for reading.
///
/// Its bytes are only ever copied, never borrowed as a slice: another process may write to the file at any
/// time, and the contents of a slice must not change.
pub(super) struct MappedFile {
    map: MmapRaw,
    file: File,
    info: FileInfo,
}

impl MappedFile {
    fn new(info: &FileInfo) -> Result<Self, LoadError> {
        let error = |fault: LoadErrorKind| LoadError::from(fault).with_file(info.path());
        let file = info.open()?;
        let map = MmapOptions::new()
            .map_raw_read_only(&file)
            .map_err(|problem| error(LoadErrorKind::io("map", &problem)))?;
        match map.len() as u64 == info.len_bytes() {
            true => Ok(Self {
                map,
                file,
                info: info.clone(),
            }),
            false => Err(error(LoadErrorKind::FileChanged)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.info.path()
    }

    /// Check that the file has not changed.
    pub(super) fn check(&self) -> Result<(), LoadError> {
        self.info.check(&self.file)
    }

    /// Fill `target` with the bytes from `start`.
    ///
    /// # Panics
    /// If the mapping is shorter.
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
