//! Times single copies on the device.

use std::sync::Arc;

use crate::device_core::DeviceCore;
use crate::driver_handles::StreamRef;
use crate::{Device, Event, Result, Stream};

/// Times one copy by the device's clock, from when its stream reaches the copy until it is done. Nothing
/// else is included.
///
/// ```
/// # fn main() -> pinlane::Result<()> {
/// # let device = pinlane::Device::sim("pcie3-x16")?;
/// let stream = device.stream()?;
/// let stopwatch = device.stopwatch()?;
/// let mut target = device.alloc::<u8>(1 << 20)?;
/// let source = device.pinned_from(&[7u8; 1 << 20])?;
/// let source = stream.timed(&stopwatch).upload(source, &mut target)?.wait()?;
/// println!("1 MiB in {} ns", stopwatch.elapsed_ns()?);
/// # assert!(stopwatch.elapsed_ns()? > 80_000 && source[0] == 7);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Stopwatch {
    start: Event,
    end: Event,
}

/// A stream that times its next copy, see [`Stream::timed`].
#[derive(Clone, Copy, Debug)]
pub struct Timed<'s> {
    pub(crate) stream: &'s Stream,
    pub(crate) stopwatch: &'s Stopwatch,
}

impl Device {
    /// Creates a stopwatch.
    pub fn stopwatch(&self) -> Result<Stopwatch> {
        Ok(Stopwatch {
            start: self.event_with_timing()?,
            end: self.event_with_timing()?,
        })
    }
}

impl Stopwatch {
    /// Duration of the last copy in nanoseconds. Waits until it is done.
    pub fn elapsed_ns(&self) -> Result<u64> {
        self.end.synchronize()?;
        let ns = self.start.elapsed_ns(&self.end)?;
        Ok(u64::try_from(ns).unwrap_or(0))
    }

    /// Checks that it may time work of this device.
    pub(crate) fn belongs_to(&self, core: &Arc<DeviceCore>) -> Result<()> {
        self.start.belongs_to(core)
    }

    /// Records an event before and after the work of `enqueue`. The result of the second recording is
    /// returned separately, because the work is already submitted by then.
    pub(crate) fn around(
        &self,
        stream: StreamRef<'_>,
        enqueue: impl FnOnce() -> pinlane_driver::Result<()>,
    ) -> pinlane_driver::Result<pinlane_driver::Result<()>> {
        stream.record(self.start.own())?;
        enqueue()?;
        Ok(stream.record(self.end.own()))
    }
}

impl Stream {
    /// Times the next copy on this stream.
    #[must_use]
    pub fn timed<'s>(&'s self, stopwatch: &'s Stopwatch) -> Timed<'s> {
        Timed {
            stream: self,
            stopwatch,
        }
    }
}
