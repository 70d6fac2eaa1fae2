//! Host callbacks, in stream order.

use pinlane_driver::HostCallback;

use crate::error::{Code, INVALID_VALUE, SUCCESS};
use crate::exports::exports_by_default_stream;
use crate::ffi::Opaque;
use crate::stream::StreamRef;

/// A function that is called after success and failure.
type StreamCallback = extern "C" fn(stream: usize, status: u32, data: Opaque);
/// A function that is called after success only.
type HostFunction = extern "C" fn(data: Opaque);

/// Wraps a function that receives the status.
fn with_status(function: StreamCallback, stream: usize, data: Opaque) -> HostCallback {
    Box::new(move |outcome| {
        let data = data; // captures the whole value, which is Send, not its field, which is not
        let status = outcome.map_or_else(Code::from, |()| SUCCESS);
        function(stream, status.0, data);
    })
}

/// Wraps a function that is not called after a failure.
fn on_success(function: HostFunction, data: Opaque) -> HostCallback {
    Box::new(move |outcome| {
        let data = data; // as above
        if outcome.is_ok() {
            function(data);
        }
    })
}

exports_by_default_stream! {
    /// Calls `function` with the status when preceding work is done.
    fn cuStreamAddCallback, cuStreamAddCallback_ptsz(
        handle: usize, function: Option<StreamCallback>, data: Opaque, flags: u32,
    ) |mode| {
        let stream = StreamRef::find(handle, mode)?;
        let function = function.ok_or(INVALID_VALUE)?;
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        Ok(stream.driver().host_callback(stream.handle, with_status(function, handle, data))?)
    }

    /// Calls `function` when preceding work has succeeded.
    fn cuLaunchHostFunc, cuLaunchHostFunc_ptsz(
        stream: usize, function: Option<HostFunction>, data: Opaque,
    ) |mode| {
        let stream = StreamRef::find(stream, mode)?;
        let function = function.ok_or(INVALID_VALUE)?;
        Ok(stream.driver().host_callback(stream.handle, on_success(function, data))?)
    }
}
