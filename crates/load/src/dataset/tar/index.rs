//! Which entries of an archive make up a sample.

use std::num::NonZeroU64;

use super::entries::{Entries, Entry};
use super::extensions::Extensions;
use super::{TarField, scattered};
use crate::{LoadErrorKind, TarError};

/// The samples of one archive. It takes 8 bytes a sample, its key, and 16 for each of its fields.
#[derive(Debug, Default)]
pub(super) struct Index {
    fields: usize,
    /// All keys, one behind the other.
    keys: Vec<u8>,
    /// Where the key of each sample ends.
    key_ends: Vec<usize>,
    /// For each sample, the place of each field.
    places: Vec<Option<Place>>,
    pub(super) extensions: Extensions,
    /// Samples and fields whose file lies apart from the others of the sample.
    scattered: Vec<(usize, usize)>,
}

/// Where a field of a sample is in its archive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Never zero, since a header is before it.
    pub(super) at: NonZeroU64,
    pub(super) bytes: u64,
}

impl Index {
    pub(super) fn read(
        mut entries: Entries<'_>,
        fields: &[TarField],
    ) -> Result<Self, LoadErrorKind> {
        let mut index = Self {
            fields: fields.len(),
            extensions: Extensions::of(fields),
            ..Self::default()
        };
        while let Some(entry) = entries.next()? {
            index.add(&entry, fields)?;
        }
        index.scattered = scattered::find(&index);
        Ok(index)
    }

    fn add(&mut self, entry: &Entry, fields: &[TarField]) -> Result<(), TarError> {
        let Some((key, extension)) = split(&entry.name) else {
            return Ok(());
        };
        if self.len() == 0 || self.key(self.len() - 1) != key {
            self.keys.extend(key);
            self.key_ends.push(self.keys.len());
            self.places.resize(self.places.len() + self.fields, None);
        }
        self.extensions.note(extension);
        let sample = self.places.len() - self.fields;
        let place = Place {
            at: NonZeroU64::new(entry.at).expect("behind its header"),
            bytes: entry.bytes,
        };
        let parts = fields.iter().zip(&mut self.places[sample..]);
        for (number, (field, there)) in parts.enumerate() {
            if !extension.eq_ignore_ascii_case(field.extension.as_bytes()) {
                continue;
            }
            if there.replace(place).is_some() {
                let entry = String::from_utf8_lossy(&entry.name).into_owned();
                return Err(TarError::Duplicate { entry });
            }
            self.extensions.used(number);
        }
        Ok(())
    }

    /// How many samples there are.
    pub(super) fn len(&self) -> usize {
        self.key_ends.len()
    }

    /// What the names of a sample's entries begin with.
    pub(super) fn key(&self, sample: usize) -> &[u8] {
        let start = match sample.checked_sub(1) {
            Some(before) => self.key_ends[before],
            None => 0,
        };
        &self.keys[start..self.key_ends[sample]]
    }

    /// Whether a field that a sample lacks lies elsewhere in the archive.
    pub(super) fn is_scattered(&self, sample: usize, field: usize) -> bool {
        self.scattered.binary_search(&(sample, field)).is_ok()
    }

    /// Where the fields of a sample are.
    pub(super) fn places(&self, sample: usize) -> &[Option<Place>] {
        &self.places[sample * self.fields..][..self.fields]
    }
}

/// The key and the extension: what is before and behind the first dot of the last part. Names
/// without a dot, hidden files, and what is about the archive (`__…__`) belong to no sample.
fn split(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let first = name.split(|byte| *byte == b'/').next()?;
    if first.len() >= 4 && first.starts_with(b"__") && first.ends_with(b"__") {
        return None;
    }
    let base = name
        .iter()
        .rposition(|byte| *byte == b'/')
        .map_or(0, |slash| slash + 1);
    let dot = name[base..].iter().position(|byte| *byte == b'.')?;
    (dot > 0).then(|| (&name[..base + dot], &name[base + dot + 1..]))
}
