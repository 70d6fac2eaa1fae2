//! The driver's calls, by what they act on; their names and costs.

mod device_memory;
mod host_memory;
mod stream;
mod work;

use pinlane_driver::{Call, Error, ErrorKind};
use pinlane_model::CallCosts;

pub(crate) use stream::PRIORITIES;

/// The error of a call.
pub(crate) fn error(call: Call, kind: ErrorKind, detail: impl Into<String>) -> Error {
    Error::new(kind, name(call)).with_detail(detail.into())
}

/// The error of a call with an invalid argument.
pub(crate) fn invalid(call: Call, detail: impl Into<String>) -> Error {
    error(call, ErrorKind::InvalidValue, detail)
}

/// The name that errors and findings use.
pub(crate) fn name(call: Call) -> &'static str {
    match call {
        Call::MemoryInfo => "memory_info",
        Call::Synchronize => "synchronize",
        Call::PointerKind => "pointer_kind",
        Call::DeviceAlloc => "device_alloc",
        Call::DeviceFree => "device_free",
        Call::DeviceAllocAsync => "device_alloc_async",
        Call::DeviceFreeAsync => "device_free_async",
        Call::HostAlloc => "host_alloc",
        Call::HostFree => "host_free",
        Call::HostRegister => "host_register",
        Call::HostUnregister => "host_unregister",
        Call::HostDevicePtr => "host_device_ptr",
        Call::StreamPriorities => "stream_priorities",
        Call::StreamCreate => "stream_create",
        Call::StreamDestroy => "stream_destroy",
        Call::StreamQuery => "stream_query",
        Call::StreamIsCapturing => "stream_is_capturing",
        Call::StreamSynchronize => "stream_synchronize",
        Call::StreamWaitEvent => "stream_wait_event",
        Call::HostCallback => "host_callback",
        Call::EventCreate => "event_create",
        Call::EventDestroy => "event_destroy",
        Call::EventRecord => "event_record",
        Call::EventQuery => "event_query",
        Call::EventSynchronize => "event_synchronize",
        Call::EventWaitTimeout => "event_wait_timeout",
        Call::EventElapsed => "event_elapsed_ns",
        Call::Copy => "copy",
        Call::CopyAsync => "copy_async",
        Call::Copy2d => "copy_2d",
        Call::Copy2dAsync => "copy_2d_async",
        Call::CopyBatch => "copy_batch",
        Call::Memset => "memset_async",
        Call::ModuleLoad => "module_load",
        Call::ModuleUnload => "module_unload",
        Call::ModuleFunction => "module_function",
        Call::Launch => "launch",
    }
}

/// Host time of a call, without the part that depends on a size.
pub(crate) fn cost_ns(call: Call, costs: &CallCosts) -> u64 {
    match call {
        Call::Copy
        | Call::CopyAsync
        | Call::Copy2d
        | Call::Copy2dAsync
        | Call::CopyBatch
        | Call::Memset
        | Call::Launch
        | Call::HostCallback => costs.submit_ns,
        Call::StreamQuery | Call::EventQuery => costs.query_ns,
        Call::EventCreate | Call::EventDestroy | Call::EventRecord | Call::StreamWaitEvent => {
            costs.event_ns
        }
        Call::Synchronize
        | Call::StreamSynchronize
        | Call::EventSynchronize
        | Call::EventWaitTimeout => costs.sync_ns,
        Call::DeviceAlloc | Call::DeviceFree | Call::DeviceAllocAsync | Call::DeviceFreeAsync => {
            costs.device_alloc_ns
        }
        Call::StreamCreate | Call::StreamDestroy => costs.stream_ns,
        Call::ModuleLoad | Call::ModuleUnload => costs.module_ns,
        // Depends on the size; the call adds it.
        Call::HostAlloc | Call::HostFree | Call::HostRegister | Call::HostUnregister => 0,
        _ => costs.other_ns,
    }
}
