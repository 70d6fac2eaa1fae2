//! Errors in arguments and input files: the message with its remedy, and the exit status.

use std::fs;
use std::path::Path;

use pinlane::load::{HeaderError, LoadError, LoadErrorKind, OtherFormat, TarError};

/// Invalid arguments that clap could not detect. Exit status 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// When a file turned out to be bad.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    /// While its header was read: another argument or file would work.
    Opening,
    /// Later, although its header was good.
    Loading,
}

/// The error for a bad input file. This alone decides its exit status: 2 while opening, 1 later.
pub(crate) fn failed(when: When, message: String) -> anyhow::Error {
    match when {
        When::Opening => UsageError(message).into(),
        When::Loading => anyhow::Error::msg(message),
    }
}

/// The message of an error that has the same remedy in every command.
pub(crate) fn message(error: &LoadError) -> Option<String> {
    const INCOMPLETE: &str = "the file may be incomplete: write or download it again";
    let file = error.file()?;
    let name = file.display();
    match error.kind() {
        // Already says what to do.
        LoadErrorKind::OtherFormat { .. } => Some(error.to_string()),
        LoadErrorKind::Header(HeaderError::TooShort { file_bytes: 0, .. }) => {
            Some(format!("{name} is empty; {INCOMPLETE}"))
        }
        LoadErrorKind::Header(HeaderError::PastEnd { .. } | HeaderError::DataPastEnd { .. }) => {
            Some(format!("{error}; {INCOMPLETE}"))
        }
        LoadErrorKind::DuplicateTensor { other } if is_same(file, other) => Some(format!(
            "{name} is given twice, directly or through its folder or index; name it once"
        )),
        LoadErrorKind::EmptyFolder => {
            let other = other_format_in(file)?;
            Some(format!("{error}; {other}"))
        }
        // Named .tar, but its first byte already is not an archive's.
        LoadErrorKind::Tar(
            TarError::Checksum { at_bytes: 0 } | TarError::Truncated { at_bytes: 0 },
        ) => {
            let found = OtherFormat::of(file)?;
            Some(format!("{name}: {}", LoadErrorKind::OtherFormat { found }))
        }
        _ => None,
    }
}

/// The first file in a folder that has a known but unsupported format, and what to do about it.
pub(crate) fn other_format_in(folder: &Path) -> Option<String> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().find_map(|path| {
        let name = path.file_name()?.to_str()?;
        let found = OtherFormat::of(path)?;
        let error = LoadErrorKind::OtherFormat { found };
        Some(format!("{name} in it {error}"))
    })
}

pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    real(one).is_some_and(|one| Some(one) == real(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_while_opening_are_usage_errors() {
        for (when, is_usage) in [(When::Opening, true), (When::Loading, false)] {
            let error = failed(when, "it is gone".to_owned());
            assert_eq!(error.is::<UsageError>(), is_usage);
            assert_eq!(error.to_string(), "it is gone");
        }
    }
}
