//! User-placed events.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use pinlane_driver::EventFlags;

use crate::completion_future::Completed;
use crate::device::Shared;
use crate::device_core::DeviceCore;
use crate::driver_handles::OwnEvent;
use crate::fence::DeviceFence;
use crate::{Error, Result};

/// A marker in a stream. It fires when all earlier work on the stream is done.
///
/// ```
/// # fn main() -> pinlane::Result<()> {
/// # let device = pinlane::Device::sim("pcie3-x16")?;
/// let stream = device.stream()?;
/// let (start, end) = (device.event_with_timing()?, device.event_with_timing()?);
/// stream.record(&start)?;
/// // … work …
/// stream.record(&end)?;
/// end.synchronize()?;
/// let nanoseconds = start.elapsed_ns(&end)?;
/// # assert!(nanoseconds >= 0);
/// # Ok(())
/// # }
/// ```
pub struct Event {
    event: Arc<OwnEvent>,
    /// An event does not keep its device open.
    device: Weak<Shared>,
}

impl Event {
    pub(crate) fn create(device: &Arc<Shared>, flags: EventFlags) -> Result<Self> {
        Ok(Self {
            event: Arc::new(OwnEvent::create(&device.core, flags)?),
            device: Arc::downgrade(device),
        })
    }

    pub(crate) fn own(&self) -> &OwnEvent {
        &self.event
    }

    pub(crate) fn belongs_to(&self, core: &Arc<DeviceCore>) -> Result<()> {
        let same = Arc::ptr_eq(self.event.core(), core);
        same.then_some(()).ok_or(Error::WrongDevice)
    }

    /// Whether the event has fired. An event that was never recorded counts as fired.
    pub fn is_done(&self) -> Result<bool> {
        Ok(self.event.is_done()?)
    }

    /// Waits until the event has fired.
    pub fn synchronize(&self) -> Result<()> {
        Ok(self.event.synchronize()?)
    }

    /// Waits until the event has fired or `timeout` has passed. Returns whether it has fired.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<bool> {
        Ok(self.event.wait_timeout(timeout)?)
    }

    /// Resolves when the event has fired. An event that was never recorded counts as fired. If it is
    /// recorded again in the meantime, this may resolve with the later recording.
    ///
    /// ```
    /// # async fn example(device: pinlane::Device, stream: pinlane::Stream) -> pinlane::Result<()> {
    /// let event = device.event()?;
    /// stream.record(&event)?;
    /// event.completed().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn completed(&self) -> Completed {
        match self.device.upgrade() {
            Some(device) => Completed::new(DeviceFence::of_event(&self.event), device),
            // The device is closed, so nothing would wake the task.
            None => Completed::ready(self.synchronize()),
        }
    }

    /// Device time from this event to `end` in nanoseconds; negative if `end` fired first. Both events must
    /// have been created with timing and have fired.
    pub fn elapsed_ns(&self, end: &Self) -> Result<i64> {
        end.belongs_to(self.event.core())?;
        Ok(self.event.elapsed_ns(&end.event)?)
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Event")
            .field(&self.event.handle().raw())
            .finish()
    }
}
