//! The hook that puts timing events around work.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use pinlane_core::internal::lock;
use pinlane_driver::{
    Call, CopyOp, Driver, Error, EventFlags, EventHandle, FunctionHandle, Hook, Place, Result,
    StreamHandle, StreamWork,
};
use pinlane_model::engine_rules::start_after_previous;
use pinlane_report::timeline::{Span, SpanKind, Track};

/// Puts timing events around all work of a driver.
pub(crate) struct EventHook {
    driver: Arc<dyn Driver>,
    /// Work goes by without events.
    is_paused: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The event before the work that a thread is submitting.
    started: HashMap<ThreadId, EventHandle>,
    work: Vec<RecordedWork>,
    /// Streams in the order of their first use.
    streams: Vec<StreamHandle>,
    kernels: HashMap<FunctionHandle, String>,
    /// The first event that could not be recorded.
    failed: Option<Error>,
}

struct RecordedWork {
    start: EventHandle,
    end: EventHandle,
    stream: usize,
    kind: SpanKind,
    label: String,
    bytes: u64,
}

impl EventHook {
    pub(crate) fn new(driver: &Arc<dyn Driver>) -> Self {
        Self {
            driver: Arc::clone(driver),
            is_paused: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    pub(crate) fn set_paused(&self, is_paused: bool) {
        self.is_paused.store(is_paused, Ordering::Release);
    }

    /// All work recorded so far, which is done. Recording starts anew.
    pub(crate) fn spans(&self) -> Result<Vec<Span>> {
        let mut state = lock(&self.state);
        let (work, failed) = (std::mem::take(&mut state.work), state.failed.take());
        state.streams.clear();
        drop(state);
        let spans = failed.map_or_else(|| self.read(&work), Err);
        let events = work.iter().flat_map(|work| [work.start, work.end]);
        events.for_each(|event| self.destroy(event));
        spans
    }

    fn read(&self, work: &[RecordedWork]) -> Result<Vec<Span>> {
        let Some(first) = work.first() else {
            return Ok(Vec::new());
        };
        // SAFETY: all are events of this hook, which destroys them after this.
        let at = |event| unsafe { self.driver.event_elapsed_ns(first.start, event) };
        let times = work.iter().map(|work| Ok((at(work.start)?, at(work.end)?)));
        let times = times.collect::<Result<Vec<_>>>()?;
        // Work of another stream may have started before the first that was submitted.
        let zero = times.iter().map(|(start, _)| *start).min().unwrap_or(0);
        let since_zero = |ns: i64| u64::try_from(ns - zero).unwrap_or(0);
        let spans = work.iter().zip(times).map(|(work, (start, end))| {
            let (start, end) = (since_zero(start), since_zero(end));
            Span::new(track(work.kind), work.kind, start.min(end), end)
                .label(work.label.clone())
                .stream(work.stream as u32)
                .bytes(work.bytes)
        });
        let mut spans: Vec<Span> = spans.collect();
        spans.sort_by_key(|span| span.end_ns);
        for kind in [
            SpanKind::HostToDevice,
            SpanKind::Kernel,
            SpanKind::DeviceToHost,
        ] {
            let work = spans.iter_mut().filter(|span| span.track == track(kind));
            start_after_previous(work.map(|span| (&mut span.start_ns, span.end_ns)));
        }
        Ok(spans)
    }

    fn destroy(&self, event: EventHandle) {
        // SAFETY: created by this hook and taken out of its state, so this is its only use.
        let destroyed = unsafe { self.driver.event_destroy(event) };
        drop(destroyed); // a failure leaks an event, which the context frees
    }
}

/// The engine that does this kind of work.
fn track(kind: SpanKind) -> Track {
    match kind {
        SpanKind::HostToDevice => Track::HostToDevice(0),
        SpanKind::DeviceToHost => Track::DeviceToHost(0),
        _ => Track::Compute(0),
    }
}

fn copy_kind(source: Place, target: Place) -> SpanKind {
    match (source, target) {
        (Place::Host(_), _) => SpanKind::HostToDevice,
        (Place::Device(_), Place::Host(_)) => SpanKind::DeviceToHost,
        (Place::Device(_), Place::Device(_)) => SpanKind::DeviceToDevice,
    }
}

/// A timing event, recorded on a stream.
///
/// # Safety
/// The event, if there is one, and the stream are live for `driver`.
unsafe fn record(
    driver: &dyn Driver,
    event: Option<EventHandle>,
    stream: StreamHandle,
) -> Result<EventHandle> {
    let flags = EventFlags {
        timing: true,
        ..EventFlags::default()
    };
    let event = event.map_or_else(|| driver.event_create(flags), Ok)?;
    // SAFETY: the caller's, and the event may be new.
    unsafe { driver.event_record(event, stream)? };
    Ok(event)
}

// SAFETY: it returns no errors.
unsafe impl Hook for EventHook {
    fn before(&self, _: Call) -> Result<()> {
        Ok(())
    }

    unsafe fn before_work(&self, driver: &dyn Driver, stream: StreamHandle) {
        if self.is_paused.load(Ordering::Acquire) {
            return;
        }
        let thread = thread::current().id();
        // Left behind by work that the driver refused.
        let unused = lock(&self.state).started.remove(&thread);
        // SAFETY: the stream is the caller's, and this hook does not destroy events that it has started.
        let recorded = unsafe { record(driver, unused, stream) };
        let mut state = lock(&self.state);
        match recorded {
            Ok(event) => drop(state.started.insert(thread, event)),
            Err(error) => drop(state.failed.get_or_insert(error)),
        }
    }

    unsafe fn after_work(&self, driver: &dyn Driver, stream: StreamHandle, work: StreamWork<'_>) {
        if self.is_paused.load(Ordering::Acquire) {
            return; // an event before it is used for other work, or destroyed
        }
        let Some(start) = lock(&self.state).started.remove(&thread::current().id()) else {
            return;
        };
        // SAFETY: the caller's.
        let recorded = unsafe { record(driver, None, stream) };
        let mut state = lock(&self.state);
        let end = match recorded {
            Ok(end) => end,
            Err(error) => {
                state.failed.get_or_insert(error);
                return;
            }
        };
        let (kind, bytes) = match work {
            StreamWork::Copies(copies @ [first, ..]) => {
                let bytes = copies.iter().map(|copy: &CopyOp| copy.bytes).sum();
                (copy_kind(first.source, first.target), bytes)
            }
            StreamWork::Rows(copy) => {
                let kind = copy_kind(copy.source, copy.target);
                (kind, copy.rows * copy.row_bytes)
            }
            StreamWork::Memset { bytes } => (SpanKind::Memset, bytes),
            _ => (SpanKind::Kernel, 0),
        };
        let label = match work {
            StreamWork::Kernel(function) => state.kernels.get(&function).cloned(),
            _ => None,
        };
        let known = state.streams.iter().position(|known| *known == stream);
        let stream = known.unwrap_or_else(|| {
            state.streams.push(stream);
            state.streams.len() - 1
        });
        state.work.push(RecordedWork {
            start,
            end,
            stream,
            kind,
            label: label.unwrap_or_default(),
            bytes: bytes as u64,
        });
    }

    fn found_kernel(&self, function: FunctionHandle, name: &str) {
        lock(&self.state).kernels.insert(function, name.to_owned());
    }
}

impl Drop for EventHook {
    fn drop(&mut self) {
        let state = std::mem::take(&mut *lock(&self.state));
        let recorded = state.work.iter().flat_map(|work| [work.start, work.end]);
        let events: Vec<_> = state.started.into_values().chain(recorded).collect();
        events.into_iter().for_each(|event| self.destroy(event));
    }
}

impl fmt::Debug for EventHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let recorded = lock(&self.state).work.len();
        f.debug_struct("EventHook")
            .field("recorded", &recorded)
            .finish_non_exhaustive()
    }
}
