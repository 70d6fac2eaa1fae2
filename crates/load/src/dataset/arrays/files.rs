//! Arrays in files.

use std::path::Path;

use super::mapping::Mapping;
use super::{Arrays, Column, Home};
use crate::{Catalog, Field, LoadError, LoadErrorKind, TensorInfo};

impl Arrays {
    /// All tensors of a file or a folder, which [`Catalog::open`] describes, each as a field of its
    /// name. They have one row a sample, and so all the same number of rows.
    ///
    /// ```
    /// use pinlane::load::dataset::{Arrays, Dataset};
    ///
    /// # let path = std::env::temp_dir().join(format!("pinlane-doc-arrays-{}.npy", std::process::id()));
    /// # std::fs::write(&path, b"\x93NUMPY\x01\0\x3c\0{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }\n\0\0\0\0\0\0\0\0\0\0\0\0")?;
    /// let arrays = Arrays::open(&path)?; // two rows of three numbers
    /// assert_eq!(arrays.len(), 2);
    /// assert!(arrays.source(1).starts_with("row 1 of "));
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

    /// Some tensors of a catalog, or rows of them, as fields in this order.
    ///
    /// # Errors
    /// [`LoadErrorKind::NoFields`] if there are none, [`LoadErrorKind::NoRows`] for a scalar,
    /// [`LoadErrorKind::SamplesDiffer`] for the first one that has another number of rows than those before
    /// it, [`LoadErrorKind::RowsSplitByte`] where a row ends inside of a byte, [`LoadErrorKind::OtherCatalog`] for
    /// a tensor of another catalog, and [`LoadErrorKind::FileChanged`] where a file has changed meanwhile.
    pub fn of(catalog: &Catalog, tensors: &[TensorInfo]) -> Result<Self, LoadError> {
        let first = tensors.first().ok_or(LoadErrorKind::NoFields)?;
        let samples = first.shape().first().copied().unwrap_or(0);
        let mut arrays = Self {
            samples: usize::try_from(samples).map_err(|_| LoadErrorKind::TotalOverflow)?,
            fields: Vec::with_capacity(tensors.len()),
            columns: Vec::with_capacity(tensors.len()),
            files: Vec::new(),
        };
        // Numbers of the catalog's files, in the order in which they are mapped here.
        let mut mapped: Vec<usize> = Vec::new();
        for tensor in tensors {
            let file = catalog.files().get(tensor.file());
            let placed = |fault: LoadErrorKind| {
                let error = LoadError::from(fault).with_tensor(tensor.name());
                match file {
                    Some(file) => error.with_file(file.path()),
                    None => error,
                }
            };
            let info = file
                .filter(|_| catalog.contains(tensor))
                .ok_or_else(|| placed(LoadErrorKind::OtherCatalog))?;
            let number = match mapped.iter().position(|number| *number == tensor.file()) {
                Some(number) => number,
                None => {
                    arrays.files.push(Mapping::new(info)?);
                    mapped.push(tensor.file());
                    mapped.len() - 1
                }
            };
            let (field, start, row_bytes) = column(tensor, first).map_err(placed)?;
            arrays.fields.push(field);
            arrays.columns.push(Column {
                home: Home::File(number),
                start,
                row_bytes,
            });
        }
        Ok(arrays)
    }
}

/// A tensor as a field: where its first row is, and how many bytes a row has.
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
