//! Maps the simulator's errors to those of the driver API; names and texts of errors.

use std::ffi::c_char;

use pinlane_driver::{Error, ErrorKind};

pub use crate::error_codes::*;
use crate::exports::exports;
use crate::ffi::Out;

/// The result of a call's safe code.
pub type Outcome<T> = Result<T, Code>;

impl From<Error> for Code {
    fn from(error: Error) -> Self {
        code_of(&error.kind)
    }
}

/// The driver API's code of an error.
pub fn code_of(kind: &ErrorKind) -> Code {
    match kind {
        ErrorKind::NoDriver => STUB_LIBRARY,
        ErrorKind::NoDevice => NO_DEVICE,
        ErrorKind::NoSuchDevice { .. } => INVALID_DEVICE,
        ErrorKind::DriverTooOld { .. } => SYSTEM_DRIVER_MISMATCH,
        ErrorKind::DeviceBusy => DEVICE_UNAVAILABLE,
        ErrorKind::DeviceLost => ECC_UNCORRECTABLE,
        ErrorKind::DeviceFault => LAUNCH_FAILED,
        ErrorKind::OutOfMemory => OUT_OF_MEMORY,
        ErrorKind::RegistrationRefused => NOT_PERMITTED,
        ErrorKind::AlreadyRegistered => HOST_MEMORY_ALREADY_REGISTERED,
        ErrorKind::NotRegistered => HOST_MEMORY_NOT_REGISTERED,
        ErrorKind::InvalidValue => INVALID_VALUE,
        ErrorKind::InvalidHandle => INVALID_HANDLE,
        ErrorKind::NotFound => NOT_FOUND,
        ErrorKind::InvalidPtx => INVALID_PTX,
        ErrorKind::NotReady => NOT_READY,
        ErrorKind::NotSupported | ErrorKind::MissingSymbol { .. } => NOT_SUPPORTED,
        ErrorKind::Capturing => STREAM_CAPTURE_UNSUPPORTED,
        ErrorKind::Forked => NOT_INITIALIZED,
        ErrorKind::Other { code } => Code(*code),
        _ => UNKNOWN,
    }
}

exports! { through always;
    /// The name of an error.
    fn cuGetErrorName(code: u32, name: Out<*const c_char>) {
        let name = name.required()?;
        let words = Code(code).words();
        name.put(words.map_or(std::ptr::null(), |words| words.0.as_ptr()));
        words.map(drop).ok_or(INVALID_VALUE)
    }

    /// The description of an error.
    fn cuGetErrorString(code: u32, text: Out<*const c_char>) {
        let text = text.required()?;
        let words = Code(code).words();
        text.put(words.map_or(std::ptr::null(), |words| words.1.as_ptr()));
        words.map(drop).ok_or(INVALID_VALUE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fatal_errors_map_to_different_codes() {
        assert_eq!(code_of(&ErrorKind::DeviceLost), Code(214));
        assert_eq!(code_of(&ErrorKind::DeviceFault), Code(719));
    }

    #[test]
    fn a_foreign_code_passes_through() {
        assert_eq!(code_of(&ErrorKind::Other { code: 304 }), OPERATING_SYSTEM);
    }
}
