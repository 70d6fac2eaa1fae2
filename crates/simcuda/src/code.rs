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

/// Defines a constant for each code, and the table of their names and sentences.
macro_rules! codes {
    ($($name:ident = $number:literal, $full:literal, $words:literal;)*) => {
        $(
            #[doc = concat!("`CUresult` ", $number)]
            #[allow(dead_code)] // the table is complete, this library does not say all of them
            pub const $name: Code = Code($number);
        )*

        /// Number, name and sentence, by number.
        const TABLE: &[(u32, &CStr, &CStr)] = &[$(($number, $full, $words),)*];
    };
}

codes! {
    SUCCESS = 0, c"CUDA_SUCCESS", c"no error";
    INVALID_VALUE = 1, c"CUDA_ERROR_INVALID_VALUE", c"an argument is out of its range";
    OUT_OF_MEMORY = 2, c"CUDA_ERROR_OUT_OF_MEMORY", c"not enough memory";
    NOT_INITIALIZED = 3, c"CUDA_ERROR_NOT_INITIALIZED", c"cuInit has not been called, or the process is a forked child";
    DEINITIALIZED = 4, c"CUDA_ERROR_DEINITIALIZED", c"the driver is shutting down";
    PROFILER_DISABLED = 5, c"CUDA_ERROR_PROFILER_DISABLED", c"the profiler is off";
    PROFILER_NOT_INITIALIZED = 6, c"CUDA_ERROR_PROFILER_NOT_INITIALIZED", c"the profiler was not set up";
    PROFILER_ALREADY_STARTED = 7, c"CUDA_ERROR_PROFILER_ALREADY_STARTED", c"the profiler runs already";
    PROFILER_ALREADY_STOPPED = 8, c"CUDA_ERROR_PROFILER_ALREADY_STOPPED", c"the profiler is stopped already";
    STUB_LIBRARY = 34, c"CUDA_ERROR_STUB_LIBRARY", c"the library is only good for linking";
    DEVICE_UNAVAILABLE = 46, c"CUDA_ERROR_DEVICE_UNAVAILABLE", c"the device is held by another process";
    NO_DEVICE = 100, c"CUDA_ERROR_NO_DEVICE", c"there is no device";
    INVALID_DEVICE = 101, c"CUDA_ERROR_INVALID_DEVICE", c"there is no device of this number";
    DEVICE_NOT_LICENSED = 102, c"CUDA_ERROR_DEVICE_NOT_LICENSED", c"the device has no licence";
    INVALID_IMAGE = 200, c"CUDA_ERROR_INVALID_IMAGE", c"the module's image is not valid";
    INVALID_CONTEXT = 201, c"CUDA_ERROR_INVALID_CONTEXT", c"no context is current, or it is not valid";
    CONTEXT_ALREADY_CURRENT = 202, c"CUDA_ERROR_CONTEXT_ALREADY_CURRENT", c"the context is current already";
    MAP_FAILED = 205, c"CUDA_ERROR_MAP_FAILED", c"mapping failed";
    UNMAP_FAILED = 206, c"CUDA_ERROR_UNMAP_FAILED", c"unmapping failed";
    ARRAY_IS_MAPPED = 207, c"CUDA_ERROR_ARRAY_IS_MAPPED", c"the array is mapped";
    ALREADY_MAPPED = 208, c"CUDA_ERROR_ALREADY_MAPPED", c"the resource is mapped already";
    NO_BINARY_FOR_GPU = 209, c"CUDA_ERROR_NO_BINARY_FOR_GPU", c"the module holds no code for this device";
    ALREADY_ACQUIRED = 210, c"CUDA_ERROR_ALREADY_ACQUIRED", c"the resource is taken already";
    NOT_MAPPED = 211, c"CUDA_ERROR_NOT_MAPPED", c"the resource is not mapped";
    NOT_MAPPED_AS_ARRAY = 212, c"CUDA_ERROR_NOT_MAPPED_AS_ARRAY", c"the resource is not mapped as an array";
    NOT_MAPPED_AS_POINTER = 213, c"CUDA_ERROR_NOT_MAPPED_AS_POINTER", c"the resource is not mapped as a pointer";
    ECC_UNCORRECTABLE = 214, c"CUDA_ERROR_ECC_UNCORRECTABLE", c"a memory error that could not be corrected; the device is lost";
    UNSUPPORTED_LIMIT = 215, c"CUDA_ERROR_UNSUPPORTED_LIMIT", c"the device has no such limit";
    CONTEXT_ALREADY_IN_USE = 216, c"CUDA_ERROR_CONTEXT_ALREADY_IN_USE", c"the context is in use by another thread";
    PEER_ACCESS_UNSUPPORTED = 217, c"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", c"the devices cannot reach each other's memory";
    INVALID_PTX = 218, c"CUDA_ERROR_INVALID_PTX", c"the PTX could not be compiled";
    INVALID_GRAPHICS_CONTEXT = 219, c"CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", c"the graphics context is not valid";
    NVLINK_UNCORRECTABLE = 220, c"CUDA_ERROR_NVLINK_UNCORRECTABLE", c"a link error that could not be corrected";
    JIT_COMPILER_NOT_FOUND = 221, c"CUDA_ERROR_JIT_COMPILER_NOT_FOUND", c"the PTX compiler is missing";
    UNSUPPORTED_PTX_VERSION = 222, c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", c"the PTX is newer than the driver";
    JIT_COMPILATION_DISABLED = 223, c"CUDA_ERROR_JIT_COMPILATION_DISABLED", c"compiling PTX is switched off";
    UNSUPPORTED_EXEC_AFFINITY = 224, c"CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY", c"the device has no such execution affinity";
    UNSUPPORTED_DEVSIDE_SYNC = 225, c"CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC", c"kernels cannot synchronise from the device here";
    INVALID_SOURCE = 300, c"CUDA_ERROR_INVALID_SOURCE", c"the source is not valid";
    FILE_NOT_FOUND = 301, c"CUDA_ERROR_FILE_NOT_FOUND", c"the file is not there";
    SHARED_OBJECT_SYMBOL_NOT_FOUND = 302, c"CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", c"a shared object lacks a symbol";
    SHARED_OBJECT_INIT_FAILED = 303, c"CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", c"a shared object did not start";
    OPERATING_SYSTEM = 304, c"CUDA_ERROR_OPERATING_SYSTEM", c"a call of the operating system failed";
    INVALID_HANDLE = 400, c"CUDA_ERROR_INVALID_HANDLE", c"the handle is not valid";
    ILLEGAL_STATE = 401, c"CUDA_ERROR_ILLEGAL_STATE", c"not allowed in this state";
    LOSSY_QUERY = 402, c"CUDA_ERROR_LOSSY_QUERY", c"the answer would leave something out";
    NOT_FOUND = 500, c"CUDA_ERROR_NOT_FOUND", c"there is nothing of this name";
    NOT_READY = 600, c"CUDA_ERROR_NOT_READY", c"not finished yet";
    ILLEGAL_ADDRESS = 700, c"CUDA_ERROR_ILLEGAL_ADDRESS", c"a kernel touched an address that is not mapped";
    LAUNCH_OUT_OF_RESOURCES = 701, c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", c"the launch needs more than the device has";
    LAUNCH_TIMEOUT = 702, c"CUDA_ERROR_LAUNCH_TIMEOUT", c"the kernel ran for too long";
    LAUNCH_INCOMPATIBLE_TEXTURING = 703, c"CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING", c"the launch does not fit the texturing mode";
    PEER_ACCESS_ALREADY_ENABLED = 704, c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", c"access to the peer is on already";
    PEER_ACCESS_NOT_ENABLED = 705, c"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", c"access to the peer is not on";
    PRIMARY_CONTEXT_ACTIVE = 708, c"CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", c"the primary context is active already";
    CONTEXT_IS_DESTROYED = 709, c"CUDA_ERROR_CONTEXT_IS_DESTROYED", c"the current context has been destroyed";
    ASSERT = 710, c"CUDA_ERROR_ASSERT", c"an assertion in a kernel failed";
    TOO_MANY_PEERS = 711, c"CUDA_ERROR_TOO_MANY_PEERS", c"there are too many peers";
    HOST_MEMORY_ALREADY_REGISTERED = 712, c"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", c"some of the host memory is registered already";
    HOST_MEMORY_NOT_REGISTERED = 713, c"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", c"the address is not the base of registered host memory";
    HARDWARE_STACK_ERROR = 714, c"CUDA_ERROR_HARDWARE_STACK_ERROR", c"a stack error in a kernel";
    ILLEGAL_INSTRUCTION = 715, c"CUDA_ERROR_ILLEGAL_INSTRUCTION", c"an illegal instruction in a kernel";
    MISALIGNED_ADDRESS = 716, c"CUDA_ERROR_MISALIGNED_ADDRESS", c"a misaligned access in a kernel";
    INVALID_ADDRESS_SPACE = 717, c"CUDA_ERROR_INVALID_ADDRESS_SPACE", c"an access to the wrong address space in a kernel";
    INVALID_PC = 718, c"CUDA_ERROR_INVALID_PC", c"a kernel's program counter left the code";
    LAUNCH_FAILED = 719, c"CUDA_ERROR_LAUNCH_FAILED", c"work on the device failed; the context is unusable";
    COOPERATIVE_LAUNCH_TOO_LARGE = 720, c"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", c"too many blocks for a cooperative launch";
    TENSOR_MEMORY_LEAK = 721, c"CUDA_ERROR_TENSOR_MEMORY_LEAK", c"a kernel left tensor memory behind";
    NOT_PERMITTED = 800, c"CUDA_ERROR_NOT_PERMITTED", c"not permitted";
    NOT_SUPPORTED = 801, c"CUDA_ERROR_NOT_SUPPORTED", c"not supported by the simulated GPU";
    SYSTEM_NOT_READY = 802, c"CUDA_ERROR_SYSTEM_NOT_READY", c"the system is not ready";
    SYSTEM_DRIVER_MISMATCH = 803, c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", c"the driver's parts do not fit together";
    COMPAT_NOT_SUPPORTED_ON_DEVICE = 804, c"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", c"the device does not allow this compatibility mode";
    MPS_CONNECTION_FAILED = 805, c"CUDA_ERROR_MPS_CONNECTION_FAILED", c"the multi-process service cannot be reached";
    MPS_RPC_FAILURE = 806, c"CUDA_ERROR_MPS_RPC_FAILURE", c"the multi-process service did not answer";
    MPS_SERVER_NOT_READY = 807, c"CUDA_ERROR_MPS_SERVER_NOT_READY", c"the multi-process service is not ready";
    MPS_MAX_CLIENTS_REACHED = 808, c"CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", c"the multi-process service has too many clients";
    MPS_MAX_CONNECTIONS_REACHED = 809, c"CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", c"the multi-process service has too many connections";
    MPS_CLIENT_TERMINATED = 810, c"CUDA_ERROR_MPS_CLIENT_TERMINATED", c"the multi-process service ended the client";
    CDP_NOT_SUPPORTED = 811, c"CUDA_ERROR_CDP_NOT_SUPPORTED", c"kernels cannot launch kernels here";
    CDP_VERSION_MISMATCH = 812, c"CUDA_ERROR_CDP_VERSION_MISMATCH", c"kernels that launch kernels are of another version";
    STREAM_CAPTURE_UNSUPPORTED = 900, c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", c"not allowed while the stream is captured";
    STREAM_CAPTURE_INVALIDATED = 901, c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", c"an earlier error ended the capture";
    STREAM_CAPTURE_MERGE = 902, c"CUDA_ERROR_STREAM_CAPTURE_MERGE", c"two captures would be joined";
    STREAM_CAPTURE_UNMATCHED = 903, c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", c"the stream did not begin this capture";
    STREAM_CAPTURE_UNJOINED = 904, c"CUDA_ERROR_STREAM_CAPTURE_UNJOINED", c"a captured stream was not joined";
    STREAM_CAPTURE_ISOLATION = 905, c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION", c"the capture would depend on work outside of it";
    STREAM_CAPTURE_IMPLICIT = 906, c"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", c"the default stream would wait for a captured one";
    CAPTURED_EVENT = 907, c"CUDA_ERROR_CAPTURED_EVENT", c"the event belongs to a capture";
    STREAM_CAPTURE_WRONG_THREAD = 908, c"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", c"another thread began this capture";
    TIMEOUT = 909, c"CUDA_ERROR_TIMEOUT", c"the wait took too long";
    GRAPH_EXEC_UPDATE_FAILURE = 910, c"CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", c"the graph cannot be updated so";
    EXTERNAL_DEVICE = 911, c"CUDA_ERROR_EXTERNAL_DEVICE", c"an external device failed";
    INVALID_CLUSTER_SIZE = 912, c"CUDA_ERROR_INVALID_CLUSTER_SIZE", c"the cluster has a wrong size";
    FUNCTION_NOT_LOADED = 913, c"CUDA_ERROR_FUNCTION_NOT_LOADED", c"the function is not loaded";
    INVALID_RESOURCE_TYPE = 914, c"CUDA_ERROR_INVALID_RESOURCE_TYPE", c"the resource is of the wrong type";
    INVALID_RESOURCE_CONFIGURATION = 915, c"CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION", c"the resources do not fit together";
    KEY_ROTATION = 916, c"CUDA_ERROR_KEY_ROTATION", c"an encryption key is being changed";
    UNKNOWN = 999, c"CUDA_ERROR_UNKNOWN", c"unknown error";
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
