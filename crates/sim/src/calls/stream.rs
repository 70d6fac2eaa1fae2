//! Calls on streams and events.

use std::sync::Arc;

use pinlane_driver::{Call, ErrorKind, EventFlags, EventHandle, Result, StreamFlags, StreamHandle};

use super::error;
use crate::faults::FaultKind;
use crate::operation::{RecordedStart, StreamPoint, Work};
use crate::slab::Id;
use crate::state::State;
use crate::stream::{Event, Role, Stream};

/// Least and greatest priority of a stream.
pub(crate) const PRIORITIES: (i32, i32) = (0, -5);
/// CUDA's code for a failed call into the operating system.
const OPERATING_SYSTEM: u32 = 304;

/// Polls in a row without success after which a program counts as waiting.
const POLLS_BEFORE_WAITING: u32 = 16;

impl State {
    /// May inject a failure of a submission, or of creating a stream or event.
    pub(crate) fn may_fail(&mut self, call: Call) -> Result<()> {
        if self.injector.hit(FaultKind::FailedSubmit) {
            let kind = ErrorKind::Other {
                code: OPERATING_SYSTEM,
            };
            return Err(error(call, kind, "(injected)"));
        }
        Ok(())
    }

    pub(crate) fn stream_create(
        &mut self,
        device: usize,
        flags: StreamFlags,
    ) -> Result<StreamHandle> {
        self.may_fail(Call::StreamCreate)?;
        let role = if flags.non_blocking {
            Role::NonBlocking
        } else {
            Role::Blocking
        };
        let priority = flags.priority.clamp(PRIORITIES.1, PRIORITIES.0);
        let id = self.streams.insert(Stream::new(device, role, priority));
        // SAFETY: the handle of a live object; the simulator checks every handle it gets.
        Ok(unsafe { StreamHandle::from_raw(id.handle()) })
    }

    pub(crate) fn stream_destroy(&mut self, device: usize, stream: StreamHandle) -> Result<()> {
        let call = Call::StreamDestroy;
        let id = self.stream(device, stream, call)?;
        let stream = self.streams.get_mut(id).expect("a checked handle");
        if stream.role == Role::Default {
            let detail = "the default stream cannot be destroyed";
            return Err(error(call, ErrorKind::InvalidHandle, detail));
        }
        if stream.queue.is_empty() {
            self.streams.remove(id);
        } else {
            stream.destroyed = true;
        }
        Ok(())
    }

    pub(crate) fn stream_query(&mut self, device: usize, stream: StreamHandle) -> Result<bool> {
        let id = self.stream(device, stream, Call::StreamQuery)?;
        let done = self.end_of(id).into_iter().all(|point| self.passed(point));
        Ok(self.polled(done))
    }

    pub(crate) fn set_capturing(&mut self, stream: StreamHandle, capturing: bool) {
        for device in 0..self.devices.len() {
            if let Ok(id) = self.stream(device, stream, Call::StreamIsCapturing)
                && let Some(stream) = self.streams.get_mut(id)
            {
                stream.capturing = capturing;
            }
        }
    }

    pub(crate) fn stream_is_capturing(
        &mut self,
        device: usize,
        stream: StreamHandle,
    ) -> Result<bool> {
        let id = self.stream(device, stream, Call::StreamIsCapturing)?;
        Ok(self.streams.get(id).is_some_and(|stream| stream.capturing))
    }

    pub(crate) fn stream_wait_event(
        &mut self,
        device: usize,
        stream: StreamHandle,
        event: EventHandle,
    ) -> Result<()> {
        let call = Call::StreamWaitEvent;
        let stream = self.stream(device, stream, call)?;
        let event = self.event(device, event, call)?;
        self.may_fail(call)?;
        let event = self.events.get(event).expect("a checked handle");
        let Some(point) = event.recorded else {
            return Ok(());
        };
        let start = Arc::clone(&event.start);
        let passed = self.passed(point);
        let waiting = self.streams.get_mut(stream).expect("a checked handle");
        if passed && waiting.queue.is_empty() {
            if let Some(start) = start.get() {
                waiting.earliest.after(start);
            }
        } else {
            self.submit(stream, call, Work::Wait(point, start));
        }
        Ok(())
    }

