//! Streams and host callbacks.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{mem, ptr};

use cudarc::driver::sys::CUstream;
use cudarc::driver::sys::CUstream_flags::{CU_STREAM_DEFAULT, CU_STREAM_NON_BLOCKING};
use pinlane_driver::{Error, EventHandle, HostCallback, Result, StreamFlags, StreamHandle};

use crate::error::{self, SUCCESS};
use crate::handles::{raw_event, raw_stream};
use crate::library::call;
use crate::open_device::{CudaDevice, device_call};

impl CudaDevice {
    pub(crate) fn stream_priorities(&self) -> Result<(i32, i32)> {
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: both outlive the call.
        unsafe { device_call!(self.cuCtxGetStreamPriorityRange(&mut least, &mut greatest)) }?;
        Ok((least, greatest))
    }

    pub(crate) fn stream_create(&self, flags: StreamFlags) -> Result<StreamHandle> {
        let bits = match flags.non_blocking {
            true => CU_STREAM_NON_BLOCKING as u32,
            false => CU_STREAM_DEFAULT as u32,
        };
        let priority = flags.priority;
        let mut stream = ptr::null_mut();
        // SAFETY: `stream` outlives the call. The driver clamps the priority.
        unsafe { device_call!(self.cuStreamCreateWithPriority(&mut stream, bits, priority)) }?;
        // SAFETY: the driver just created it.
        Ok(unsafe { StreamHandle::from_raw(stream.expose_provenance() as u64) })
    }

    pub(crate) unsafe fn stream_destroy(&self, stream: StreamHandle) -> Result<()> {
        // SAFETY: the caller gives up the stream.
        unsafe { device_call!(self.cuStreamDestroy_v2(raw_stream(stream))) }
    }

    pub(crate) unsafe fn stream_query(&self, stream: StreamHandle) -> Result<bool> {
        let _current = self.enter()?;
        // SAFETY: the caller passes a live stream.
        let code = unsafe { (self.calls().cuStreamQuery)(raw_stream(stream)) };
        self.check_done("cuStreamQuery", code)
    }

    pub(crate) unsafe fn stream_is_capturing(&self, stream: StreamHandle) -> Result<bool> {
        // A number, since a newer driver may return a status that the enum lacks.
        let mut status = 0_u32;
        let written = (&raw mut status).cast();
        // SAFETY: the caller passes a live stream, and the call writes a number of this size.
        unsafe { device_call!(self.cuStreamIsCapturing(raw_stream(stream), written)) }?;
        Ok(status != 0)
    }

    pub(crate) unsafe fn stream_synchronize(&self, stream: StreamHandle) -> Result<()> {
        // SAFETY: the caller passes a live stream.
        unsafe { device_call!(self.cuStreamSynchronize(raw_stream(stream))) }
    }

    pub(crate) unsafe fn stream_wait_event(
        &self,
        stream: StreamHandle,
        event: EventHandle,
    ) -> Result<()> {
        // SAFETY: the caller passes live handles.
        unsafe { device_call!(self.cuStreamWaitEvent(raw_stream(stream), raw_event(event), 0)) }
    }

    /// Uses cuStreamAddCallback: cuLaunchHostFunc does not call back once the context has failed, so
    /// a caller that waits for the callback would hang.
    pub(crate) unsafe fn host_callback(
        &self,
        stream: StreamHandle,
        callback: HostCallback,
    ) -> Result<()> {
        let (stream, _current) = (raw_stream(stream), self.enter()?);
        // Boxed twice, since a fat pointer does not fit the callback's argument.
        let payload = Box::into_raw(Box::new(callback));
        // SAFETY: the caller passes a live stream. `call_back` expects this payload and gets it once.
        let added = unsafe {
            let (call, payload) = (Some(call_back as _), payload.cast());
            call!(self.library, cuStreamAddCallback(stream, call, payload, 0))
        };
        if added.is_err() {
            // SAFETY: the driver queued nothing, so the payload is still ours.
            drop(unsafe { Box::from_raw(payload) });
        }
        added
    }
}

/// libcuda calls this on one of its own threads.
///
/// # Safety
/// `payload` is a leaked `Box<HostCallback>`, passed here once.
unsafe extern "C" fn call_back(_stream: CUstream, code: u32, payload: *mut c_void) {
    // SAFETY: `host_callback` leaked it.
    let callback = unsafe { Box::from_raw(payload.cast::<HostCallback>()) };
    let result = match code {
        SUCCESS => Ok(()),
        // Only the code: libcuda must not be called here to ask for its name.
        code => Err(Error::new(error::kind(code), "cuStreamAddCallback")
            .with_detail(format!("code {code}"))),
    };
    // A panic must not unwind into libcuda. The panic hook has already reported it.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| callback(result))) {
        // Dropping it could panic again.
        mem::forget(panic);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use pinlane_driver::ErrorKind;

    use super::*;

    fn call_with(code: u32, callback: HostCallback) {
        let payload = Box::into_raw(Box::new(callback));
        // SAFETY: a leaked box, passed once.
        unsafe { call_back(ptr::null_mut(), code, payload.cast()) };
    }

    #[test]
    fn a_callback_receives_the_result_of_the_stream() {
        let (sender, receiver) = mpsc::channel();
        for code in [0, 719] {
            let sender = sender.clone();
            let send = move |result| sender.send(result).expect("received below");
            call_with(code, Box::new(send));
        }
        assert_eq!(receiver.recv().expect("the first"), Ok(()));
        let error = receiver.recv().expect("the second").expect_err("code 719");
        assert_eq!(error.kind, ErrorKind::DeviceFault);
    }

    #[test]
    fn a_panic_does_not_leave_the_callback() {
        let (sender, receiver) = mpsc::channel::<()>();
        let panics = move |_| {
            let _held = &sender;
            panic!("on purpose");
        };
        call_with(0, Box::new(panics));
        assert!(receiver.recv().is_err(), "what it held was dropped");
    }
}
