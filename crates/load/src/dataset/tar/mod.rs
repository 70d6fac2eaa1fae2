//! Samples in tar archives.
//!
//! The `tar` crate does not fit untrusted archives: 0.4 takes a truncated archive for a complete one,
//! cuts sizes to 64 bits, reads long names of any length, and rejects pax values that contain newlines.

mod archive;
mod entries;

use std::path::Path;

use self::archive::TarArchive;
use self::entries::EntryData;
use super::{Dataset, Field, Result, SampleMut};
use crate::error::Quoted;
use crate::file_info::read_exact;
use crate::setters::setters;
use crate::{LoadError, LoadErrorKind, TarError};

/// Files with one extension, as a field of the samples.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TarField {
    /// What follows the first dot of the file name, in any case: `jpg`, `seg.png`. A leading dot is ignored.
    pub extension: String,
    /// The field, whose bytes are the file's.
    pub field: Field,
}

/// What to read from archives.
///
/// ```
/// use pinlane::load::Dtype;
/// use pinlane::load::dataset::{Field, TarConfig};
///
/// let config = TarConfig::new()
///     .field("jpg", Field::variable("image", Dtype::U8, 1 << 20))
///     .field("cls", Field::fixed("label", Dtype::U8, [1]));
/// assert_eq!(config.fields.len(), 2);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TarConfig {
    /// The fields of the samples. Files with other extensions are not read.
    pub fields: Vec<TarField>,
}

impl TarConfig {
    /// A configuration without fields.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! { fields: Vec<TarField> }

    /// Add files with this extension as a field.
    #[must_use]
    pub fn field(mut self, extension: impl Into<String>, field: Field) -> Self {
        let extension = extension.into();
        self.fields.push(TarField { extension, field });
        self
    }
}

/// Samples in tar archives, in WebDataset layout.
///
/// Consecutive files whose paths are equal up to the first dot of the file name form a sample:
/// `train/0001.jpg` and `train/0001.cls`. The common part is the sample's key, the rest selects the field.
/// The file's bytes are the field's: nothing is decoded.
///
/// [`open`](Self::open) reads all headers once; samples are then read from their position, in any order.
/// Archives may be in ustar, pax or GNU format, uncompressed and without sparse files. Ignored are folders
/// and links, and like in WebDataset names without a dot, hidden files, and `__…__`.
///
/// A sample that lacks a file, or has one that does not fit its field, is an error of that sample. So are
/// samples whose files are not consecutive; `tar --sort=name` keeps them together.
#[derive(Debug)]
pub struct Tar {
    extensions: Vec<String>,
    fields: Vec<Field>,
    /// Bytes that each field has room for.
    rooms: Vec<usize>,
    archives: Vec<TarArchive>,
    /// Index after the last sample of each archive.
    ends: Vec<usize>,
}

impl Tar {
    /// Open archives, in this order. A folder stands for all its `.tar` files, sorted by name.
    ///
    /// ```
    /// use pinlane::load::Dtype;
    /// use pinlane::load::dataset::{Dataset, Field, SampleMut, Tar, TarConfig};
    ///
    /// # let path = "tests/data/dataset/tar/gnu-pax.tar";
    /// let config = TarConfig::new().field("cls", Field::fixed("label", Dtype::U8, [1]));
    /// let tar = Tar::open([path], config)?; // starts with train/0001.cls, of one byte
    /// assert!(tar.origin(0).contains("train/0001"));
    ///
    /// let mut label = [0];
    /// let mut sample = SampleMut::new();
    /// sample.push(&tar.fields()[0], &mut label);
    /// tar.read(0, &mut sample)?;
    /// assert_eq!(label, *b"3");
    /// # Ok::<(), pinlane::load::SampleError>(())
    /// ```
    ///
    /// # Errors
    /// That of the first invalid archive, [`LoadErrorKind::NoFields`], and [`TarError::NoSuchExtension`].
    pub fn open(
        paths: impl IntoIterator<Item = impl AsRef<Path>>,
        config: TarConfig,
    ) -> Result<Self, LoadError> {
        let (mut extensions, mut fields, mut rooms) = (Vec::new(), Vec::new(), Vec::new());
        for TarField { extension, field } in config.fields {
            extensions.push(extension.strip_prefix('.').unwrap_or(&extension).to_owned());
            rooms.push(field.room_bytes().map_err(|fault| field.error(fault))?);
            fields.push(field);
        }
        if fields.is_empty() {
            return Err(LoadErrorKind::NoFields.into());
        }
        let archives = archive::open_all(paths, &extensions)?;
        archive::check_extensions(&archives, &extensions)?;
        let ends = archives.iter().scan(0, |end, archive| {
            *end += archive.index.len();
            Some(*end)
        });
        Ok(Self {
            ends: ends.collect(),
            archives,
            extensions,
            fields,
            rooms,
        })
    }

    /// The archive of a sample, and the sample's index in it.
    fn locate(&self, index: usize) -> (&TarArchive, usize) {
        let number = self.ends.partition_point(|end| *end <= index);
        let Some(archive) = self.archives.get(number) else {
            panic!("there is no sample {index} of {}", self.len());
        };
        (archive, index + archive.index.len() - self.ends[number])
    }

    /// Where the bytes of a field are, which fit the field.
    fn data(
        &self,
        archive: &TarArchive,
        number: usize,
        field: usize,
    ) -> Result<EntryData, LoadError> {
        let entry_name = || {
            let key = String::from_utf8_lossy(archive.index.key(number));
            format!("{key}.{}", self.extensions[field])
        };
        let Some(data) = archive.index.fields(number)[field] else {
            let entry = entry_name();
            let fault = match archive.index.scattered.binary_search(&(number, field)) {
                Ok(_) => TarError::Scattered { entry },
                Err(_) => TarError::Missing { entry },
            };
            return Err(archive.error(fault));
        };
        let (kind, room_bytes) = (&self.fields[field], self.rooms[field] as u64);
        let (bits, element_bits) = (u128::from(data.bytes) * 8, kind.dtype().bits().into());
        let fits = match kind.is_fixed() {
            true => data.bytes == room_bytes,
            false => data.bytes <= room_bytes && bits.is_multiple_of(element_bits),
        };
        match fits {
            true => Ok(data),
            false => Err(archive.error(TarError::Length {
                entry: entry_name(),
                bytes: data.bytes,
                field: kind.clone(),
            })),
        }
    }
}

impl Dataset for Tar {
    fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn fields(&self) -> &[Field] {
        &self.fields
    }

    fn read(&self, index: usize, sample: &mut SampleMut<'_>) -> Result<()> {
        let (archive, number) = self.locate(index);
        Ok(archive.with_file(|file| {
            for (field, kind) in self.fields.iter().enumerate() {
                let EntryData { start, bytes } = self.data(archive, number, field)?;
                let target = match kind.is_fixed() {
                    true => sample.fixed(field),
                    false => sample.variable(field, bytes as usize).expect("it fits"),
                };
                read_exact(file, target, start.get()).map_err(|fault| archive.error(fault))?;
            }
            Ok(())
        })?)
    }

    fn origin(&self, index: usize) -> String {
        let (archive, number) = self.locate(index);
        let key = String::from_utf8_lossy(archive.index.key(number));
        format!("{}: {}", archive.path.display(), Quoted(&key))
    }
}
