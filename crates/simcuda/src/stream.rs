//! Streams: created ones, and the two default streams; host callbacks in stream order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pinlane_driver::{DevicePtr, Driver, EventHandle, HostCallback, StreamFlags, StreamHandle};

use crate::c_pointers::{Opaque, Out};
use crate::context::{Context, current};
use crate::error::{Code, INVALID_HANDLE, INVALID_VALUE, NOT_READY, Outcome, SUCCESS, ensure};
use crate::export_macros::{exports, exports_by_default_stream};
use crate::machine::machine;

/// Handle of the legacy default stream.
pub const LEGACY: usize = 1;
/// Handle of the calling thread's default stream.
pub const PER_THREAD: usize = 2;
/// Capture status: not captured.
const CAPTURE_NONE: u32 = 0;
/// Flag: does not synchronise with the legacy default stream.
const NON_BLOCKING: u32 = 1;

/// A stream that a call refers to.
#[derive(Clone)]
pub struct StreamRef {
    /// The context.
    pub context: Arc<Context>,
    /// The simulator's handle.
    pub handle: StreamHandle,
    /// Whether it is the legacy default stream.
    pub is_legacy: bool,
    /// The flags that it was created with.
    pub flags: u32,
    /// Its priority.
    pub priority: i32,
    /// A unique number.
    pub id: u64,
}

impl StreamRef {
    /// The stream of a program's handle; 0 stands for `default`.
    pub fn find(handle: usize, default: usize) -> Outcome<Self> {
        let handle = if handle == 0 { default } else { handle };
        if !matches!(handle, LEGACY | PER_THREAD) {
            return machine()?.streams.find(handle);
        }
        let context = current()?;
        let is_legacy = handle == LEGACY;
        Ok(Self {
            handle: match is_legacy {
                true => context.driver.default_stream(),
                false => context.thread_stream()?,
            },
            is_legacy,
            flags: 0,
            priority: 0,
            id: handle as u64,
            context,
        })
    }

    /// The driver of its device.
    pub fn driver(&self) -> &dyn Driver {
        &*self.context.driver
    }

    /// Waits for its work.
    pub fn synchronize(&self) -> Outcome<()> {
        // SAFETY: the handle is one of this driver's. A program may destroy the stream meanwhile; the
        // simulator looks handles up and refuses those of destroyed streams.
        Ok(unsafe { self.driver().stream_synchronize(self.handle) }?)
    }

    /// Whether its work is done.
    fn is_idle(&self) -> Outcome<bool> {
        // SAFETY: as in `synchronize`.
        Ok(unsafe { self.driver().stream_query(self.handle) }?)
    }

    /// Makes later work wait for an event of the same device.
    fn wait_for(&self, event: EventHandle) -> Outcome<()> {
        // SAFETY: as in `synchronize`, for both.
        Ok(unsafe { self.driver().stream_wait_event(self.handle, event) }?)
    }

    /// Records an event of the same device.
    pub fn record(&self, event: EventHandle) -> Outcome<()> {
        // SAFETY: as in `synchronize`, for both.
        Ok(unsafe { self.driver().event_record(event, self.handle) }?)
    }

    /// Calls back when all earlier work is done.
    fn call_back(&self, callback: HostCallback) -> Outcome<()> {
        // SAFETY: as in `synchronize`. That a callback must not call the driver is the program's duty, as
        // with libcuda.
        Ok(unsafe { self.driver().host_callback(self.handle, callback) }?)
    }

    /// Allocates device memory in stream order.
    pub fn alloc(&self, bytes: usize) -> Outcome<DevicePtr> {
        // SAFETY: as in `synchronize`.
        Ok(unsafe { self.driver().device_alloc_async(bytes, self.handle) }?)
    }
}

/// Creates a stream in the current context.
fn create(handle: Out<usize>, flags: u32, priority: i32) -> Outcome<()> {
    static NEXT_ID: AtomicU64 = AtomicU64::new(3);
    let context = current()?;
    handle.set_with(|| {
        ensure(flags & !NON_BLOCKING == 0, INVALID_VALUE)?;
        let (least, greatest) = context.driver.stream_priorities()?;
        let priority = priority.clamp(greatest.min(least), least.max(greatest));
        let handle = context.driver.stream_create(StreamFlags {
            non_blocking: flags & NON_BLOCKING != 0,
            priority,
        })?;
        Ok(machine()?.streams.insert(StreamRef {
            context,
            handle,
            is_legacy: false,
            flags,
            priority,
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
        }))
    })
}

