//! Samples that are rows of arrays.

#[cfg(feature = "mmap")]
mod files;
#[cfg(feature = "mmap")]
mod mapping;
mod memory;

use std::fmt;

use self::memory::Memory;
use super::{Dataset, Field, SampleError, SampleMut};
use crate::{LoadError, LoadErrorKind};

/// Samples that are rows of arrays: sample `i` has row `i` of each, and each array is a field.
///
/// Arrays of npy and safetensors files are mapped into memory ([`open`](Self::open),
/// [`of`](Self::of)); what is in memory anyway is taken as it is
/// ([`from_memory`](Self::from_memory)). [`and`](Self::and) puts both side by side.
///
/// # Files that change
///
/// Each reading of a sample first asks the system whether the files are what they were, which takes
/// up to a microsecond for each file; if not, it is an error of the sample. But a file that another
/// process shortens in the very moment of reading, or a disk that fails, kills this process
/// (`SIGBUS`), as it does with any mapped file. So replace files by new ones (`rename`) rather than
/// write into them.
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
/// sample.push_fixed(&mut image);
/// sample.push_fixed(&mut label);
/// arrays.read(2, &mut sample)?;
/// assert_eq!((image, label), ([7; 4], [2]));
/// # Ok::<(), pinlane::load::SampleError>(())
/// ```
pub struct Arrays {
    samples: usize,
    fields: Vec<Field>,
    columns: Vec<Column>,
    #[cfg(feature = "mmap")]
    files: Vec<mapping::Mapping>,
}

/// One array.
struct Column {
    home: Home,
    /// Where the first row is in its home.
    start: usize,
    row_bytes: usize,
}

/// Where the bytes are.
enum Home {
    /// In the file of this number.
    #[cfg(feature = "mmap")]
    File(usize),
    Memory(Memory),
}

impl Arrays {
    /// The fields of both, each sample's side by side.
    ///
    /// # Errors
    /// [`LoadErrorKind::SamplesDiffer`] if one has more samples than the other.
    pub fn and(mut self, other: Self) -> Result<Self, LoadError> {
        if self.samples != other.samples {
            let name = |arrays: &Self| arrays.fields.first().map(|field| field.name().to_owned());
            let fault = LoadErrorKind::SamplesDiffer {
                samples: other.samples as u64,
                other: name(&self).unwrap_or_default(),
                other_samples: self.samples as u64,
            };
            return Err(LoadError::from(fault).with_tensor(&name(&other).unwrap_or_default()));
        }
        #[cfg(feature = "mmap")]
        let files = self.files.len();
        self.fields.extend(other.fields);
        self.columns.extend(other.columns.into_iter().map(|column| {
            let home = match column.home {
                #[cfg(feature = "mmap")]
                Home::File(number) => Home::File(files + number),
                memory => memory,
            };
            Column { home, ..column }
        }));
        #[cfg(feature = "mmap")]
        self.files.extend(other.files);
        Ok(self)
    }

    /// Whether files are what they were.
    fn check(&self) -> Result<(), LoadError> {
        #[cfg(feature = "mmap")]
        for file in &self.files {
            file.check()?;
        }
        Ok(())
    }
}

impl Dataset for Arrays {
    fn len(&self) -> usize {
        self.samples
    }

    fn fields(&self) -> &[Field] {
        &self.fields
    }

    fn read(&self, index: usize, sample: &mut SampleMut<'_>) -> Result<(), SampleError> {
        assert!(index < self.samples, "there are {} samples", self.samples);
        self.check()?;
        for (number, column) in self.columns.iter().enumerate() {
            let place = sample.fixed(number);
            assert_eq!(place.len(), column.row_bytes, "the place of field {number}");
            // Inside of the array, whose bytes were counted when it was opened.
            let start = column.start + index * column.row_bytes;
            match &column.home {
                #[cfg(feature = "mmap")]
                Home::File(file) => self.files[*file].copy_to(start, place),
                Home::Memory(memory) => memory.copy_to(start, place)?,
            }
        }
        // A file that was written to meanwhile may have given some of both.
        Ok(self.check()?)
    }

    fn source(&self, index: usize) -> String {
        #[cfg(feature = "mmap")]
        if let [first, others @ ..] = self.files.as_slice() {
            let more = match others.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            return format!("row {index} of {}{more}", first.path().display());
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
