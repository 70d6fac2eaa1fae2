//! Calls on streams and events.

use std::sync::Arc;

use pinlane_driver::{ErrorKind, EventFlags, EventHandle, Result, StreamFlags, StreamHandle};

use super::DeviceCall;
use crate::operation::Work;
use crate::slab::Id;
use crate::stream::{Event, RecordedStart, Role, Stream, StreamPoint};

/// Least and greatest priority of a stream.
pub(crate) const PRIORITIES: (i32, i32) = (0, -5);

/// Polls in a row without success after which a program counts as waiting.
const POLLS_BEFORE_WAITING: u32 = 16;

impl DeviceCall<'_> {
    pub(crate) fn stream_create(&mut self, flags: StreamFlags) -> Result<StreamHandle> {
        self.may_fail()?;
        let role = match flags.non_blocking {
            true => Role::NonBlocking,
            false => Role::Blocking,
        };
        let priority = flags.priority.clamp(PRIORITIES.1, PRIORITIES.0);
        let stream = Stream::new(self.device, role, priority);
        let id = self.streams.insert(stream);
        // SAFETY: the handle of a live object; the simulator checks every handle it gets.
        Ok(unsafe { StreamHandle::from_raw(id.handle()) })
    }

    pub(crate) fn stream_destroy(&mut self, stream: StreamHandle) -> Result<()> {
        let id = self.stream(stream)?;
        let stream = self.streams.get_mut(id).expect("a checked handle");
        if stream.role == Role::Default {
            let detail = "the default stream cannot be destroyed";
            return Err(self.error(ErrorKind::InvalidHandle, detail));
        }
        if stream.queue.is_empty() {
            self.streams.remove(id);
        } else {
            stream.destroyed = true;
        }
        Ok(())
    }

    pub(crate) fn stream_query(&mut self, stream: StreamHandle) -> Result<bool> {
        let end = self.end_of(self.stream(stream)?);
        let done = end.into_iter().all(|point| self.passed(point));
        Ok(self.polled(done))
    }

    pub(crate) fn stream_is_capturing(&mut self, stream: StreamHandle) -> Result<bool> {
        let id = self.stream(stream)?;
        Ok(self.streams.get(id).is_some_and(|stream| stream.capturing))
    }

    pub(crate) fn stream_wait_event(
        &mut self,
        stream: StreamHandle,
        event: EventHandle,
    ) -> Result<()> {
        let stream = self.stream(stream)?;
        let event = self.event(event)?;
        self.may_fail()?;
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
            self.submit(stream, Work::Wait(point, start));
        }
        Ok(())
    }

    pub(crate) fn event_create(&mut self, flags: EventFlags) -> Result<EventHandle> {
        self.may_fail()?;
        let event = Event {
            device: self.device,
            flags,
            recorded: None,
            start: RecordedStart::default(),
            fired_ns: None,
        };
        let id = self.events.insert(event);
        // SAFETY: the handle of a live object; the simulator checks every handle it gets.
        Ok(unsafe { EventHandle::from_raw(id.handle()) })
    }

    pub(crate) fn event_destroy(&mut self, event: EventHandle) -> Result<()> {
        let id = self.event(event)?;
        self.events.remove(id);
        Ok(())
    }

    pub(crate) fn event_record(&mut self, event: EventHandle, stream: StreamHandle) -> Result<()> {
        let event = self.event(event)?;
        let stream = self.stream(stream)?;
        self.may_fail()?;
        let point = StreamPoint {
            stream,
            sequence: self.last_sequence + 1,
        };
        let entry = self.events.get_mut(event).expect("a checked handle");
        entry.recorded = Some(point);
        entry.fired_ns = None;
        entry.start = RecordedStart::default();
        let start = Arc::clone(&entry.start);
        self.submit(stream, Work::Record(event, start));
        Ok(())
    }

    pub(crate) fn event_query(&mut self, event: EventHandle) -> Result<bool> {
        let end = self.event_end(event)?;
        let done = end.into_iter().all(|point| self.passed(point));
        Ok(self.polled(done))
    }

    /// The point that must be passed before the event fires; none if it was not recorded.
    pub(crate) fn event_end(&self, event: EventHandle) -> Result<Vec<StreamPoint>> {
        let event = self.events.get(self.event(event)?);
        Ok(event.and_then(|event| event.recorded).into_iter().collect())
    }

    pub(crate) fn event_elapsed_ns(&self, start: EventHandle, end: EventHandle) -> Result<i64> {
        let (start, end) = (self.event(start)?, self.event(end)?);
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
        Err(self.error(kind, detail))
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
