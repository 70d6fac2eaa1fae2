//! Records what the streams of a program do, measured or simulated, and draws it.
//!
//! ```
//! # fn main() -> pinlane::Result<()> {
//! use pinlane::Device;
//! use pinlane::record::Recorder;
//!
//! let (device, recorder) = Recorder::new(&Device::sim("h200")?); // instead of Device::sim("h200")?
//! let stream = device.stream()?;
//! let mut on_device = device.alloc::<f32>(1 << 20)?;
//! let there = stream.upload(device.pinned::<f32>(1 << 20)?, &mut on_device)?;
//! stream.download(&on_device, there.wait()?)?.wait()?;
//!
//! let recording = recorder.finish("There and back")?;
//! println!("{recording}"); // the chronogram; recording.save("back.svg") draws it
//! # assert_eq!(recording.timeline().spans().len(), 2);
//! # assert!(recording.to_string().contains("SIMULATED"));
//! # Ok(())
//! # }
//! ```
//!
//! The recorder puts timing events around all work that goes onto a stream: copies, kernels, memsets. That costs
//! a few microseconds per operation, on the host and on the device.

mod hook;
mod recording;

use std::sync::Arc;

use pinlane_core::{Device, Result};
use pinlane_driver::Intercepted;

use hook::EventHook;
pub use recording::Recording;

/// Records the work of one device. See the [crate's documentation](crate).
#[derive(Debug)]
pub struct Recorder {
    device: Device,
    hook: Arc<EventHook>,
}

impl Recorder {
    /// Returns a device like this one, whose streams are recorded. Work of the original is not.
    #[must_use]
    pub fn new(device: &Device) -> (Device, Self) {
        let hook = Arc::new(EventHook::new(pinlane_core::raw::driver(device)));
        let driver = Intercepted::new(
            Arc::clone(pinlane_core::raw::driver(device)),
            Arc::clone(&hook),
        );
        let device = Device::with_budget(Arc::new(driver), device.budget());
        let recorder = Self {
            device: device.clone(),
            hook,
        };
        (device, recorder)
    }

    /// Waits for the device and returns what ran since the recorder was created or last finished.
    ///
    /// # Errors
    /// If the device failed, or if an event could not be recorded.
    pub fn finish(&self, title: &str) -> Result<Recording> {
        self.device.synchronize()?;
        Ok(Recording::new(
            title,
            self.device.info(),
            self.hook.spans()?,
        ))
    }
}
