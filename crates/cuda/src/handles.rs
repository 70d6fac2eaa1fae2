//! Pinlane's handles as libcuda's pointers.

use std::ptr;

use cudarc::driver::sys::{CUevent, CUfunction, CUmodule, CUstream};
use pinlane_driver::{EventHandle, FunctionHandle, ModuleHandle, StreamHandle};

/// libcuda's null stream.
// SAFETY: the null stream is always valid.
pub(crate) const DEFAULT_STREAM: StreamHandle = unsafe { StreamHandle::from_raw(0) };

pub(crate) fn raw_stream(stream: StreamHandle) -> CUstream {
    ptr::with_exposed_provenance_mut(stream.raw() as usize)
}

pub(crate) fn raw_event(event: EventHandle) -> CUevent {
    ptr::with_exposed_provenance_mut(event.raw() as usize)
}

pub(crate) fn raw_module(module: ModuleHandle) -> CUmodule {
    ptr::with_exposed_provenance_mut(module.raw() as usize)
}

pub(crate) fn raw_function(function: FunctionHandle) -> CUfunction {
    ptr::with_exposed_provenance_mut(function.raw() as usize)
}
