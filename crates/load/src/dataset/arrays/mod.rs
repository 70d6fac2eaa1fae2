//! Samples that are rows of arrays.

mod files;

use std::fmt;
use std::sync::Arc;

use super::{Dataset, Field, Result, SampleMut};
use crate::{LoadError, LoadErrorKind};

/// Samples that are rows of arrays: sample `i` is row `i` of each array, and each array is a field.
///
/// Rows of npy and safetensors files are read when they are needed ([`open`](Self::open), [`of`](Self::of));
/// arrays in memory are used in place ([`from_memory`](Self::from_memory)). [`and`](Self::and) combines both.
///
/// Files are checked for changes after each sample; a file that was changed or truncated is an error of the
/// sample. Replace files with `rename` rather than write into them.
///
/// ```
/// use pinlane::load::Dtype;
/// use pinlane::load::dataset::{Arrays, Dataset, Field, SampleMut};
///
/// let images = Field::fixed("image", Dtype::U8, [2, 2]);
/// let labels = Field::fixed("label", Dtype::U8, []);
/// let arrays = Arrays::from_memory(3, [(images, vec![7; 12]), (labels, vec![0, 1, 2])])?;
///
/// let (mut image, mut label) = ([0; 4], [0; 1]);
/// let mut sample = SampleMut::new();
/// sample.push(&arrays.fields()[0], &mut image);
/// sample.push(&arrays.fields()[1], &mut label);
/// arrays.read(2, &mut sample)?;
/// assert_eq!((image, label), ([7; 4], [2]));
/// # Ok::<(), pinlane::load::SampleError>(())
/// ```
pub struct Arrays {
    samples: usize,
    fields: Vec<Field>,
    columns: Vec<Column>,
    /// The files of the columns, each once.
    files: Vec<Arc<files::ArrayFile>>,
}

struct Column {
    memory: ArrayMemory,
    /// Byte where the first row starts.
    start: usize,
    row_bytes: usize,
}

enum ArrayMemory {
    File(Arc<files::ArrayFile>),
    Bytes(Box<dyn AsRef<[u8]> + Send + Sync>),
}

impl Arrays {
    /// Arrays in memory: for each field, the bytes of all samples in a row.
    ///
    /// # Errors
    /// [`LoadErrorKind::NoFields`], [`LoadErrorKind::NotFixed`] for a variable field, and
    /// [`LoadErrorKind::ArrayLength`] if an array does not have exactly `samples` rows.
    pub fn from_memory<B>(
        samples: usize,
        arrays: impl IntoIterator<Item = (Field, B)>,
    ) -> Result<Self, LoadError>
    where
        B: AsRef<[u8]> + Send + Sync + 'static,
    {
        let (mut fields, mut columns) = (Vec::new(), Vec::new());
        for (field, bytes) in arrays {
            let row_bytes = row_bytes(samples, &field, bytes.as_ref());
            let row_bytes = row_bytes.map_err(|fault| field.error(fault))?;
            fields.push(field);
            columns.push(Column {
                memory: ArrayMemory::Bytes(Box::new(bytes)),
                start: 0,
                row_bytes,
            });
        }
        if fields.is_empty() {
            return Err(LoadErrorKind::NoFields.into());
        }
        Ok(Self {
            samples,
            fields,
            columns,
            files: Vec::new(),
        })
    }

    /// Samples with the fields of both.
    ///
    /// # Errors
    /// [`LoadErrorKind::SamplesDiffer`] if they have different numbers of samples.
    pub fn and(mut self, other: Self) -> Result<Self, LoadError> {
        if self.samples != other.samples {
            return Err(other.fields[0].error(LoadErrorKind::SamplesDiffer {
                samples: other.samples as u64,
                other: self.fields[0].name().to_owned(),
                other_samples: self.samples as u64,
            }));
        }
        self.fields.extend(other.fields);
        self.columns.extend(other.columns);
        self.files.extend(other.files);
        Ok(self)
    }

    /// Check that no file has changed.
    fn check(&self) -> Result<(), LoadError> {
        for file in &self.files {
            file.check()?;
        }
        Ok(())
    }
}

/// The bytes of a row, if the array has exactly `samples` rows.
fn row_bytes(samples: usize, field: &Field, array: &[u8]) -> Result<usize, LoadErrorKind> {
    if !field.is_fixed() {
        return Err(LoadErrorKind::NotFixed);
    }
    let row_bytes = field.room_bytes()?;
    match row_bytes.checked_mul(samples) {
        Some(expected) if expected == array.len() => Ok(row_bytes),
        _ => Err(LoadErrorKind::ArrayLength {
            bytes: array.len(),
            samples,
            row_bytes,
        }),
    }
}

impl Dataset for Arrays {
    fn len(&self) -> usize {
        self.samples
    }

    fn fields(&self) -> &[Field] {
        &self.fields
    }

    fn read(&self, index: usize, sample: &mut SampleMut<'_>) -> Result<()> {
        let samples = self.samples;
        assert!(index < samples, "there is no sample {index} of {samples}");
        for (number, column) in self.columns.iter().enumerate() {
            let target = sample.fixed(number);
            assert_eq!(target.len(), column.row_bytes, "size of field {number}");
            // Inside the array, whose size was checked when it was opened.
            let start = column.start + index * column.row_bytes;
            match &column.memory {
                ArrayMemory::File(file) => file.read(start, target)?,
                ArrayMemory::Bytes(bytes) => {
                    // `as_ref` is the user's code and may return something else than at first.
                    let row = (**bytes).as_ref().get(start..start + target.len());
                    target.copy_from_slice(row.ok_or("the array in memory has become shorter")?);
                }
            }
        }
        // Afterwards: a file written in the meantime may have given a mix of old and new.
        Ok(self.check()?)
    }

    fn origin(&self, index: usize) -> String {
        if let [first, others @ ..] = self.files.as_slice() {
            let row = format!("row {index} of {}", first.info.path().display());
            return match others.len() {
                0 => row,
                more => format!("{row} and {more} more"),
            };
        }
        format!("row {index}")
    }
}

impl fmt::Debug for Arrays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arrays")
            .field("samples", &self.samples)
            .field("fields", &self.fields)
            .finish_non_exhaustive()
    }
}
