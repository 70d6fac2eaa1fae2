//! The underlying driver and its handles, for libraries that build on Pinlane.
//!
//! Programs that only copy and launch do not need this. Pinlane does not track work submitted through these
//! handles, so the caller must not touch memory in flight.

use std::sync::Arc;

use pinlane_driver::Driver;

use crate::{Device, Stream};

/// The driver of a device: every call that CUDA, or the simulator, offers. For a device with another budget,
/// use [`Device::limited_to`].
///
/// ```
/// # fn main() -> pinlane::Result<()> {
/// let device = pinlane::Device::sim("pcie3-x16")?;
/// // SAFETY: only asks for properties.
/// let driver = unsafe { pinlane::raw::driver(&device) };
/// let (least, greatest) = driver.stream_priorities()?;
/// assert!(greatest < least); // lower numbers go first
/// # Ok(())
/// # }
/// ```
///
/// # Safety
/// The driver knows no policy, and its safe calls can break what Pinlane promises:
/// - Memory that it page-locks does not count against the budget. The caller reserves it first, with
///   [`Budget::reserve`](crate::Budget::reserve), or knows that the machine can spare it.
/// - What it creates belongs to the caller, who destroys it before the device is closed. What belongs to
///   Pinlane stays with it: the caller destroys none of that.
/// - A host callback must not call the driver, which may hang.
#[must_use]
pub unsafe fn driver(device: &Device) -> &Arc<dyn Driver> {
    device.driver()
}

/// The driver's handle of a stream: a `CUstream` on a GPU. Valid until the last clone of the stream is
/// dropped.
#[must_use]
pub fn stream_handle(stream: &Stream) -> u64 {
    stream.expose()
}
