//! An earlier run.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use pinlane_report::{Bench, BenchComparison};

use crate::output::UsageError;

/// No report of ours is that long.
const BYTES_AT_MOST: u64 = 64 << 20;

/// An earlier run, and the name of its file.
pub(super) struct Earlier {
    file: String,
    bench: Bench,
}

impl Earlier {
    /// Read it. Whatever is wrong with the file is a wrong word of the user's.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let file = path.display().to_string();
        let wrong = |reason: String| UsageError::new(format!("--against {file}: {reason}"));
        let unreadable = |error| wrong(format!("cannot be read: {error}"));
        let mut text = Vec::new();
        let opened = File::open(path).map_err(unreadable)?;
        let mut limited = opened.take(BYTES_AT_MOST + 1);
        limited.read_to_end(&mut text).map_err(unreadable)?;
        if text.len() as u64 > BYTES_AT_MOST {
            return Err(wrong("far too long for a report".to_owned()).into());
        }
        let text = String::from_utf8(text).map_err(|_| wrong("not a text".to_owned()))?;
        let advice = "; write one with `pinlane --json bench > FILE`";
        let bench = Bench::from_json(&text).map_err(|error| wrong(format!("{error}{advice}")))?;
        Ok(Self { file, bench })
    }

    /// What changed since.
    pub(super) fn against(self, now: &Bench) -> BenchComparison {
        BenchComparison::new(&self.bench, now, self.file)
    }
}
