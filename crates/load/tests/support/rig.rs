//! A simulated device for one test.

use pinlane::{Device, Stream};
use pinlane_sim::Sim;

/// A device that is checked at the end.
pub struct Rig {
    pub sim: Sim,
    pub device: Device,
    pub stream: Stream,
}

impl Rig {
    pub fn new() -> Self {
        let sim = pinlane_testing::sim();
        let device = pinlane_testing::open(&sim);
        Self::with(sim, device)
    }

    pub fn with(sim: Sim, device: Device) -> Self {
        let stream = device.stream().expect("a stream");
        Self {
            sim,
            device,
            stream,
        }
    }

    /// Nothing is allocated on the device, no misuse, no stray errors.
    #[track_caller]
    pub fn assert_clean(self) {
        let Self {
            sim,
            device,
            stream,
        } = self;
        drop(stream);
        device.synchronize().expect("the device is alive");
        pinlane_testing::assert_empty(&device);
        let stray = device.take_stray_errors();
        assert_eq!(stray, [], "stray errors");
        drop(device);
        pinlane_testing::assert_clean(&sim);
    }
}
