//! The driver API's numbers for what went wrong, with names and words.

use std::ffi::CStr;

/// A `CUresult`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Code(pub u32);

impl Code {
    /// The constant's name in the driver API, and one sentence. `None` for an unknown number.
    pub fn words(self) -> Option<(&'static CStr, &'static CStr)> {
        let found = TABLE.binary_search_by_key(&self.0, |row| row.0).ok()?;
        Some((TABLE[found].1, TABLE[found].2))
    }
}

/// No error.
pub const SUCCESS: Code = Code(0);

/// Defines a constant for each error, and the table of their names and sentences.
macro_rules! codes {
    ($($name:ident = $number:literal, $words:literal;)*) => {
        $(
            #[doc = concat!("`CUDA_ERROR_", stringify!($name), "`")]
            #[allow(dead_code)] // the table is complete, this library does not say all of them
            pub const $name: Code = Code($number);
        )*

        /// Number, name and sentence, by number.
        const TABLE: &[(u32, &CStr, &CStr)] = &[
            (SUCCESS.0, c"CUDA_SUCCESS", c"no error"),
            $(($number, name(concat!("CUDA_ERROR_", stringify!($name), "\0")), $words),)*
        ];
    };
}

/// A name as C wants it.
const fn name(with_nul: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(with_nul.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name ends with its only NUL"),
    }
}

