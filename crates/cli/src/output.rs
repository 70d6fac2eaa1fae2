//! Standard output and standard error.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

/// Writes to standard output and flushes. `main` treats a closed pipe as success.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes());
    let flushed = written.and_then(|()| stdout.flush());
    flushed.context("cannot write to standard output")
}

/// Whether `-v` asks for details.
static VERBOSE: AtomicBool = AtomicBool::new(false);

pub(crate) fn set_verbose(verbose: bool) {
    VERBOSE.store(verbose, Ordering::Relaxed);
}

pub(crate) fn is_verbose() -> bool {
    VERBOSE.load(Ordering::Relaxed)
}

/// Writes one line to standard error. A failed write is ignored: there is nowhere left to report it.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "pinlane: {text}");
}

/// Writes a report to standard error, for commands whose standard output belongs to another program.
pub(crate) fn write_to_stderr(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Whether the reader of standard output is gone.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
