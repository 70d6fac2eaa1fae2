//! Events.

use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use cudarc::driver::sys::CUevent;
use cudarc::driver::sys::CUevent_flags::{CU_EVENT_BLOCKING_SYNC, CU_EVENT_DISABLE_TIMING};
use pinlane_driver::{EventFlags, EventHandle, Result, StreamHandle};

use crate::device::CudaDevice;
use crate::stream::raw_stream;

/// How long a wait with a limit spins, then yields, before it sleeps.
const SPIN: Duration = Duration::from_micros(20);
const YIELD: Duration = Duration::from_micros(200);
/// The longest sleep between two queries.
const SLEEP_MAX: Duration = Duration::from_millis(1);

/// The driver's handle of an event.
pub(crate) fn raw_event(event: EventHandle) -> CUevent {
    ptr::with_exposed_provenance_mut(event.raw() as usize)
}

impl CudaDevice {
    pub(crate) fn event_create(&self, flags: EventFlags) -> Result<EventHandle> {
        let mut bits = 0;
        if !flags.timing {
            bits |= CU_EVENT_DISABLE_TIMING as u32;
        }
        if flags.blocking_sync {
            bits |= CU_EVENT_BLOCKING_SYNC as u32;
        }
        let _current = self.enter()?;
        let mut event = ptr::null_mut();
        // SAFETY: `event` outlives the call.
        let code = unsafe { (self.calls().cuEventCreate)(&mut event, bits) };
        self.check("cuEventCreate", code)?;
        // SAFETY: the driver just gave it out.
        Ok(unsafe { EventHandle::from_raw(event.expose_provenance() as u64) })
    }

    /// # Safety
    /// As for the trait's method.
    pub(crate) unsafe fn event_destroy(&self, event: EventHandle) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the caller gives up the event.
        let code = unsafe { (self.calls().cuEventDestroy_v2)(raw_event(event)) };
        self.check("cuEventDestroy_v2", code)
    }

    pub(crate) fn event_record(&self, event: EventHandle, stream: StreamHandle) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: takes handles of this device's.
        let code = unsafe { (self.calls().cuEventRecord)(raw_event(event), raw_stream(stream)) };
        self.check("cuEventRecord", code)
    }

    pub(crate) fn event_query(&self, event: EventHandle) -> Result<bool> {
        let _current = self.enter()?;
        // SAFETY: takes a handle of this device's.
        let code = unsafe { (self.calls().cuEventQuery)(raw_event(event)) };
        self.check_done("cuEventQuery", code)
    }

    pub(crate) fn event_synchronize(&self, event: EventHandle) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: takes a handle of this device's.
        let code = unsafe { (self.calls().cuEventSynchronize)(raw_event(event)) };
        self.check("cuEventSynchronize", code)
    }

    /// libcuda has no wait with a limit, so this one asks again and again, ever more lazily.
    pub(crate) fn event_wait_timeout(&self, event: EventHandle, timeout: Duration) -> Result<bool> {
        let start = Instant::now();
        let Some(deadline) = start.checked_add(timeout) else {
            return self.event_synchronize(event).map(|()| true);
        };
        loop {
            if self.event_query(event)? {
                return Ok(true);
            }
            let now = Instant::now();
            if now >= deadline {
                return Ok(false);
            }
            pause(now - start, deadline - now);
        }
    }

    pub(crate) fn event_elapsed_ns(&self, start: EventHandle, end: EventHandle) -> Result<i64> {
        let _current = self.enter()?;
        let mut elapsed_ms = 0.0;
        // SAFETY: takes handles of this device's, and `elapsed_ms` outlives the call.
        let code = unsafe {
            (self.calls().cuEventElapsedTime)(&mut elapsed_ms, raw_event(start), raw_event(end))
        };
        self.check("cuEventElapsedTime", code)?;
        Ok(ns_of_ms(elapsed_ms))
    }
}

/// Waits before the next query, the longer the wait has been going on.
fn pause(waited: Duration, left: Duration) {
    if waited < SPIN {
        std::hint::spin_loop();
    } else if waited < YIELD {
        thread::yield_now();
    } else {
        thread::sleep((waited / 8).min(SLEEP_MAX).min(left));
    }
}

fn ns_of_ms(ms: f32) -> i64 {
    (f64::from(ms) * 1e6).round() as i64
}

#[cfg(test)]
mod tests {
    use super::ns_of_ms;

    #[test]
    fn milliseconds_become_nanoseconds() {
        assert_eq!(ns_of_ms(0.0), 0);
        assert_eq!(ns_of_ms(1.5), 1_500_000);
        assert_eq!(ns_of_ms(-0.25), -250_000);
        assert_eq!(ns_of_ms(0.001), 1_000);
    }
}
