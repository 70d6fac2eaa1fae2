//! Events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pinlane_driver::{EventFlags, EventHandle};

use crate::c_pointers::Out;
use crate::context::{Context, current};
use crate::error::{INVALID_HANDLE, INVALID_VALUE, NOT_READY, NOT_SUPPORTED, Outcome, ensure};
use crate::export_macros::{exports, exports_by_default_stream};
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

impl Event {
    /// Waits until it has fired.
    pub fn synchronize(&self) -> Outcome<()> {
        // SAFETY: the handle is one of this driver's. A program may destroy the event meanwhile; the
        // simulator looks handles up and refuses those of destroyed events.
        Ok(unsafe { self.context.driver.event_synchronize(self.event) }?)
    }

    /// Whether it has fired.
    fn is_done(&self) -> Outcome<bool> {
        // SAFETY: as in `synchronize`.
        Ok(unsafe { self.context.driver.event_query(self.event) }?)
    }

    /// Nanoseconds to another event of the same device.
    fn elapsed_ns(&self, end: &Self) -> Outcome<i64> {
        // SAFETY: as in `synchronize`, for both.
        Ok(unsafe { self.context.driver.event_elapsed_ns(self.event, end.event) }?)
    }
}

fn record(handle: usize, stream: &StreamRef) -> Outcome<()> {
    let event = machine()?.events.find(handle)?;
    let is_same = event.context.handle == stream.context.handle;
    ensure(is_same, INVALID_HANDLE)?;
    stream.record(event.event)?;
    event.recorded.store(true, Ordering::Relaxed);
    Ok(())
}

exports! { through guard;
    /// Creates an event.
    fn cuEventCreate(event: Out<usize>, flags: u32) {
        let context = current()?;
        event.set_with(|| {
            ensure(flags & !(BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS) == 0, INVALID_VALUE)?;
            ensure(flags & INTERPROCESS == 0, NOT_SUPPORTED)?;
            let timing = flags & DISABLE_TIMING == 0;
            let blocking_sync = flags & BLOCKING_SYNC != 0;
            let event = context.driver.event_create(EventFlags { timing, blocking_sync })?;
            let recorded = Arc::default();
            Ok(machine()?.events.insert(Event { context, event, timing, recorded }))
        })
    }

    /// Destroys an event.
    fn cuEventDestroy_v2(event: usize), also cuEventDestroy {
        let event = machine()?.events.remove(event)?;
        // SAFETY: `cuEventCreate` created it, and it has just been removed from the table.
        Ok(unsafe { event.context.driver.event_destroy(event.event) }?)
    }

    /// Queries whether an event has fired.
    fn cuEventQuery(event: usize) {
        let event = machine()?.events.find(event)?;
        ensure(event.is_done()?, NOT_READY)
    }

    /// Waits until an event has fired.
    fn cuEventSynchronize(event: usize) {
        machine()?.events.find(event)?.synchronize()
    }

    /// Milliseconds from one event to another.
    fn cuEventElapsedTime(milliseconds: Out<f32>, start: usize, end: usize),
        also cuEventElapsedTime_v2
    {
        let machine = machine()?;
        milliseconds.set_with(|| {
            let (start, end) = (machine.events.find(start)?, machine.events.find(end)?);
            let usable = |event: &Event| event.timing && event.recorded.load(Ordering::Relaxed);
            let is_same = start.context.ordinal == end.context.ordinal;
            ensure(usable(&start) && usable(&end) && is_same, INVALID_HANDLE)?;
            let ns = start.elapsed_ns(&end)?;
            Ok((ns as f64 / 1e6) as f32)
        })
    }
}

exports_by_default_stream! {
    /// Records an event.
    fn cuEventRecord, cuEventRecord_ptsz(event: usize, stream: usize) [stream = stream] {
        record(event, &stream)
    }

    /// The same. The flag only affects captures.
    fn cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz(
        event: usize, stream: usize, flags: u32,
    ) [stream = ensure(flags <= 1, INVALID_VALUE).map(|()| stream)?] {
        record(event, &stream)
    }
}