exports! { through guard;
    /// Creates a stream.
    fn cuStreamCreate(stream: Out<usize>, flags: u32) { create(stream, flags, 0) }

    /// Creates a stream with a priority.
    fn cuStreamCreateWithPriority(stream: Out<usize>, flags: u32, priority: i32) {
        create(stream, flags, priority)
    }

    /// Destroys a stream that a program created.
    fn cuStreamDestroy_v2(stream: usize), also cuStreamDestroy {
        ensure(!matches!(stream, 0 | LEGACY | PER_THREAD), INVALID_HANDLE)?;
        let stream = machine()?.streams.remove(stream)?;
        // SAFETY: `create` created it, and it has just been removed from the table.
        Ok(unsafe { stream.driver().stream_destroy(stream.handle) }?)
    }
}

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
    ) [stream = handle] {
        let function = function.ok_or(INVALID_VALUE)?;
        ensure(flags == 0, INVALID_VALUE)?;
        stream.call_back(with_status(function, handle, data))
    }

    /// Calls `function` when preceding work has succeeded.
    fn cuLaunchHostFunc, cuLaunchHostFunc_ptsz(
        stream: usize, function: Option<HostFunction>, data: Opaque,
    ) [stream = stream] {
        let function = function.ok_or(INVALID_VALUE)?;
        stream.call_back(on_success(function, data))
    }

    /// Queries whether a stream's work is done.
    fn cuStreamQuery, cuStreamQuery_ptsz(stream: usize) [stream = stream] {
        ensure(stream.is_idle()?, NOT_READY)
    }

    /// Waits for a stream's work.
    fn cuStreamSynchronize, cuStreamSynchronize_ptsz(stream: usize) [stream = stream] {
        stream.synchronize()
    }

    /// Makes later work of a stream wait for an event.
    fn cuStreamWaitEvent, cuStreamWaitEvent_ptsz(
        stream: usize, event: usize, flags: u32,
    ) [stream = stream] {
        ensure(flags <= 1, INVALID_VALUE)?;
        let event = machine()?.events.find(event)?;
        if event.context.ordinal != stream.context.ordinal {
            // Simulated devices share a clock but not events.
            return event.synchronize();
        }
        stream.wait_for(event.event)
    }

    /// The flags of a stream.
    fn cuStreamGetFlags, cuStreamGetFlags_ptsz(stream: usize, flags: Out<u32>) [stream = stream] {
        flags.set(stream.flags)
    }

    /// The priority of a stream.
    fn cuStreamGetPriority, cuStreamGetPriority_ptsz(
        stream: usize, priority: Out<i32>,
    ) [stream = stream] {
        priority.set(stream.priority)
    }

    /// The unique number of a stream.
    fn cuStreamGetId, cuStreamGetId_ptsz(stream: usize, id: Out<u64>) [stream = stream] {
        id.set(stream.id)
    }

    /// The context of a stream.
    fn cuStreamGetCtx, cuStreamGetCtx_ptsz(stream: usize, context: Out<usize>) [stream = stream] {
        context.set(stream.context.handle)
    }

    /// The context of a stream, and its green context, which does not exist.
    fn cuStreamGetCtx_v2, cuStreamGetCtx_v2_ptsz(
        stream: usize, context: Out<usize>, green: Out<usize>,
    ) [stream = stream] {
        context.set(stream.context.handle)?;
        green.set(0)
    }

    /// The device of a stream.
    fn cuStreamGetDevice, cuStreamGetDevice_ptsz(stream: usize, device: Out<i32>) [stream = stream] {
        device.set(stream.context.ordinal)
    }

    /// Whether a stream is being captured: never. So the versions with more results store only this.
    fn cuStreamIsCapturing, cuStreamIsCapturing_ptsz(stream: usize, status: Out<u32>),
        also cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz,
        also cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz,
        also cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3_ptsz
    [_stream = stream] {
        status.set(CAPTURE_NONE)
    }
}
