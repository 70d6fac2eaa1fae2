//! What every command is called with: the device, and how to print.

use std::path::PathBuf;

use pinlane_report::Environment;

use crate::device::DeviceChoice;
use crate::{EmbeddedLibraries, output, report_environment, terminal};

pub(crate) struct CommandContext<'a> {
    pub(crate) device: &'a DeviceChoice,
    pub(crate) json: bool,
    /// When the command started.
    pub(crate) date: String,
    pub(crate) libraries: EmbeddedLibraries,
}

impl CommandContext<'_> {
    /// What JSON and pages say about the program, the driver and the machine.
    pub(crate) fn environment(&self) -> Environment {
        report_environment::gather(&self.date, self.device.info().as_ref())
    }

    pub(crate) fn report(
        &self,
        json: impl FnOnce(&Environment) -> String,
        text: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        self.list(json, || terminal::wrapped(&text()))
    }

    /// As [`report`](Self::report), for lists that other programs read line by line: no line is broken.
    pub(crate) fn list(
        &self,
        json: impl FnOnce(&Environment) -> String,
        text: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        output::print(&match self.json {
            true => json(&self.environment()),
            false => text(),
        })
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