codes! {
    INVALID_VALUE = 1, c"an argument is out of its range";
    OUT_OF_MEMORY = 2, c"not enough memory";
    NOT_INITIALIZED = 3, c"cuInit has not been called, or the process is a forked child";
    DEINITIALIZED = 4, c"the driver is shutting down";
    PROFILER_DISABLED = 5, c"the profiler is off";
    PROFILER_NOT_INITIALIZED = 6, c"the profiler was not set up";
    PROFILER_ALREADY_STARTED = 7, c"the profiler runs already";
    PROFILER_ALREADY_STOPPED = 8, c"the profiler is stopped already";
    STUB_LIBRARY = 34, c"the library is only good for linking";
    DEVICE_UNAVAILABLE = 46, c"the device is held by another process";
    NO_DEVICE = 100, c"there is no device";
    INVALID_DEVICE = 101, c"there is no device of this number";
    DEVICE_NOT_LICENSED = 102, c"the device has no licence";
    INVALID_IMAGE = 200, c"the module's image is not valid";
    INVALID_CONTEXT = 201, c"no context is current, or it is not valid";
    CONTEXT_ALREADY_CURRENT = 202, c"the context is current already";
    MAP_FAILED = 205, c"mapping failed";
    UNMAP_FAILED = 206, c"unmapping failed";
    ARRAY_IS_MAPPED = 207, c"the array is mapped";
    ALREADY_MAPPED = 208, c"the resource is mapped already";
    NO_BINARY_FOR_GPU = 209, c"the module holds no code for this device";
    ALREADY_ACQUIRED = 210, c"the resource is taken already";
    NOT_MAPPED = 211, c"the resource is not mapped";
    NOT_MAPPED_AS_ARRAY = 212, c"the resource is not mapped as an array";
    NOT_MAPPED_AS_POINTER = 213, c"the resource is not mapped as a pointer";
    ECC_UNCORRECTABLE = 214, c"a memory error that could not be corrected; the device is lost";
    UNSUPPORTED_LIMIT = 215, c"the device has no such limit";
    CONTEXT_ALREADY_IN_USE = 216, c"the context is in use by another thread";
    PEER_ACCESS_UNSUPPORTED = 217, c"the devices cannot reach each other's memory";
    INVALID_PTX = 218, c"the PTX could not be compiled";
    INVALID_GRAPHICS_CONTEXT = 219, c"the graphics context is not valid";
    NVLINK_UNCORRECTABLE = 220, c"a link error that could not be corrected";
    JIT_COMPILER_NOT_FOUND = 221, c"the PTX compiler is missing";
    UNSUPPORTED_PTX_VERSION = 222, c"the PTX is newer than the driver";
    JIT_COMPILATION_DISABLED = 223, c"compiling PTX is switched off";
    UNSUPPORTED_EXEC_AFFINITY = 224, c"the device has no such execution affinity";
    UNSUPPORTED_DEVSIDE_SYNC = 225, c"kernels cannot synchronise from the device here";
    INVALID_SOURCE = 300, c"the source is not valid";
    FILE_NOT_FOUND = 301, c"the file is not there";
    SHARED_OBJECT_SYMBOL_NOT_FOUND = 302, c"a shared object lacks a symbol";
    SHARED_OBJECT_INIT_FAILED = 303, c"a shared object did not start";
    OPERATING_SYSTEM = 304, c"a call of the operating system failed";
    INVALID_HANDLE = 400, c"the handle is not valid";
    ILLEGAL_STATE = 401, c"not allowed in this state";
    LOSSY_QUERY = 402, c"the answer would leave something out";
    NOT_FOUND = 500, c"there is nothing of this name";
    NOT_READY = 600, c"not finished yet";
    ILLEGAL_ADDRESS = 700, c"a kernel touched an address that is not mapped";
    LAUNCH_OUT_OF_RESOURCES = 701, c"the launch needs more than the device has";
    LAUNCH_TIMEOUT = 702, c"the kernel ran for too long";
    LAUNCH_INCOMPATIBLE_TEXTURING = 703, c"the launch does not fit the texturing mode";
    PEER_ACCESS_ALREADY_ENABLED = 704, c"access to the peer is on already";
    PEER_ACCESS_NOT_ENABLED = 705, c"access to the peer is not on";
    PRIMARY_CONTEXT_ACTIVE = 708, c"the primary context is active already";
    CONTEXT_IS_DESTROYED = 709, c"the current context has been destroyed";
    ASSERT = 710, c"an assertion in a kernel failed";
    TOO_MANY_PEERS = 711, c"there are too many peers";
    HOST_MEMORY_ALREADY_REGISTERED = 712, c"some of the host memory is registered already";
    HOST_MEMORY_NOT_REGISTERED = 713, c"the address is not the base of registered host memory";
    HARDWARE_STACK_ERROR = 714, c"a stack error in a kernel";
    ILLEGAL_INSTRUCTION = 715, c"an illegal instruction in a kernel";
    MISALIGNED_ADDRESS = 716, c"a misaligned access in a kernel";
    INVALID_ADDRESS_SPACE = 717, c"an access to the wrong address space in a kernel";
    INVALID_PC = 718, c"a kernel's program counter left the code";
    LAUNCH_FAILED = 719, c"work on the device failed; the context is unusable";
    COOPERATIVE_LAUNCH_TOO_LARGE = 720, c"too many blocks for a cooperative launch";
    TENSOR_MEMORY_LEAK = 721, c"a kernel left tensor memory behind";
    NOT_PERMITTED = 800, c"not permitted";
    NOT_SUPPORTED = 801, c"not supported by the simulated GPU";
    SYSTEM_NOT_READY = 802, c"the system is not ready";
    SYSTEM_DRIVER_MISMATCH = 803, c"the driver's parts do not fit together";
    COMPAT_NOT_SUPPORTED_ON_DEVICE = 804, c"the device does not allow this compatibility mode";
    MPS_CONNECTION_FAILED = 805, c"the multi-process service cannot be reached";
    MPS_RPC_FAILURE = 806, c"the multi-process service did not answer";
    MPS_SERVER_NOT_READY = 807, c"the multi-process service is not ready";
    MPS_MAX_CLIENTS_REACHED = 808, c"the multi-process service has too many clients";
    MPS_MAX_CONNECTIONS_REACHED = 809, c"the multi-process service has too many connections";
    MPS_CLIENT_TERMINATED = 810, c"the multi-process service ended the client";
    CDP_NOT_SUPPORTED = 811, c"kernels cannot launch kernels here";
    CDP_VERSION_MISMATCH = 812, c"kernels that launch kernels are of another version";
    STREAM_CAPTURE_UNSUPPORTED = 900, c"not allowed while the stream is captured";
    STREAM_CAPTURE_INVALIDATED = 901, c"an earlier error ended the capture";
    STREAM_CAPTURE_MERGE = 902, c"two captures would be joined";
    STREAM_CAPTURE_UNMATCHED = 903, c"the stream did not begin this capture";
    STREAM_CAPTURE_UNJOINED = 904, c"a captured stream was not joined";
    STREAM_CAPTURE_ISOLATION = 905, c"the capture would depend on work outside of it";
    STREAM_CAPTURE_IMPLICIT = 906, c"the default stream would wait for a captured one";
    CAPTURED_EVENT = 907, c"the event belongs to a capture";
    STREAM_CAPTURE_WRONG_THREAD = 908, c"another thread began this capture";
    TIMEOUT = 909, c"the wait took too long";
    GRAPH_EXEC_UPDATE_FAILURE = 910, c"the graph cannot be updated so";
    EXTERNAL_DEVICE = 911, c"an external device failed";
    INVALID_CLUSTER_SIZE = 912, c"the cluster has a wrong size";
    FUNCTION_NOT_LOADED = 913, c"the function is not loaded";
    INVALID_RESOURCE_TYPE = 914, c"the resource is of the wrong type";
    INVALID_RESOURCE_CONFIGURATION = 915, c"the resources do not fit together";
    KEY_ROTATION = 916, c"an encryption key is being changed";
    UNKNOWN = 999, c"unknown error";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_so_that_each_code_is_found() {
        assert!(TABLE.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(
            INVALID_HANDLE.words().unwrap().0,
            c"CUDA_ERROR_INVALID_HANDLE"
        );
        assert_eq!(SUCCESS.words().unwrap().0, c"CUDA_SUCCESS");
        assert_eq!(Code(99).words(), None);
    }
}
