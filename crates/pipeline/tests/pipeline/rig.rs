//! A simulated device with what pipelines need.

use pinlane::pipeline::{Pipeline, PipelineConfig, PipelineOrder};
use pinlane::{Builtin, Device, Module};
use pinlane_sim::{Sim, SimBuilder};

use super::mixing_kernel;
use pinlane_testing::Trap;

pub const ORDERS: [PipelineOrder; 3] = [
    PipelineOrder::DepthFirst,
    PipelineOrder::BreadthFirst,
    PipelineOrder::StageStreams,
];

/// A device with its kernels.
pub struct Rig {
    pub sim: Sim,
    pub device: Device,
    pub module: Module,
    pub kernels: Builtin,
}

/// A machine of the textbook's speed, with the kernel of these tests.
pub fn builder() -> SimBuilder {
    Sim::builder()
        .profile(pinlane_testing::profile())
        .kernel(mixing_kernel::kernel())
}

impl Rig {
    pub fn new() -> Self {
        Self::on(builder())
    }

    pub fn on(builder: SimBuilder) -> Self {
        let sim = builder.build();
        let device = pinlane_testing::open(&sim);
        Self::with(sim, device).expect("the kernels load")
    }

    /// With a trap in the driver.
    pub fn trapped() -> (Self, Trap) {
        let sim = builder().build();
        let (device, trap) = Trap::under(&sim);
        (Self::with(sim, device).expect("the kernels load"), trap)
    }

    pub fn with(sim: Sim, device: Device) -> pinlane::Result<Self> {
        Ok(Self {
            module: device.load_ptx(mixing_kernel::PTX)?,
            kernels: Builtin::load(&device)?,
            sim,
            device,
        })
    }

    pub fn pipeline(&self, config: PipelineConfig) -> Pipeline {
        Pipeline::new(&self.device, config).expect("a valid setup")
    }

    /// The device holds nothing, nothing was misused, and nothing is left.
    #[track_caller]
    pub fn assert_clean(self) {
        let Self {
            sim,
            device,
            module,
            kernels,
        } = self;
        drop((module, kernels));
        device.synchronize().expect("the device is alive");
        pinlane_testing::assert_empty(&device);
        assert_eq!(
            device.take_stray_errors(),
            [],
            "errors that nobody was told"
        );
        drop(device);
        pinlane_testing::assert_clean(&sim);
    }
}

/// Chunks of so many bytes in this order, on two streams, with three slots.
pub fn config(order: PipelineOrder, chunk_bytes: usize) -> PipelineConfig {
    let mut config = PipelineConfig::default();
    config.order = order;
    config.chunk_bytes = chunk_bytes;
    config.streams = 2;
    config.slots = 3;
    config
}
