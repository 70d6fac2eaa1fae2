//! Events that the user places.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pinlane_driver::{EventFlags, EventHandle};

use crate::device_core::DeviceCore;
use crate::{Error, Result};

/// A mark in a stream: it fires when all work before it is done.
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
    core: Arc<DeviceCore>,
    pub(crate) handle: EventHandle,
}

impl Event {
    pub(crate) fn create(core: &Arc<DeviceCore>, flags: EventFlags) -> Result<Self> {
        Ok(Self {
            handle: core.driver.event_create(flags)?,
            core: Arc::clone(core),
        })
    }

    pub(crate) fn belongs_to(&self, core: &Arc<DeviceCore>) -> Result<()> {
        if Arc::ptr_eq(&self.core, core) {
            Ok(())
        } else {
            Err(Error::WrongDevice)
        }
    }

    /// Whether it has fired. Before it is recorded it counts as fired.
    pub fn is_done(&self) -> Result<bool> {
        Ok(self.core.driver.event_query(self.handle)?)
    }

    /// Wait until it has fired.
    pub fn synchronize(&self) -> Result<()> {
        Ok(self.core.driver.event_synchronize(self.handle)?)
    }

    /// Wait until it has fired, at most `timeout`. Whether it has.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<bool> {
        Ok(self.core.driver.event_wait_timeout(self.handle, timeout)?)
    }

    /// Nanoseconds of the device's time from this event to `end`; negative when `end` fired first.
    /// Both were made with timing and have fired.
    pub fn elapsed_ns(&self, end: &Self) -> Result<i64> {
        end.belongs_to(&self.core)?;
        Ok(self.core.driver.event_elapsed_ns(self.handle, end.handle)?)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: created by this driver, and this was its only owner.
        self.core
            .give_back(|driver| unsafe { driver.event_destroy(self.handle) });
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Event").field(&self.handle.raw()).finish()
    }
}
