//! The driver API's error codes with names and descriptions, and how the simulator's errors map to them.

use std::ffi::{CStr, c_char};

use pinlane_driver::{Error, ErrorKind};

use crate::c_pointers::Out;
use crate::export_macros::exports;

/// A `CUresult`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Code(pub u32);

/// The result of a call's safe code.
pub type Outcome<T> = Result<T, Code>;

/// Fails with `code` unless the condition holds.
pub fn ensure(holds: bool, code: Code) -> Outcome<()> {
    if holds { Ok(()) } else { Err(code) }
}

/// No error.
pub const SUCCESS: Code = Code(0);

/// Defines a constant for each error, and the table of names and descriptions.
macro_rules! codes {
    ($($name:ident = $number:literal, $words:literal;)*) => {
        $(
            #[doc = concat!("`CUDA_ERROR_", stringify!($name), "`")]
            #[allow(dead_code)] // the table is complete, but this library does not use all of it
            pub const $name: Code = Code($number);
        )*

        /// Code, name and description, by code.
        const TABLE: &[(u32, &CStr, &CStr)] = &[
            (SUCCESS.0, c"CUDA_SUCCESS", c"no error"),
            $(($number, name(concat!("CUDA_ERROR_", stringify!($name), "\0")), $words),)*
        ];
    };
}

/// A name as a C string.
const fn name(with_nul: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(with_nul.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name ends with its only NUL"),
    }
}

codes! {
    INVALID_VALUE = 1, c"invalid argument";
    OUT_OF_MEMORY = 2, c"out of memory";
    NOT_INITIALIZED = 3, c"cuInit has not been called, or the process is a forked child";
    DEINITIALIZED = 4, c"the driver is shutting down";
    PROFILER_DISABLED = 5, c"the profiler is disabled";
    PROFILER_NOT_INITIALIZED = 6, c"the profiler is not initialised";
    PROFILER_ALREADY_STARTED = 7, c"the profiler is already started";
    PROFILER_ALREADY_STOPPED = 8, c"the profiler is already stopped";
    STUB_LIBRARY = 34, c"this is a stub library for linking only";
    DEVICE_UNAVAILABLE = 46, c"the device is in use by another process";
    NO_DEVICE = 100, c"no CUDA device found";
    INVALID_DEVICE = 101, c"invalid device number";
    DEVICE_NOT_LICENSED = 102, c"the device is not licensed";
    INVALID_IMAGE = 200, c"invalid module image";
    INVALID_CONTEXT = 201, c"no current context, or it is invalid";
    CONTEXT_ALREADY_CURRENT = 202, c"the context is already current";
    MAP_FAILED = 205, c"mapping failed";
    UNMAP_FAILED = 206, c"unmapping failed";
    ARRAY_IS_MAPPED = 207, c"the array is mapped";
    ALREADY_MAPPED = 208, c"the resource is already mapped";
    NO_BINARY_FOR_GPU = 209, c"the module has no code for this device";
    ALREADY_ACQUIRED = 210, c"the resource is already acquired";
    NOT_MAPPED = 211, c"the resource is not mapped";
    NOT_MAPPED_AS_ARRAY = 212, c"the resource is not mapped as an array";
    NOT_MAPPED_AS_POINTER = 213, c"the resource is not mapped as a pointer";
    ECC_UNCORRECTABLE = 214, c"uncorrectable memory error; the device is lost";
    UNSUPPORTED_LIMIT = 215, c"the device does not support this limit";
    CONTEXT_ALREADY_IN_USE = 216, c"the context is in use by another thread";
    PEER_ACCESS_UNSUPPORTED = 217, c"the devices cannot access each other's memory";
    INVALID_PTX = 218, c"the PTX could not be compiled";
    INVALID_GRAPHICS_CONTEXT = 219, c"invalid graphics context";
    NVLINK_UNCORRECTABLE = 220, c"uncorrectable NVLink error";
    JIT_COMPILER_NOT_FOUND = 221, c"the PTX compiler was not found";
    UNSUPPORTED_PTX_VERSION = 222, c"the PTX is newer than the driver";
    JIT_COMPILATION_DISABLED = 223, c"PTX compilation is disabled";
    UNSUPPORTED_EXEC_AFFINITY = 224, c"the device does not support this execution affinity";
    UNSUPPORTED_DEVSIDE_SYNC = 225, c"device-side synchronisation is not supported";
    INVALID_SOURCE = 300, c"invalid source";
    FILE_NOT_FOUND = 301, c"file not found";
    SHARED_OBJECT_SYMBOL_NOT_FOUND = 302, c"a shared object lacks a symbol";
    SHARED_OBJECT_INIT_FAILED = 303, c"a shared object failed to initialise";
    OPERATING_SYSTEM = 304, c"an operating system call failed";
    INVALID_HANDLE = 400, c"invalid handle";
    ILLEGAL_STATE = 401, c"not allowed in this state";
    LOSSY_QUERY = 402, c"the query would lose information";
    NOT_FOUND = 500, c"not found";
    NOT_READY = 600, c"not ready";
    ILLEGAL_ADDRESS = 700, c"a kernel accessed an unmapped address";
    LAUNCH_OUT_OF_RESOURCES = 701, c"the launch needs more resources than the device has";
    LAUNCH_TIMEOUT = 702, c"the kernel timed out";
    LAUNCH_INCOMPATIBLE_TEXTURING = 703, c"the launch is incompatible with the texturing mode";
    PEER_ACCESS_ALREADY_ENABLED = 704, c"peer access is already enabled";
    PEER_ACCESS_NOT_ENABLED = 705, c"peer access is not enabled";
    PRIMARY_CONTEXT_ACTIVE = 708, c"the primary context is already active";
    CONTEXT_IS_DESTROYED = 709, c"the current context has been destroyed";
    ASSERT = 710, c"an assertion in a kernel failed";
    TOO_MANY_PEERS = 711, c"too many peers";
    HOST_MEMORY_ALREADY_REGISTERED = 712, c"some of the host memory is already registered";
    HOST_MEMORY_NOT_REGISTERED = 713, c"the address is not the base of registered host memory";
    HARDWARE_STACK_ERROR = 714, c"stack error in a kernel";
    ILLEGAL_INSTRUCTION = 715, c"illegal instruction in a kernel";
    MISALIGNED_ADDRESS = 716, c"misaligned access in a kernel";
    INVALID_ADDRESS_SPACE = 717, c"access to the wrong address space in a kernel";
    INVALID_PC = 718, c"invalid program counter in a kernel";
    LAUNCH_FAILED = 719, c"work on the device failed; the context is unusable";
    COOPERATIVE_LAUNCH_TOO_LARGE = 720, c"too many blocks for a cooperative launch";
    TENSOR_MEMORY_LEAK = 721, c"a kernel leaked tensor memory";
    NOT_PERMITTED = 800, c"not permitted";
    NOT_SUPPORTED = 801, c"not supported by the simulated GPU";
    SYSTEM_NOT_READY = 802, c"the system is not ready";
    SYSTEM_DRIVER_MISMATCH = 803, c"mismatched driver components";
    COMPAT_NOT_SUPPORTED_ON_DEVICE = 804, c"the device does not support this compatibility mode";
    MPS_CONNECTION_FAILED = 805, c"the multi-process service cannot be reached";
    MPS_RPC_FAILURE = 806, c"the multi-process service did not answer";
    MPS_SERVER_NOT_READY = 807, c"the multi-process service is not ready";
    MPS_MAX_CLIENTS_REACHED = 808, c"the multi-process service has too many clients";
    MPS_MAX_CONNECTIONS_REACHED = 809, c"the multi-process service has too many connections";
    MPS_CLIENT_TERMINATED = 810, c"the multi-process service ended the client";
    CDP_NOT_SUPPORTED = 811, c"kernels that launch kernels are not supported";
    CDP_VERSION_MISMATCH = 812, c"version mismatch of kernels that launch kernels";
    STREAM_CAPTURE_UNSUPPORTED = 900, c"not allowed while the stream is captured";
    STREAM_CAPTURE_INVALIDATED = 901, c"the capture was invalidated by an earlier error";
    STREAM_CAPTURE_MERGE = 902, c"the call would merge two captures";
    STREAM_CAPTURE_UNMATCHED = 903, c"the capture was started on another stream";
    STREAM_CAPTURE_UNJOINED = 904, c"a captured stream was not joined";
    STREAM_CAPTURE_ISOLATION = 905, c"the capture would depend on work outside it";
    STREAM_CAPTURE_IMPLICIT = 906, c"the default stream would wait for a captured one";
    CAPTURED_EVENT = 907, c"the event belongs to a capture";
    STREAM_CAPTURE_WRONG_THREAD = 908, c"the capture was started by another thread";
    TIMEOUT = 909, c"timeout";
    GRAPH_EXEC_UPDATE_FAILURE = 910, c"the graph cannot be updated this way";
    EXTERNAL_DEVICE = 911, c"an external device failed";
    INVALID_CLUSTER_SIZE = 912, c"invalid cluster size";
    FUNCTION_NOT_LOADED = 913, c"the function is not loaded";
    INVALID_RESOURCE_TYPE = 914, c"invalid resource type";
    INVALID_RESOURCE_CONFIGURATION = 915, c"invalid resource configuration";
    KEY_ROTATION = 916, c"an encryption key is being rotated";
    UNKNOWN = 999, c"unknown error";
}

