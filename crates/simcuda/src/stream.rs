//! Streams: those that programs create, and the two that are always there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pinlane_driver::{Driver, StreamFlags, StreamHandle};

use crate::context::Context;
use crate::current::current;
use crate::error::{Code, INVALID_HANDLE, INVALID_VALUE, NOT_READY, Outcome};
use crate::ffi::Out;
use crate::shim::{exports, exports_by_default_stream};
use crate::state::machine;

/// The handle that always means the legacy default stream.
const LEGACY: usize = 1;
/// The handle that always means the thread's own default stream.
const PER_THREAD: usize = 2;
/// Flag: not ordered with the legacy default stream.
const NON_BLOCKING: u32 = 1;

/// What the stream 0 is in a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DefaultStream {
    /// One stream for the whole context.
    Legacy,
    /// One stream for each thread.
    PerThread,
}

/// A stream that a program created.
#[derive(Clone)]
pub struct Stream {
    /// Where it was created.
    pub context: Arc<Context>,
    stream: StreamHandle,
    flags: u32,
    priority: i32,
    id: u64,
}

/// Where the work of one call goes.
pub struct Lane {
    /// The context.
    pub context: Arc<Context>,
    /// The stream in it.
    pub stream: StreamHandle,
    /// Whether it is the legacy default stream.
    pub is_legacy: bool,
    /// The flags that it was created with.
    pub flags: u32,
    /// Its priority.
    pub priority: i32,
    /// A number that no other stream has.
    pub id: u64,
}

impl Lane {
    /// The stream that a program means by `handle`.
    pub fn find(handle: usize, mode: DefaultStream) -> Outcome<Self> {
        match (handle, mode) {
            (LEGACY, _) | (0, DefaultStream::Legacy) => Ok(Self::legacy(current()?)),
            (PER_THREAD, _) | (0, DefaultStream::PerThread) => Self::per_thread(current()?),
            _ => {
                let found = machine()?.streams.find(handle)?;
                Ok(Self {
                    stream: found.stream,
                    is_legacy: false,
                    flags: found.flags,
                    priority: found.priority,
                    id: found.id,
                    context: found.context,
                })
            }
        }
    }

    /// The default stream of this mode.
    pub fn default(mode: DefaultStream) -> Outcome<Self> {
        Self::find(0, mode)
    }

    /// Its device.
    pub fn driver(&self) -> &dyn Driver {
        &*self.context.driver
    }

    fn legacy(context: Arc<Context>) -> Self {
        Self {
            stream: context.driver.default_stream(),
            is_legacy: true,
            flags: 0,
            priority: 0,
            id: LEGACY as u64,
            context,
        }
    }

    fn per_thread(context: Arc<Context>) -> Outcome<Self> {
        Ok(Self {
            stream: context.thread_stream()?,
            is_legacy: false,
            flags: 0,
            priority: 0,
            id: PER_THREAD as u64,
            context,
        })
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
    let (handle, _) = machine()?.streams.insert(|_| Stream {
        context,
        stream,
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
    // SAFETY: `create` made it, and it has just left the only table that names it.
    unsafe { stream.context.driver.stream_destroy(stream.stream) }.map_err(Code::from)
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

    /// Destroys a stream: the older name.
    fn cuStreamDestroy(stream: usize) { destroy(stream) }
}

exports_by_default_stream! {
    /// Whether its work is done.
    fn cuStreamQuery, cuStreamQuery_ptsz(stream: usize) |mode| {
        let lane = Lane::find(stream, mode)?;
        if lane.driver().stream_query(lane.stream)? { Ok(()) } else { Err(NOT_READY) }
    }

    /// Waits for its work.
    fn cuStreamSynchronize, cuStreamSynchronize_ptsz(stream: usize) |mode| {
        let lane = Lane::find(stream, mode)?;
        Ok(lane.driver().stream_synchronize(lane.stream)?)
    }

    /// Later work waits for an event.
    fn cuStreamWaitEvent, cuStreamWaitEvent_ptsz(stream: usize, event: usize, flags: u32) |mode| {
        let lane = Lane::find(stream, mode)?;
        if flags > 1 {
            return Err(INVALID_VALUE);
        }
        let event = machine()?.events.find(event)?;
        if event.context.ordinal != lane.context.ordinal {
            // The simulated devices share a clock but no events.
            event.context.driver.event_synchronize(event.event)?;
            return Ok(());
        }
        Ok(lane.driver().stream_wait_event(lane.stream, event.event)?)
    }
}
