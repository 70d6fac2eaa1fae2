//! Rust errors as Python exceptions. The classes are Python: `pinlane/errors.py`.

use std::io;
use std::path::{Path, PathBuf};

use pinlane::load::{LoadError, LoadErrorKind};
use pinlane::{Error, ErrorKind};
use pyo3::exceptions::{PyImportError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyType;

/// Raises the exception that fits the error.
pub(crate) trait OrRaise<T> {
    fn or_raise(self) -> PyResult<T>;
}

impl<T, E: Into<Error>> OrRaise<T> for Result<T, E> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| exception(&error.into()))
    }
}

/// The exception for an error.
pub(crate) fn exception(error: &Error) -> PyErr {
    if let Some(error) = error.downcast_ref().and_then(file_error) {
        return error;
    }
    let class = match error.kind() {
        ErrorKind::NoDevice => "NoDeviceError",
        ErrorKind::OutOfMemory => "OutOfMemoryError",
        ErrorKind::OverBudget => return of_class("PinnedLimitError", over_limit(error)),
        ErrorKind::DeviceLost => "DeviceLostError",
        ErrorKind::InvalidInput if matches!(error, Error::Compile(_)) => "CompileError",
        ErrorKind::InvalidInput => "InvalidInputError",
        ErrorKind::NotSupported => "NotSupportedError",
        ErrorKind::InvalidData => "InvalidDataError",
        ErrorKind::Io => return PyOSError::new_err(error.to_string()),
        _ => "Error",
    };
    of_class(class, error.to_string())
}

/// The text of an error about the limit, with the remedy that Python has.
fn over_limit(error: &Error) -> String {
    let remedy = "raise the limit with pinlane.set_pinned_limit";
    let text = error.to_string();
    text.replace("raise the limit given to Budget::with_limit", remedy)
        .replace(
            "set PINLANE_PINNED_LIMIT",
            &format!("{remedy}, or set PINLANE_PINNED_LIMIT"),
        )
}

/// What a device or a driver cannot do.
pub(crate) fn not_supported(message: &str) -> PyErr {
    of_class("NotSupportedError", message.to_owned())
}

/// An argument that is invalid.
pub(crate) fn invalid_input(message: &str) -> PyErr {
    of_class("InvalidInputError", message.to_owned())
}

fn of_class(name: &str, message: String) -> PyErr {
    Python::attach(|py| match class_named(py, name) {
        Ok(class) => PyErr::from_type(class, message),
        Err(missing) => {
            let failed = PyImportError::new_err(message);
            failed.set_cause(py, Some(missing));
            failed
        }
    })
}

/// An error of a file with its number, from which Python chooses the class: `FileNotFoundError`, `PermissionError`, …
fn file_error(error: &LoadError) -> Option<PyErr> {
    const ENOENT: i32 = 2;
    let kind = error.kind();
    let (code, path) = match kind {
        LoadErrorKind::Io {
            code: Some(code), ..
        } => (*code, error.file().map(Path::to_owned)),
        LoadErrorKind::IndexedFileMissing { target } => {
            let index = error.file();
            (ENOENT, index.map(|index| index.with_file_name(target)))
        }
        _ => return None,
    };
    let reason = match (kind, error.tensor()) {
        // As Python itself says it.
        (LoadErrorKind::Io { action: "open", .. }, None) => system_text(code),
        (_, None) => kind.to_string(),
        (_, Some(tensor)) => format!("tensor {tensor:?}: {kind}"),
    };
    // Text, as Python itself has it.
    let path = path.map(PathBuf::into_os_string);
    Some(PyOSError::new_err((code, reason, path)))
}

/// The system's text for an error number.
pub(crate) fn system_text(code: i32) -> String {
    let text = io::Error::from_raw_os_error(code).to_string();
    match text.rsplit_once(" (os error") {
        Some((text, _)) => text.to_owned(),
        None => text,
    }
}

fn class_named<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    let class = py.import("pinlane.errors")?.getattr(name)?;
    Ok(class.cast_into()?)
}
