//! Everything that checks look at, gathered in one place, so that checks need no machine.

pub(super) mod gpu;
pub(super) mod host;

use pinlane::Budget;

use self::gpu::GpuFacts;
use self::host::HostFacts;
use crate::device::DeviceChoice;
use crate::system::SystemRoot;

pub(super) struct Facts {
    pub(super) host: HostFacts,
    pub(super) gpus: GpuFacts,
}

impl Facts {
    pub(super) fn gather(choice: &DeviceChoice) -> Self {
        let root = SystemRoot::real();
        let variable = |name: &str| Some(std::env::var_os(name)?.to_string_lossy().into_owned());
        let budget = Budget::process().limit_bytes();
        let budget = budget.map_err(|error| error.to_string());
        let host = HostFacts::read(root, &variable, budget);
        let gpus = GpuFacts::find(choice, &host, root);
        Self { host, gpus }
    }
}
