//! Messages of the library: to the log, and to stderr before an abort. None of them panics, although a logger
//! is user code and stderr may not be writable: a panic would skip what its caller still has to do.

use std::fmt;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

/// Logs an error.
pub(crate) fn log_error(message: fmt::Arguments<'_>) {
    catch_all(|| log::error!("{message}"));
}

/// Logs a warning, unless `warned` is set already: repeating it would add nothing.
pub(crate) fn warn_once(warned: &AtomicBool, message: fmt::Arguments<'_>) {
    if !warned.swap(true, Ordering::Relaxed) {
        catch_all(|| log::warn!("{message}"));
    }
}

/// Aborts the process. The reason goes to stderr, to be visible with or without a logger.
pub(crate) fn abort(reason: fmt::Arguments<'_>) -> ! {
    catch_all(|| {
        // Not `eprintln!`, which panics if it cannot write.
        let _ = writeln!(std::io::stderr(), "pinlane: {reason}");
    });
    std::process::abort()
}

/// Runs `work` and ignores its panic, which the panic hook has reported.
fn catch_all(work: impl FnOnce()) {
    // Dropping the payload might panic again.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(std::mem::forget);
}
