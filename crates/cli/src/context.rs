//! What every command is called with: the device, and how to print.

use std::path::PathBuf;

use crate::device::DeviceChoice;
use crate::{output, terminal};

pub(crate) struct CommandContext<'a> {
    pub(crate) device: &'a DeviceChoice,
    pub(crate) json: bool,
}

impl CommandContext<'_> {
    pub(crate) fn report(
        &self,
        json: impl FnOnce() -> String,
        text: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        self.list(json, || terminal::wrapped(&text()))
    }

    /// As [`report`](Self::report), for lists that other programs read line by line: no line is broken.
    pub(crate) fn list(
        &self,
        json: impl FnOnce() -> String,
        text: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        output::print(&if self.json { json() } else { text() })
    }

    /// Lists the files that were written, unless the output is JSON.
    pub(crate) fn written<'f>(
        &self,
        files: impl IntoIterator<Item = &'f Option<PathBuf>>,
    ) -> anyhow::Result<()> {
        let files = files.into_iter().flatten().filter(|_| !self.json);
        files
            .map(|file| format!("Written to {}\n", file.display()))
            .try_for_each(|line| output::print(&line))
    }
}
