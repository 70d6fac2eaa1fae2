//! Calls back into the program, in stream order.

use pinlane_driver::HostCallback;

use crate::error::{Code, INVALID_VALUE, SUCCESS};
use crate::ffi::Opaque;
use crate::shim::exports_by_default_stream;
use crate::stream::Lane;

/// A program's function that hears of success and failure alike.
type StreamCallback = extern "C" fn(stream: usize, status: u32, data: Opaque);
/// A program's function that runs only where all went well.
type HostFunction = extern "C" fn(data: Opaque);

/// Wraps a function that is told the status.
fn with_status(function: StreamCallback, stream: usize, data: Opaque) -> HostCallback {
    Box::new(move |outcome| {
        let data = data; // the whole of it, which may change threads; not its field, which may not
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
    /// Calls `function` with the status when the work before is done.
    fn cuStreamAddCallback, cuStreamAddCallback_ptsz(
        stream: usize, function: Option<StreamCallback>, data: Opaque, flags: u32,
    ) |mode| {
        let lane = Lane::find(stream, mode)?;
        let function = function.ok_or(INVALID_VALUE)?;
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        Ok(lane.driver().host_callback(lane.stream, with_status(function, stream, data))?)
    }

    /// Calls `function` when the work before is done.
    fn cuLaunchHostFunc, cuLaunchHostFunc_ptsz(
        stream: usize, function: Option<HostFunction>, data: Opaque,
    ) |mode| {
        let lane = Lane::find(stream, mode)?;
        let function = function.ok_or(INVALID_VALUE)?;
        Ok(lane.driver().host_callback(lane.stream, on_success(function, data))?)
    }
}
