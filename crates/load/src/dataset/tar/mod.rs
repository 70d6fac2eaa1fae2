//! Samples in tar archives.

mod archive;
mod blocks;
mod config;
mod entries;
mod error;
mod extensions;
mod header;
mod index;
mod open;
mod pax;
mod scattered;

use std::fs::File;
use std::path::Path;

pub use config::{TarConfig, TarField};
pub use error::TarError;

use self::archive::Archive;
use self::index::Place;
use super::size::room_bytes;
use super::{Dataset, Extent, Field, SampleError, SampleMut};
use crate::error::Quoted;
use crate::{LoadError, LoadErrorKind};

/// Samples in tar archives, laid out as WebDataset does.
///
/// Files that follow one another and whose paths are the same up to the first dot of the last part
/// are one sample: `train/0001.jpg` and `train/0001.cls`. That part is the sample's key, the rest
/// says which field a file is. Its bytes are the field's: nothing is decoded.
///
/// [`open`](Self::open) reads the headers of all archives once; a sample is then read from where it
/// is, in any order. Archives may be of the formats ustar, pax and GNU, not compressed and without
/// sparse files. Folders and links in them are passed over, and so are files that WebDataset passes
/// over: those without a dot, hidden ones, and what is in `__…__`.
///
/// A sample that lacks a file, or whose file is not of the field's size, is an error of that
/// sample. Files of a sample that do not follow one another are several samples that each lack
/// something: `tar --sort=name` packs them together.
#[derive(Debug)]
pub struct Tar {
    fields: Vec<TarField>,
    plain_fields: Vec<Field>,
    /// Bytes that each field has room for.
    rooms: Vec<u64>,
    archives: Vec<Archive>,
    /// Number of the first sample behind each archive.
    ends: Vec<usize>,
}

impl Tar {
    /// Open archives, in this order; a folder stands for all its `.tar` files, by name.
    ///
    /// ```
    /// use pinlane::load::Dtype;
    /// use pinlane::load::dataset::{Dataset, Field, SampleMut, Tar, TarConfig};
    ///
    /// # let path = std::env::temp_dir().join(format!("pinlane-doc-tar-{}.tar", std::process::id()));
    /// # let mut block = vec![0_u8; 1024];
    /// # block[..5].copy_from_slice(b"7.cls");
    /// # block[124..136].copy_from_slice(b"00000000001\0");
    /// # block[148..156].fill(b' ');
    /// # block[156] = b'0';
    /// # let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    /// # block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    /// # block[512] = 42;
    /// # std::fs::write(&path, block)?;
    /// let config = TarConfig::new().field("cls", Field::fixed("label", Dtype::U8, [1]));
    /// let tar = Tar::open([&path], config)?; // has a file 7.cls, of one byte
    /// assert_eq!(tar.len(), 1);
    ///
    /// let mut label = [0];
    /// let mut sample = SampleMut::new();
    /// sample.push_fixed(&mut label);
    /// tar.read(0, &mut sample)?;
    /// assert_eq!(label, [42]);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), pinlane::load::SampleError>(())
    /// ```
    ///
    /// # Errors
    /// [`LoadError`] for what is wrong with the first archive that has something wrong,
    /// [`LoadErrorKind::NoFields`] for a configuration without fields, and [`TarError::NoSuchExtension`] for an
    /// extension that no sample of any archive has.
    pub fn open(
        paths: impl IntoIterator<Item = impl AsRef<Path>>,
        config: TarConfig,
    ) -> Result<Self, LoadError> {
        let TarConfig { mut fields } = config;
        for TarField { extension, .. } in &mut fields {
            if let Some(bare) = extension.strip_prefix('.') {
                *extension = bare.to_owned();
            }
        }
        if fields.is_empty() {
            return Err(LoadErrorKind::NoFields.into());
        }
        let rooms = fields.iter().map(|TarField { field, .. }| {
            let named = |fault: LoadErrorKind| LoadError::from(fault).with_tensor(field.name());
            Ok(room_bytes(field).map_err(named)? as u64)
        });
        let rooms: Vec<u64> = rooms.collect::<Result<_, LoadError>>()?;
        let archives = open::archives(paths, &fields)?;
        extensions::check(&archives, &fields)?;
        let ends = archives.iter().scan(0, |end, archive| {
            *end += archive.index.len();
            Some(*end)
        });
        Ok(Self {
            ends: ends.collect(),
            archives,
            plain_fields: fields.iter().map(|field| field.field.clone()).collect(),
            fields,
            rooms,
        })
    }

    /// The archive of a sample, and its number in there.
    fn find(&self, index: usize) -> (&Archive, usize) {
        let number = self.ends.partition_point(|end| *end <= index);
        let archive = self.archives.get(number);
        let archive = archive.unwrap_or_else(|| panic!("there are {} samples", self.len()));
        (archive, index + archive.index.len() - self.ends[number])
    }
}

impl Dataset for Tar {
    fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn fields(&self) -> &[Field] {
        &self.plain_fields
    }

    fn read(&self, index: usize, sample: &mut SampleMut<'_>) -> Result<(), SampleError> {
        let (archive, number) = self.find(index);
        Ok(archive.with(|file| {
            let places = archive.index.places(number);
            for (at, (field, place)) in self.fields.iter().zip(places).enumerate() {
                let entry = Part {
                    archive,
                    number,
                    field,
                    room_bytes: self.rooms[at],
                };
                entry.read(file, *place, at, sample)?;
            }
            Ok(())
        })?)
    }

    fn source(&self, index: usize) -> String {
        let (archive, number) = self.find(index);
        let key = String::from_utf8_lossy(archive.index.key(number));
        format!("{}: {}", archive.path().display(), Quoted(&key))
    }
}

/// One field of one sample.
struct Part<'a> {
    archive: &'a Archive,
    number: usize,
    field: &'a TarField,
    room_bytes: u64,
}

impl Part<'_> {
    fn read(
        &self,
        file: &File,
        place: Option<Place>,
        at: usize,
        sample: &mut SampleMut<'_>,
    ) -> Result<(), LoadError> {
        let entry = || {
            let key = String::from_utf8_lossy(self.archive.index.key(self.number));
            format!("{key}.{}", self.field.extension)
        };
        let Some(place) = place else {
            let entry = entry();
            return Err(self.archive.error(
                match self.archive.index.is_scattered(self.number, at) {
                    true => TarError::Scattered { entry },
                    false => TarError::Missing { entry },
                },
            ));
        };
        let field = &self.field.field;
        let fixed = matches!(field.extent(), Extent::Fixed(_));
        let fits = match fixed {
            true => place.bytes == self.room_bytes,
            false => {
                let bits = u128::from(place.bytes) * 8;
                let whole = bits.is_multiple_of(u128::from(field.dtype().bits()));
                place.bytes <= self.room_bytes && whole
            }
        };
        if !fits {
            return Err(self.archive.error(TarError::Length {
                entry: entry(),
                bytes: place.bytes,
                field: field.clone(),
            }));
        }
        let bytes = usize::try_from(place.bytes).expect("as much as there is room for");
        let target = match fixed {
            true => sample.fixed(at),
            false => sample
                .variable(at, bytes)
                .expect("as much as there is room for"),
        };
        self.archive.read(file, place, target)
    }
}
