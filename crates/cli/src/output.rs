//! Standard output and standard error.

use std::fmt;
use std::io::{self, BufWriter, Stdout, Write};

use anyhow::Context;

/// Standard output. Every write can fail; `main` treats a closed pipe as success.
pub(crate) struct Output {
    stdout: BufWriter<Stdout>,
}

impl Output {
    pub(crate) fn new() -> Self {
        Self {
            stdout: BufWriter::new(io::stdout()),
        }
    }

    /// Writes and flushes.
    pub(crate) fn print(&mut self, text: &str) -> anyhow::Result<()> {
        let written = self.stdout.write_all(text.as_bytes());
        written
            .and_then(|()| self.stdout.flush())
            .context("cannot write to standard output")
    }

    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}

/// Writes one line to standard error. A failed write is ignored: there is nowhere left to report it.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "pinlane: {text}");
}

/// Whether the reader of standard output is gone.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Invalid arguments that clap could not detect. Exit status 2.
#[derive(Debug)]
pub(crate) struct UsageError(String);

impl UsageError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}
