//! Which entries of an archive form a sample.

use super::TarError;
use super::archive::TarArchive;
use super::entries::{EntryData, TarEntries, TarEntry};
use crate::{LoadError, LoadErrorKind};

/// An error lists this many extensions at most, each cut to this many bytes.
const LISTED_MAX: usize = 8;
const LISTED_BYTES_MAX: usize = 40;

/// The samples of one archive. A sample takes 8 bytes, its key, and 16 bytes for each of its fields.
#[derive(Debug, Default)]
pub(super) struct TarIndex {
    field_count: usize,
    /// All keys in a row.
    keys: Vec<u8>,
    /// Where the key of each sample ends.
    key_ends: Vec<usize>,
    /// The data of each field of each sample.
    data: Vec<Option<EntryData>>,
    /// The first extensions of the archive's files, as first spelled.
    extensions: Vec<Vec<u8>>,
    /// For each field, whether any sample has it.
    used: Vec<bool>,
    /// Sample and field of every file that is apart from the other files of its sample.
    scattered: Vec<(usize, usize)>,
}

impl TarIndex {
    /// Index the entries. Field `i` is in files with extension `i`.
    pub(super) fn new(
        mut entries: TarEntries<'_>,
        extensions: &[String],
    ) -> Result<Self, LoadErrorKind> {
        let mut index = Self {
            field_count: extensions.len(),
            used: vec![false; extensions.len()],
            ..Self::default()
        };
        while let Some(entry) = entries.next()? {
            index.add(&entry, extensions)?;
        }
        index.scattered = index.find_scattered();
        Ok(index)
    }

    fn add(&mut self, entry: &TarEntry, extensions: &[String]) -> Result<(), TarError> {
        let Some((key, extension)) = split_name(&entry.name) else {
            return Ok(());
        };
        if self.len() == 0 || self.key(self.len() - 1) != key {
            self.keys.extend(key);
            self.key_ends.push(self.keys.len());
            self.data.resize(self.data.len() + self.field_count, None);
        }
        list_extension(&mut self.extensions, extension);
        let sample = self.data.len() - self.field_count;
        for (field, wanted) in extensions.iter().enumerate() {
            if !extension.eq_ignore_ascii_case(wanted.as_bytes()) {
                continue;
            }
            if self.data[sample + field].replace(entry.data).is_some() {
                let entry = String::from_utf8_lossy(&entry.name).into_owned();
                return Err(TarError::Duplicate { entry });
            }
            self.used[field] = true;
        }
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.key_ends.len()
    }

    /// The common start of the names of a sample's files.
    pub(super) fn key(&self, sample: usize) -> &[u8] {
        let start = sample
            .checked_sub(1)
            .map_or(0, |before| self.key_ends[before]);
        &self.keys[start..self.key_ends[sample]]
    }

    pub(super) fn fields(&self, sample: usize) -> &[Option<EntryData>] {
        &self.data[sample * self.field_count..][..self.field_count]
    }

    /// Whether a field that a sample lacks is elsewhere in the archive.
    pub(super) fn is_scattered(&self, sample: usize, field: usize) -> bool {
        self.scattered.binary_search(&(sample, field)).is_ok()
    }

    /// Fields that a sample lacks but another one with the same key has, sorted.
    fn find_scattered(&self) -> Vec<(usize, usize)> {
        if self.data.iter().all(Option::is_some) {
            return Vec::new();
        }
        let mut samples: Vec<usize> = (0..self.len()).collect();
        samples.sort_by_key(|sample| self.key(*sample));
        let mut scattered = Vec::new();
        for same in samples.chunk_by(|one, other| self.key(*one) == self.key(*other)) {
            for field in 0..self.field_count {
                let without = same
                    .iter()
                    .filter(|&&sample| self.fields(sample)[field].is_none());
                if without.clone().count() < same.len() {
                    scattered.extend(without.map(|sample| (*sample, field)));
                }
            }
        }
        scattered.sort_unstable();
        scattered
    }
}

/// The key and the extension: what is before and after the first dot of the file name. Names without a dot,
/// hidden files and archive metadata (`__…__`) belong to no sample.
fn split_name(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let first = name.split(|byte| *byte == b'/').next()?;
    if first.len() >= 4 && first.starts_with(b"__") && first.ends_with(b"__") {
        return None;
    }
    let slash = name.iter().rposition(|byte| *byte == b'/');
    let base = slash.map_or(0, |slash| slash + 1);
    let dot = name[base..].iter().position(|byte| *byte == b'.')?;
    (dot > 0).then(|| (&name[..base + dot], &name[base + dot + 1..]))
}

/// Remember an extension for the error of [`check_extensions`].
fn list_extension(listed: &mut Vec<Vec<u8>>, extension: &[u8]) {
    let name = &extension[..extension.len().min(LISTED_BYTES_MAX)];
    let known = |other: &Vec<u8>| other.eq_ignore_ascii_case(name);
    if listed.len() < LISTED_MAX && !listed.iter().any(known) {
        listed.push(name.to_vec());
    }
}

/// Check that every field has a file in some archive, if there are samples: else it is most likely a typo.
pub(super) fn check_extensions(
    archives: &[TarArchive],
    extensions: &[String],
) -> Result<(), LoadError> {
    let indexes = || archives.iter().map(|archive| &archive.index);
    let is_unused = |field: &usize| !indexes().any(|index| index.used[*field]);
    let has_samples = indexes().any(|index| index.len() > 0);
    let unused = (0..extensions.len()).find(is_unused);
    let Some(unused) = unused.filter(|_| has_samples) else {
        return Ok(());
    };
    let mut listed = Vec::new();
    for name in indexes().flat_map(|index| &index.extensions) {
        list_extension(&mut listed, name);
    }
    listed.sort();
    let text = |name: &Vec<u8>| String::from_utf8_lossy(name).into_owned();
    let fault = TarError::NoSuchExtension {
        extension: extensions[unused].clone(),
        others: listed.iter().map(text).collect(),
    };
    Err(match archives {
        [one] => one.error(fault),
        _ => fault.into(),
    })
}
