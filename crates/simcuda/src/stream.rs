//! Streams: created ones, and the two default streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pinlane_driver::{Driver, StreamFlags, StreamHandle};

use crate::context::Context;
use crate::context_stack::current;
use crate::error::{Code, INVALID_HANDLE, INVALID_VALUE, NOT_READY, Outcome};
use crate::exports::{exports, exports_by_default_stream};
use crate::ffi::Out;
use crate::machine::machine;

/// Handle of the legacy default stream.
const LEGACY: usize = 1;
/// Handle of the calling thread's default stream.
const PER_THREAD: usize = 2;
/// Capture status: not captured.
const CAPTURE_NONE: u32 = 0;
/// Flag: does not synchronise with the legacy default stream.
const NON_BLOCKING: u32 = 1;

/// The meaning of stream 0 in a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DefaultStream {
    /// One stream for the whole context.
    Legacy,
    /// One stream per thread.
    PerThread,
}

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
    /// The stream of a program's handle.
    pub fn find(handle: usize, mode: DefaultStream) -> Outcome<Self> {
        match (handle, mode) {
            (LEGACY, _) | (0, DefaultStream::Legacy) => {
                let context = current()?;
                Ok(Self {
                    handle: context.driver.default_stream(),
                    is_legacy: true,
                    flags: 0,
                    priority: 0,
                    id: LEGACY as u64,
                    context,
                })
            }
            (PER_THREAD, _) | (0, DefaultStream::PerThread) => {
                let context = current()?;
                Ok(Self {
                    handle: context.thread_stream()?,
                    is_legacy: false,
                    flags: 0,
                    priority: 0,
                    id: PER_THREAD as u64,
                    context,
                })
            }
            _ => machine()?.streams.find(handle),
        }
    }

    /// The default stream of this mode.
    pub fn default(mode: DefaultStream) -> Outcome<Self> {
        Self::find(0, mode)
    }

    /// The driver of its device.
    pub fn driver(&self) -> &dyn Driver {
        &*self.context.driver
    }
}

/// Creates a stream in the current context.
fn create(handle: Out<usize>, flags: u32, priority: i32) -> Outcome<()> {
    static NEXT_ID: AtomicU64 = AtomicU64::new(3);
    let context = current()?;
    let slot = handle.required()?;
    if flags & !NON_BLOCKING != 0 {
        return Err(INVALID_VALUE);
    }
    let (least, greatest) = context.driver.stream_priorities()?;
    let priority = priority.clamp(greatest.min(least), least.max(greatest));
    let stream = context.driver.stream_create(StreamFlags {
        non_blocking: flags & NON_BLOCKING != 0,
        priority,
    })?;
    let (handle, _) = machine()?.streams.insert(|_| StreamRef {
        context,
        handle: stream,
        is_legacy: false,
        flags,
        priority,
        id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
    });
    slot.put(handle);
    Ok(())
}

/// Destroys a stream that a program created.
fn destroy(handle: usize) -> Outcome<()> {
    if matches!(handle, 0 | LEGACY | PER_THREAD) {
        return Err(INVALID_HANDLE);
    }
    let stream = machine()?.streams.remove(handle)?;
    // SAFETY: `create` created it, and it has just been removed from the table.
    unsafe { stream.driver().stream_destroy(stream.handle) }.map_err(Code::from)
}

exports! { through guard;
    /// Creates a stream.
    fn cuStreamCreate(stream: Out<usize>, flags: u32) { create(stream, flags, 0) }

    /// Creates a stream with a priority.
    fn cuStreamCreateWithPriority(stream: Out<usize>, flags: u32, priority: i32) {
        create(stream, flags, priority)
    }

    /// Destroys a stream.
    fn cuStreamDestroy_v2(stream: usize) { destroy(stream) }

    /// Older name of the same.
    fn cuStreamDestroy(stream: usize) { destroy(stream) }
}

