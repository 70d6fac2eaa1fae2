//! Events.

use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use cudarc::driver::sys::CUevent_flags::{CU_EVENT_BLOCKING_SYNC, CU_EVENT_DISABLE_TIMING};
use pinlane_driver::{EventFlags, EventHandle, Result, StreamHandle};

use crate::handles::{raw_event, raw_stream};
use crate::open_device::{CudaDevice, device_call};

/// How long a wait with a timeout spins, then yields, before it sleeps.
const SPIN: Duration = Duration::from_micros(20);
const YIELD: Duration = Duration::from_micros(200);
/// The longest sleep between two queries.
const SLEEP_MAX: Duration = Duration::from_millis(1);

impl CudaDevice {
    pub(crate) fn event_create(&self, flags: EventFlags) -> Result<EventHandle> {
        let mut bits = 0;
        if !flags.timing {
            bits |= CU_EVENT_DISABLE_TIMING as u32;
        }
        if flags.blocking_sync {
            bits |= CU_EVENT_BLOCKING_SYNC as u32;
        }
        let mut event = ptr::null_mut();
        // SAFETY: `event` outlives the call.
        unsafe { device_call!(self.cuEventCreate(&mut event, bits)) }?;
        // SAFETY: the driver just created it.
        Ok(unsafe { EventHandle::from_raw(event.expose_provenance() as u64) })
    }

    pub(crate) unsafe fn event_destroy(&self, event: EventHandle) -> Result<()> {
        // SAFETY: the caller gives up the event.
        unsafe { device_call!(self.cuEventDestroy_v2(raw_event(event))) }
    }

    pub(crate) unsafe fn event_record(
        &self,
        event: EventHandle,
        stream: StreamHandle,
    ) -> Result<()> {
        // SAFETY: the caller passes live handles.
        unsafe { device_call!(self.cuEventRecord(raw_event(event), raw_stream(stream))) }
    }

    pub(crate) unsafe fn event_query(&self, event: EventHandle) -> Result<bool> {
        let _current = self.enter()?;
        // SAFETY: the caller passes a live event.
        let code = unsafe { (self.calls().cuEventQuery)(raw_event(event)) };
        self.check_done("cuEventQuery", code)
    }

    pub(crate) unsafe fn event_synchronize(&self, event: EventHandle) -> Result<()> {
        // SAFETY: the caller passes a live event.
        unsafe { device_call!(self.cuEventSynchronize(raw_event(event))) }
    }

    /// libcuda has no wait with a timeout, so this polls, less and less often.
    pub(crate) unsafe fn event_wait_timeout(
        &self,
        event: EventHandle,
        timeout: Duration,
    ) -> Result<bool> {
        let start = Instant::now();
        let Some(deadline) = start.checked_add(timeout) else {
            // SAFETY: the caller passes a live event.
            return unsafe { self.event_synchronize(event) }.map(|()| true);
        };
        loop {
            // SAFETY: the caller passes a live event.
            if unsafe { self.event_query(event) }? {
                return Ok(true);
            }
            let now = Instant::now();
            if now >= deadline {
                return Ok(false);
            }
            pause(now - start, deadline - now);
        }
    }

    pub(crate) unsafe fn event_elapsed_ns(
        &self,
        start: EventHandle,
        end: EventHandle,
    ) -> Result<i64> {
        let (start, end) = (raw_event(start), raw_event(end));
        let mut elapsed_ms = 0.0;
        // SAFETY: the caller passes live events, and `elapsed_ms` outlives the call.
        unsafe { device_call!(self.cuEventElapsedTime(&mut elapsed_ms, start, end)) }?;
        Ok(ms_to_ns(elapsed_ms))
    }
}

/// Pauses before the next query, longer and longer.
fn pause(waited: Duration, remaining: Duration) {
    if waited < SPIN {
        std::hint::spin_loop();
    } else if waited < YIELD {
        thread::yield_now();
    } else {
        thread::sleep((waited / 8).min(SLEEP_MAX).min(remaining));
    }
}

fn ms_to_ns(ms: f32) -> i64 {
    (f64::from(ms) * 1e6).round() as i64
}

#[cfg(test)]
mod tests {
    use super::ms_to_ns;

    #[test]
    fn milliseconds_become_nanoseconds() {
        assert_eq!(ms_to_ns(0.0), 0);
        assert_eq!(ms_to_ns(1.5), 1_500_000);
        assert_eq!(ms_to_ns(-0.25), -250_000);
        assert_eq!(ms_to_ns(0.001), 1_000);
    }
}
