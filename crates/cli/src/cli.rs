//! What every command gets.

use std::path::PathBuf;

use crate::device::DeviceChoice;
use crate::output::Output;

/// The global flags, and standard output.
pub(crate) struct Cli<'a> {
    pub(crate) device: &'a DeviceChoice,
    pub(crate) json: bool,
    pub(crate) output: Output,
}

impl Cli<'_> {
    /// Prints a report as JSON or as text.
    pub(crate) fn report(
        &mut self,
        json: impl FnOnce() -> String,
        text: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        let report = if self.json { json() } else { text() };
        self.output.print(&report)
    }

    /// Lists the files that were written, unless the output is JSON.
    pub(crate) fn written<'f>(
        &mut self,
        files: impl IntoIterator<Item = &'f Option<PathBuf>>,
    ) -> anyhow::Result<()> {
        for file in files.into_iter().flatten().filter(|_| !self.json) {
            let line = format!("Written to {}\n", file.display());
            self.output.print(&line)?;
        }
        Ok(())
    }
}