exports_by_default_stream! {
    /// Queries whether a stream's work is done.
    fn cuStreamQuery, cuStreamQuery_ptsz(stream: usize) |mode| {
        let stream = StreamRef::find(stream, mode)?;
        if stream.driver().stream_query(stream.handle)? { Ok(()) } else { Err(NOT_READY) }
    }

    /// Waits for a stream's work.
    fn cuStreamSynchronize, cuStreamSynchronize_ptsz(stream: usize) |mode| {
        let stream = StreamRef::find(stream, mode)?;
        Ok(stream.driver().stream_synchronize(stream.handle)?)
    }

    /// Makes later work of a stream wait for an event.
    fn cuStreamWaitEvent, cuStreamWaitEvent_ptsz(stream: usize, event: usize, flags: u32) |mode| {
        let stream = StreamRef::find(stream, mode)?;
        if flags > 1 {
            return Err(INVALID_VALUE);
        }
        let event = machine()?.events.find(event)?;
        if event.context.ordinal != stream.context.ordinal {
            // Simulated devices share a clock but not events.
            event.context.driver.event_synchronize(event.event)?;
            return Ok(());
        }
        Ok(stream.driver().stream_wait_event(stream.handle, event.event)?)
    }

/// The flags of a stream.
    fn cuStreamGetFlags, cuStreamGetFlags_ptsz(stream: usize, flags: Out<u32>) |mode| {
        flags.set(StreamRef::find(stream, mode)?.flags)
    }

    /// The priority of a stream.
    fn cuStreamGetPriority, cuStreamGetPriority_ptsz(stream: usize, priority: Out<i32>) |mode| {
        priority.set(StreamRef::find(stream, mode)?.priority)
    }

    /// The unique number of a stream.
    fn cuStreamGetId, cuStreamGetId_ptsz(stream: usize, id: Out<u64>) |mode| {
        id.set(StreamRef::find(stream, mode)?.id)
    }

    /// The context of a stream.
    fn cuStreamGetCtx, cuStreamGetCtx_ptsz(stream: usize, context: Out<usize>) |mode| {
        context.set(StreamRef::find(stream, mode)?.context.handle)
    }

    /// The context of a stream, and its green context, which does not exist.
    fn cuStreamGetCtx_v2, cuStreamGetCtx_v2_ptsz(
        stream: usize, context: Out<usize>, green: Out<usize>,
    ) |mode| {
        let stream = StreamRef::find(stream, mode)?;
        context.required()?.put(stream.context.handle);
        green.set(0)
    }

    /// The device of a stream.
    fn cuStreamGetDevice, cuStreamGetDevice_ptsz(stream: usize, device: Out<i32>) |mode| {
        device.set(StreamRef::find(stream, mode)?.context.ordinal)
    }

    /// Whether a stream is being captured: never.
    fn cuStreamIsCapturing, cuStreamIsCapturing_ptsz(stream: usize, status: Out<u32>) |mode| {
        StreamRef::find(stream, mode)?;
        status.set(CAPTURE_NONE)
    }

    /// Information on a capture: there is none.
    fn cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz(
        stream: usize, status: Out<u32>, _id: Out<u64>,
    ) |mode| {
        StreamRef::find(stream, mode)?;
        status.set(CAPTURE_NONE)
    }

    /// The same with dependencies.
    fn cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz(
        stream: usize, status: Out<u32>, _id: Out<u64>, _graph: Out<usize>,
        _dependencies: Out<usize>, _count: Out<usize>,
    ) |mode| {
        StreamRef::find(stream, mode)?;
        status.set(CAPTURE_NONE)
    }

    /// The same with edges.
    fn cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3_ptsz(
        stream: usize, status: Out<u32>, _id: Out<u64>, _graph: Out<usize>,
        _dependencies: Out<usize>, _edges: Out<usize>, _count: Out<usize>,
    ) |mode| {
        StreamRef::find(stream, mode)?;
        status.set(CAPTURE_NONE)
    }
}
