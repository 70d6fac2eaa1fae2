//! Standard output and error, with closed pipes in mind.

use std::fmt;
use std::io::{self, BufWriter, Stdout, Write};
use std::path::PathBuf;

use anyhow::Context;

/// Standard output. Every write can fail, and a closed pipe is told apart in `main`.
pub(crate) struct Output {
    stdout: BufWriter<Stdout>,
}

impl Output {
    pub(crate) fn new() -> Self {
        Self {
            stdout: BufWriter::new(io::stdout()),
        }
    }

    /// Write, and let the reader see it now.
    pub(crate) fn print(&mut self, text: &str) -> anyhow::Result<()> {
        let written = self.stdout.write_all(text.as_bytes());
        written
            .and_then(|()| self.stdout.flush())
            .context("standard output cannot be written to")
    }

    /// Say which files were written, unless what is printed is for machines.
    pub(crate) fn written<const N: usize>(
        &mut self,
        files: [&Option<PathBuf>; N],
        for_machines: bool,
    ) -> anyhow::Result<()> {
        for file in files.into_iter().flatten().filter(|_| !for_machines) {
            self.print(&format!("Written to {}\n", file.display()))?;
        }
        Ok(())
    }

    /// Whatever is left.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}

/// One line on standard error. Where that is closed too, nobody is left to tell.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "pinlane: {text}");
}

/// Whether the reader of our output is gone.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The words are off, in a way that only shows after they were read.
#[derive(Debug)]
pub(crate) struct UsageError(String);

impl UsageError {
    pub(crate) fn new(message: String) -> Self {
        Self(message)
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}