    pub(crate) fn event_create(&mut self, device: usize, flags: EventFlags) -> Result<EventHandle> {
        self.may_fail(Call::EventCreate)?;
        let id = self.events.insert(Event {
            device,
            flags,
            recorded: None,
            start: RecordedStart::default(),
            fired_ns: None,
        });
        // SAFETY: the handle of a live object; the simulator checks every handle it gets.
        Ok(unsafe { EventHandle::from_raw(id.handle()) })
    }

    pub(crate) fn event_destroy(&mut self, device: usize, event: EventHandle) -> Result<()> {
        let id = self.event(device, event, Call::EventDestroy)?;
        self.events.remove(id);
        Ok(())
    }

    pub(crate) fn event_record(
        &mut self,
        device: usize,
        event: EventHandle,
        stream: StreamHandle,
    ) -> Result<()> {
        let call = Call::EventRecord;
        let event = self.event(device, event, call)?;
        let stream = self.stream(device, stream, call)?;
        self.may_fail(call)?;
        let point = StreamPoint {
            stream,
            sequence: self.last_sequence + 1,
        };
        let entry = self.events.get_mut(event).expect("a checked handle");
        entry.recorded = Some(point);
        entry.fired_ns = None;
        entry.start = RecordedStart::default();
        let start = Arc::clone(&entry.start);
        self.submit(stream, call, Work::Record(event, start));
        Ok(())
    }

    pub(crate) fn event_query(&mut self, device: usize, event: EventHandle) -> Result<bool> {
        let id = self.event(device, event, Call::EventQuery)?;
        let done = self.fired(id);
        Ok(self.polled(done))
    }

    /// The point that must be passed before the event fires.
    pub(crate) fn event_points(
        &self,
        device: usize,
        event: EventHandle,
        call: Call,
    ) -> Result<Vec<StreamPoint>> {
        let id = self.event(device, event, call)?;
        let event = self.events.get(id);
        Ok(event.and_then(|event| event.recorded).into_iter().collect())
    }

    pub(crate) fn event_elapsed_ns(
        &self,
        device: usize,
        start: EventHandle,
        end: EventHandle,
    ) -> Result<i64> {
        let start = self.event(device, start, Call::EventElapsed)?;
        let end = self.event(device, end, Call::EventElapsed)?;
        Ok(self.fired_ns(end)? as i64 - self.fired_ns(start)? as i64)
    }

    fn fired_ns(&self, id: Id) -> Result<u64> {
        let event = self.events.get(id).expect("a checked handle");
        let (kind, detail) = match (event.recorded, event.fired_ns) {
            _ if !event.flags.timing => (
                ErrorKind::InvalidHandle,
                "the event was created without timing",
            ),
            (None, _) => (ErrorKind::InvalidHandle, "the event was never recorded"),
            (Some(_), None) => (ErrorKind::NotReady, "the event has not fired"),
            (Some(_), Some(fired_ns)) => return Ok(fired_ns),
        };
        Err(error(Call::EventElapsed, kind, detail))
    }

    /// The answer to a poll. A program that keeps polling is waiting, and would do so for very long
    /// (forever, if a poll is free). So time advances to the next event after a while. (An
    /// adversary lets time pass in any call.)
    fn polled(&mut self, done: bool) -> bool {
        let patience = match self.config.profile.calls.query_ns {
            0 => 0,
            _ => POLLS_BEFORE_WAITING,
        };
        self.idle_polls = if done { 0 } else { self.idle_polls + 1 };
        // For exact replay, callbacks return first.
        let may_pass = self.config.idle_progress || !self.callbacks.outstanding();
        if self.idle_polls > patience && may_pass && self.adversary.is_none() {
            self.step();
        }
        self.trace.add(u64::from(done));
        done
    }
}
