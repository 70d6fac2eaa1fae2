//! What there is to know, gathered in one place, so that checks need no machine.

pub(crate) mod cpus;
pub(crate) mod files;
pub(crate) mod gpu;
pub(crate) mod host;
pub(crate) mod pci;

use std::path::Path;

use pinlane::Budget;

use self::files::Root;
use self::gpu::Gpus;
use self::host::Host;
use crate::device::Choice;

/// Everything that checks look at.
pub(crate) struct Facts {
    pub(crate) host: Host,
    pub(crate) gpus: Gpus,
}

impl Facts {
    /// Those of this machine and the devices that were chosen.
    pub(crate) fn gather(choice: &Choice) -> Self {
        let root = Root(Path::new("/"));
        let variable = |name: &str| Some(std::env::var_os(name)?.to_string_lossy().into_owned());
        let budget = Budget::process().limit_bytes();
        let budget = budget.map_err(|error| error.to_string());
        let host = Host::read(root, &variable, budget);
        let gpus = Gpus::find(choice, &host, root);
        Self { host, gpus }
    }
}
