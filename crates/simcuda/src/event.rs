//! Events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pinlane_driver::{EventFlags, EventHandle};

use crate::context::Context;
use crate::context_stack::current;
use crate::error::{Code, INVALID_HANDLE, INVALID_VALUE, NOT_READY, NOT_SUPPORTED, Outcome};
use crate::exports::{exports, exports_by_default_stream};
use crate::ffi::Out;
use crate::machine::machine;
use crate::stream::StreamRef;

/// Flag: waiting threads sleep.
const BLOCKING_SYNC: u32 = 1;
/// Flag: without timing.
const DISABLE_TIMING: u32 = 2;
/// Flag: shared with other processes.
const INTERPROCESS: u32 = 4;

/// A created event.
#[derive(Clone)]
pub struct Event {
    /// Its context.
    pub context: Arc<Context>,
    /// The simulator's handle.
    pub event: EventHandle,
    timing: bool,
    recorded: Arc<AtomicBool>,
}

fn create(handle: Out<usize>, flags: u32) -> Outcome<()> {
    let context = current()?;
    let slot = handle.required()?;
    if flags & !(BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS) != 0 {
        return Err(INVALID_VALUE);
    }
    if flags & INTERPROCESS != 0 {
        return Err(NOT_SUPPORTED);
    }
    let timing = flags & DISABLE_TIMING == 0;
    let event = context.driver.event_create(EventFlags {
        timing,
        blocking_sync: flags & BLOCKING_SYNC != 0,
    })?;
    let (handle, _) = machine()?.events.insert(|_| Event {
        context,
        event,
        timing,
        recorded: Arc::new(AtomicBool::new(false)),
    });
    slot.put(handle);
    Ok(())
}

fn destroy(handle: usize) -> Outcome<()> {
    let event = machine()?.events.remove(handle)?;
    // SAFETY: `create` created it, and it has just been removed from the table.
    unsafe { event.context.driver.event_destroy(event.event) }.map_err(Code::from)
}

fn record(handle: usize, stream: &StreamRef) -> Outcome<()> {
    let event = machine()?.events.find(handle)?;
    if event.context.handle != stream.context.handle {
        return Err(INVALID_HANDLE);
    }
    stream.driver().event_record(event.event, stream.handle)?;
    event.recorded.store(true, Ordering::Relaxed);
    Ok(())
}

/// Milliseconds from one event to another.
fn elapsed(milliseconds: Out<f32>, start: usize, end: usize) -> Outcome<()> {
    let machine = machine()?;
    let slot = milliseconds.required()?;
    let (start, end) = (machine.events.find(start)?, machine.events.find(end)?);
    let usable = |event: &Event| event.timing && event.recorded.load(Ordering::Relaxed);
    if !usable(&start) || !usable(&end) || start.context.ordinal != end.context.ordinal {
        return Err(INVALID_HANDLE);
    }
    let ns = start
        .context
        .driver
        .event_elapsed_ns(start.event, end.event)?;
    slot.put((ns as f64 / 1e6) as f32);
    Ok(())
}

exports! { through guard;
    /// Creates an event.
    fn cuEventCreate(event: Out<usize>, flags: u32) { create(event, flags) }

    /// Destroys an event.
    fn cuEventDestroy_v2(event: usize) { destroy(event) }

    /// Older name of the same.
    fn cuEventDestroy(event: usize) { destroy(event) }

    /// Queries whether an event has fired.
    fn cuEventQuery(event: usize) {
        let event = machine()?.events.find(event)?;
        if event.context.driver.event_query(event.event)? { Ok(()) } else { Err(NOT_READY) }
    }

    /// Waits until an event has fired.
    fn cuEventSynchronize(event: usize) {
        let event = machine()?.events.find(event)?;
        Ok(event.context.driver.event_synchronize(event.event)?)
    }

    /// Milliseconds from one event to another.
    fn cuEventElapsedTime(milliseconds: Out<f32>, start: usize, end: usize) {
        elapsed(milliseconds, start, end)
    }

    /// Milliseconds from one event to another.
    fn cuEventElapsedTime_v2(milliseconds: Out<f32>, start: usize, end: usize) {
        elapsed(milliseconds, start, end)
    }
}

exports_by_default_stream! {
    /// Records an event.
    fn cuEventRecord, cuEventRecord_ptsz(event: usize, stream: usize) |mode| {
        record(event, &StreamRef::find(stream, mode)?)
    }

    /// The same. The flag only affects captures.
    fn cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz(
        event: usize, stream: usize, flags: u32,
    ) |mode| {
        if flags > 1 {
            return Err(INVALID_VALUE);
        }
        record(event, &StreamRef::find(stream, mode)?)
    }
}
