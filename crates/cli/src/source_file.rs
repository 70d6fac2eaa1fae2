//! What is wrong with a file that was named: what to do, where that is clear enough, and the exit status.

use std::fs;
use std::path::Path;

use pinlane::load::{HeaderError, LoadError, LoadErrorKind, OtherFormat, TarError};

use crate::output::UsageError;

/// When something was wrong with a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    /// As the words were followed to it: other words, or another file, would do.
    Opening,
    /// Later, when it had been found good.
    Loading,
}

/// The error of a file, with its exit status, which is decided here alone: 2 for files that cannot be
/// opened or understood, 1 for what comes later.
pub(crate) fn failed(when: When, message: String) -> anyhow::Error {
    match when {
        When::Opening => UsageError::new(message).into(),
        When::Loading => anyhow::Error::msg(message),
    }
}

/// The message with its remedy, for faults that have the same one wherever files are named.
pub(crate) fn told(error: &LoadError) -> Option<String> {
    let file = error.file()?;
    let name = file.display();
    match error.kind() {
        // This says itself what to do.
        LoadErrorKind::OtherFormat { .. } => Some(error.to_string()),
        LoadErrorKind::Header(HeaderError::TooShort { file_bytes: 0, .. }) => Some(format!(
            "{name} is empty; was it written or downloaded to its end? Write it again"
        )),
        LoadErrorKind::Header(HeaderError::PastEnd { .. } | HeaderError::DataPastEnd { .. }) => {
            Some(format!(
                "{error}; was it written or downloaded to its end? Write it again"
            ))
        }
        LoadErrorKind::DuplicateTensor { other } if is_same(file, other) => Some(format!(
            "{name} is named twice, by itself or by its folder or index; name it once"
        )),
        LoadErrorKind::EmptyFolder => {
            let other = other_in(file)?;
            Some(format!("{error}; {other}"))
        }
        // An archive by its name, and no archive at all from its first byte on.
        LoadErrorKind::Tar(
            TarError::Checksum { at_bytes: 0 } | TarError::Truncated { at_bytes: 0 },
        ) => {
            let fault = LoadErrorKind::OtherFormat {
                found: OtherFormat::of(file)?,
            };
            Some(format!("{name}: {fault}"))
        }
        _ => None,
    }
}

/// The first file of a folder that is known to be of another kind: what it is and what to do.
pub(crate) fn other_in(folder: &Path) -> Option<String> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let mut others = paths.iter().filter_map(|path| {
        let name = path.file_name()?.to_str()?;
        let found = OtherFormat::of(path)?;
        Some(format!(
            "{name} in it {}",
            LoadErrorKind::OtherFormat { found }
        ))
    });
    others.next()
}

/// Whether both paths lead to one file.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    real(one).is_some_and(|one| Some(one) == real(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_error_is_a_wrong_word_at_first_and_a_failed_job_later() {
        for (when, is_wrong_word) in [(When::Opening, true), (When::Loading, false)] {
            let error = failed(when, "it is gone".to_owned());
            assert_eq!(error.is::<UsageError>(), is_wrong_word);
            assert_eq!(error.to_string(), "it is gone");
        }
    }
}
