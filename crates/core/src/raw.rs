//! The underlying driver and its handles, for libraries that build on Pinlane.
//!
//! Programs that only copy and launch do not need this. Pinlane does not track work submitted through these
//! handles, so the caller must not touch memory in flight.

use std::sync::Arc;

use pinlane_driver::Driver;

use crate::{Device, Stream};

/// The driver of a device: every call that CUDA, or the simulator, offers.
///
/// ```
/// # fn main() -> pinlane::Result<()> {
/// let device = pinlane::Device::sim("pcie3-x16")?;
/// let driver = pinlane::raw::driver(&device);
/// assert_eq!(driver.info().name, device.info().name);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn driver(device: &Device) -> &Arc<dyn Driver> {
    device.driver()
}

/// The driver's handle of a stream: a `CUstream` on a GPU. Valid until the last clone of the stream is
/// dropped.
#[must_use]
pub fn stream_handle(stream: &Stream) -> u64 {
    stream.expose()
}
