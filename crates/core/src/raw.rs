//! The driver underneath and its handles, for libraries that build on them.
//!
//! Programs that only copy and launch need nothing of this: what is submitted here is not tracked, and
//! using memory in flight is up to the caller.

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

/// The driver's number of a stream: a `CUstream` on a GPU. It is valid until the last clone of the
/// stream is dropped.
#[must_use]
pub fn stream_handle(stream: &Stream) -> u64 {
    stream.expose()
}
