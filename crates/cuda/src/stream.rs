//! Streams, and host callbacks in their order.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{mem, ptr};

use cudarc::driver::sys::CUstream;
use cudarc::driver::sys::CUstream_flags::{CU_STREAM_DEFAULT, CU_STREAM_NON_BLOCKING};
use pinlane_driver::{Error, EventHandle, HostCallback, Result, StreamFlags, StreamHandle};

use crate::device::CudaDevice;
use crate::error::{self, SUCCESS};
use crate::event::raw_event;

/// The stream that is always there: libcuda's null stream.
// SAFETY: 0 is the stream that is always there.
pub(crate) const DEFAULT_STREAM: StreamHandle = unsafe { StreamHandle::from_raw(0) };

/// The driver's handle of a stream.
pub(crate) fn raw_stream(stream: StreamHandle) -> CUstream {
    ptr::with_exposed_provenance_mut(stream.raw() as usize)
}

impl CudaDevice {
    pub(crate) fn stream_priorities(&self) -> Result<(i32, i32)> {
        let _current = self.enter()?;
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: both outlive the call.
        let code = unsafe { (self.calls().cuCtxGetStreamPriorityRange)(&mut least, &mut greatest) };
        self.check("cuCtxGetStreamPriorityRange", code)?;
        Ok((least, greatest))
    }

    pub(crate) fn stream_create(&self, flags: StreamFlags) -> Result<StreamHandle> {
        let bits = if flags.non_blocking {
            CU_STREAM_NON_BLOCKING
        } else {
            CU_STREAM_DEFAULT
        };
        let _current = self.enter()?;
        let mut stream = ptr::null_mut();
        // SAFETY: `stream` outlives the call. The driver clamps the priority.
        let code = unsafe {
            (self.calls().cuStreamCreateWithPriority)(&mut stream, bits as u32, flags.priority)
        };
        self.check("cuStreamCreateWithPriority", code)?;
        // SAFETY: the driver just gave it out.
        Ok(unsafe { StreamHandle::from_raw(stream.expose_provenance() as u64) })
    }

    /// # Safety
    /// As for the trait's method.
    pub(crate) unsafe fn stream_destroy(&self, stream: StreamHandle) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the caller gives up the stream.
        let code = unsafe { (self.calls().cuStreamDestroy_v2)(raw_stream(stream)) };
        self.check("cuStreamDestroy_v2", code)
    }

    pub(crate) fn stream_query(&self, stream: StreamHandle) -> Result<bool> {
        let _current = self.enter()?;
        // SAFETY: takes a handle of this device's.
        let code = unsafe { (self.calls().cuStreamQuery)(raw_stream(stream)) };
        self.check_done("cuStreamQuery", code)
    }

    pub(crate) fn stream_is_capturing(&self, stream: StreamHandle) -> Result<bool> {
        let _current = self.enter()?;
        // Read as a number: a newer driver may know a status that the enum does not.
        let mut status = 0u32;
        // SAFETY: takes a handle of this device's, and writes one number of this size.
        let code = unsafe {
            (self.calls().cuStreamIsCapturing)(raw_stream(stream), (&raw mut status).cast())
        };
        self.check("cuStreamIsCapturing", code)?;
        Ok(status != 0)
    }

    pub(crate) fn stream_synchronize(&self, stream: StreamHandle) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: takes a handle of this device's.
        let code = unsafe { (self.calls().cuStreamSynchronize)(raw_stream(stream)) };
        self.check("cuStreamSynchronize", code)
    }

    pub(crate) fn stream_wait_event(&self, stream: StreamHandle, event: EventHandle) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: takes handles of this device's.
        let code =
            unsafe { (self.calls().cuStreamWaitEvent)(raw_stream(stream), raw_event(event), 0) };
        self.check("cuStreamWaitEvent", code)
    }

    /// Uses cuStreamAddCallback, since cuLaunchHostFunc does not call back once the context has
    /// failed, and whoever waits for the callback would wait for ever.
    pub(crate) fn host_callback(&self, stream: StreamHandle, callback: HostCallback) -> Result<()> {
        let _current = self.enter()?;
        // A fat pointer does not fit the callback's argument: box the box.
        let payload = Box::into_raw(Box::new(callback));
        // SAFETY: `call_back` takes exactly this payload, and gets it once.
        let code = unsafe {
            (self.calls().cuStreamAddCallback)(
                raw_stream(stream),
                Some(call_back),
                payload.cast(),
                0,
            )
        };
        let added = self.check("cuStreamAddCallback", code);
        if added.is_err() {
            // SAFETY: nothing was queued, so the payload is still ours alone.
            drop(unsafe { Box::from_raw(payload) });
        }
        added
    }
}

/// What libcuda calls, on a thread of its own.
///
/// # Safety
/// `payload` is a leaked `Box<HostCallback>`, passed here once.
unsafe extern "C" fn call_back(_stream: CUstream, code: u32, payload: *mut c_void) {
    // SAFETY: the caller passes on what `host_callback` leaked.
    let callback = unsafe { Box::from_raw(payload.cast::<HostCallback>()) };
    let result = match code {
        SUCCESS => Ok(()),
        // No more to say than the number: libcuda may not be called here.
        code => Err(Error::new(error::kind(code), "cuStreamAddCallback")
            .with_detail(format!("code {code}"))),
    };
    // A panic must not unwind into libcuda, and the panic hook has already reported it.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| callback(result))) {
        // Dropping the payload might panic again.
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
    fn a_callback_gets_the_result_of_the_stream() {
        let (sender, receiver) = mpsc::channel();
        for code in [0, 719] {
            let sender = sender.clone();
            call_with(
                code,
                Box::new(move |result| sender.send(result).expect("received below")),
            );
        }
        assert_eq!(receiver.recv().expect("the first"), Ok(()));
        let error = receiver.recv().expect("the second").expect_err("code 719");
        assert_eq!(error.kind, ErrorKind::DeviceFault);
    }

    #[test]
    fn a_panic_stays_inside() {
        let (sender, receiver) = mpsc::channel::<()>();
        call_with(
            0,
            Box::new(move |_| {
                let _held = sender;
                panic!("on purpose");
            }),
        );
        assert!(receiver.recv().is_err(), "what it held was dropped");
    }
}
