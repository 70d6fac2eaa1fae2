//! Pinlane's handles as libcuda's pointers.

use std::ptr;

use cudarc::driver::sys::{CUevent, CUfunction, CUmodule, CUstream};
use pinlane_driver::{EventHandle, FunctionHandle, ModuleHandle, StreamHandle, StreamKind};

/// libcuda's null stream.
// SAFETY: the null stream is always valid.
pub(crate) const DEFAULT_STREAM: StreamHandle = unsafe { StreamHandle::from_raw(0) };

/// What libcuda means by a stream's number: the null stream and `CU_STREAM_LEGACY` are the default
/// stream, `CU_STREAM_PER_THREAD` is the calling thread's.
pub(crate) fn stream_kind(raw: u64) -> StreamKind {
    match raw {
        0 | 1 => StreamKind::Default,
        2 => StreamKind::PerThread,
        _ => StreamKind::Created,
    }
}

/// Defines functions from handles to pointers.
macro_rules! pointers {
    ($($name:ident($handle:ty) -> $pointer:ty;)*) => {$(
        pub(crate) fn $name(handle: $handle) -> $pointer {
            ptr::with_exposed_provenance_mut(handle.raw() as usize)
        }
    )*};
}

pointers! {
    raw_stream(StreamHandle) -> CUstream;
    raw_event(EventHandle) -> CUevent;
    raw_module(ModuleHandle) -> CUmodule;
    raw_function(FunctionHandle) -> CUfunction;
}
