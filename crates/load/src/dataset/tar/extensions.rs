//! Which extensions there are, to tell a slip from an archive with gaps.

use super::TarField;
use super::archive::Archive;
use crate::{LoadError, TarError};

/// So many are named in an error, each by so many bytes at most.
const NAMED_MAX: usize = 8;
const NAME_BYTES_MAX: usize = 40;

/// The extensions of the files of an archive.
#[derive(Debug, Default)]
pub(super) struct Extensions {
    /// The first ones, as they are spelt first.
    named: Vec<Vec<u8>>,
    /// Whether there is a file for each field.
    used: Vec<bool>,
}

impl Extensions {
    pub(super) fn of(fields: &[TarField]) -> Self {
        Self {
            named: Vec::new(),
            used: vec![false; fields.len()],
        }
    }

    /// There is a file with this extension.
    pub(super) fn note(&mut self, extension: &[u8]) {
        let name = &extension[..extension.len().min(NAME_BYTES_MAX)];
        let known = |other: &Vec<u8>| other.eq_ignore_ascii_case(name);
        if self.named.len() < NAMED_MAX && !self.named.iter().any(known) {
            self.named.push(name.to_vec());
        }
    }

    /// There is a file for this field.
    pub(super) fn used(&mut self, field: usize) {
        self.used[field] = true;
    }
}

/// Every field has a file in one of the archives at least, unless there are no samples at all.
pub(super) fn check(archives: &[Archive], fields: &[TarField]) -> Result<(), LoadError> {
    let all = || archives.iter().map(|archive| &archive.index.extensions);
    let is_unused = |field: &usize| !all().any(|extensions| extensions.used[*field]);
    let samples = archives.iter().any(|archive| archive.index.len() > 0);
    let Some(unused) = (0..fields.len()).find(is_unused).filter(|_| samples) else {
        return Ok(());
    };
    let mut together = Extensions::default();
    for name in all().flat_map(|extensions| &extensions.named) {
        together.note(name);
    }
    together.named.sort();
    let text = |name: &Vec<u8>| String::from_utf8_lossy(name).into_owned();
    let fault = TarError::NoSuchExtension {
        extension: fields[unused].extension.clone(),
        others: together.named.iter().map(text).collect(),
    };
    Err(match archives {
        [one] => one.error(fault),
        _ => fault.into(),
    })
}