impl From<Error> for Code {
    fn from(error: Error) -> Self {
        match error.kind {
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
            ErrorKind::Other { code } => Self(code),
            _ => UNKNOWN,
        }
    }
}

/// Name and description of a code, unless it is unknown.
fn words(code: u32) -> Option<(&'static CStr, &'static CStr)> {
    let row = TABLE.iter().find(|row| row.0 == code)?;
    Some((row.1, row.2))
}

/// Stores a text; null and an error if there is none.
fn put_text(target: Out<*const c_char>, text: Option<&'static CStr>) -> Outcome<()> {
    let slot = target.required()?;
    slot.put(text.map_or(std::ptr::null(), CStr::as_ptr));
    ensure(text.is_some(), INVALID_VALUE)
}

exports! { through always;
    /// The name of an error.
    fn cuGetErrorName(code: u32, name: Out<*const c_char>) {
        put_text(name, words(code).map(|words| words.0))
    }

    /// The description of an error.
    fn cuGetErrorString(code: u32, text: Out<*const c_char>) {
        put_text(text, words(code).map(|words| words.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_is_in_the_table_once() {
        assert!(TABLE.is_sorted_by(|a, b| a.0 < b.0));
        let name = |code: Code| words(code.0).map(|words| words.0);
        assert_eq!(name(INVALID_HANDLE), Some(c"CUDA_ERROR_INVALID_HANDLE"));
        assert_eq!(name(SUCCESS), Some(c"CUDA_SUCCESS"));
        assert_eq!(name(Code(99)), None);
    }

    #[test]
    fn errors_map_to_their_codes() {
        let code_of = |kind| Code::from(Error::new(kind, "call"));
        assert_eq!(code_of(ErrorKind::DeviceLost), Code(214));
        assert_eq!(code_of(ErrorKind::DeviceFault), Code(719));
        // A foreign code passes through.
        assert_eq!(code_of(ErrorKind::Other { code: 304 }), OPERATING_SYSTEM);
    }
}
