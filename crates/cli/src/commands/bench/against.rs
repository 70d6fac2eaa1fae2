//! An earlier run to compare with.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use pinlane_report::{Bench, BenchComparison};

use crate::output::UsageError;

/// Far more than any report needs.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// An earlier run and its file name.
pub(super) struct EarlierRun {
    file: String,
    bench: Bench,
}

impl EarlierRun {
    pub(super) fn read(path: &Path) -> Result<Self, UsageError> {
        let file = path.display().to_string();
        let invalid = |reason: String| UsageError::new(format!("--against {file}: {reason}"));
        let unreadable = |error| invalid(format!("cannot be read: {error}"));
        let mut text = Vec::new();
        let opened = File::open(path).map_err(unreadable)?;
        let mut limited = opened.take(FILE_BYTES_MAX + 1);
        limited.read_to_end(&mut text).map_err(unreadable)?;
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(invalid("too large for a report".to_owned()));
        }
        let text = String::from_utf8(text).map_err(|_| invalid("not a text file".to_owned()))?;
        let advice = "; write one with `pinlane --json bench > FILE`";
        let bench = Bench::from_json(&text).map_err(|error| invalid(format!("{error}{advice}")))?;
        Ok(Self { file, bench })
    }

    pub(super) fn compare(self, now: &Bench) -> BenchComparison {
        BenchComparison::new(&self.bench, now, self.file)
    }
}
