//! Facts about the chosen GPUs, idle and under load.

use std::time::{Duration, Instant};

use pinlane::{Budget, Device};
use pinlane_driver::{DeviceInfo, Error, Platform};
use pinlane_model::{Direction, HostKind, Profile};

use super::host::HostFacts;
use crate::device::{self, Backend, DeviceChoice};
use crate::system::SystemRoot;
use crate::system::nvml::{GpuState, Management};
use crate::system::pci::{self, Link, PciGpu};

const LOAD_BYTES: usize = 16 << 20;

/// A link that is not at full speed by then will not get there.
const LOAD_TIME: Duration = Duration::from_millis(500);

/// The size of the copies whose rate is reported for a simulated link.
const RATE_BYTES: u64 = 32 << 20;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LoadedLink {
    pub(crate) link: Option<Link>,
    /// Packets resent meanwhile.
    pub(crate) replays: Option<u32>,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Gpu {
    pub(crate) info: DeviceInfo,
    /// From the kernel.
    pub(crate) pci: Option<PciGpu>,
    /// From the management library, before the load.
    pub(crate) state: GpuState,
    /// The link under load, or why the GPU cannot be used.
    pub(crate) load: Result<LoadedLink, String>,
    /// For a simulated GPU: GB/s of pinned memory to and from the device; `None` if copies take no time.
    pub(crate) rates_gb_per_s: Option<[Option<f64>; 2]>,
}

#[derive(Debug)]
pub(crate) struct GpuFacts {
    pub(crate) gpus: Vec<Gpu>,
    /// All GPUs that CUDA sees; `gpus` may be a part of them.
    pub(crate) count: usize,
    /// Why there are none.
    pub(crate) error: Option<Error>,
    /// Whether `--device` names a real GPU.
    pub(crate) required: bool,
    /// The driver version, or why the management library does not work.
    pub(crate) management: Result<Option<String>, String>,
}

impl GpuFacts {
    /// `auto` means all GPUs.
    pub(crate) fn find(choice: &DeviceChoice, host: &HostFacts, root: SystemRoot<'_>) -> Self {
        match choice {
            DeviceChoice::Auto => Self::real(None, host, root),
            DeviceChoice::Cuda(ordinal) => Self::real(Some(*ordinal), host, root),
            DeviceChoice::Sim(named) => Self::simulated(&named.profile),
        }
    }

    pub(crate) fn none(error: Error, required: bool) -> Self {
        Self {
            gpus: Vec::new(),
            count: 0,
            error: Some(error),
            required,
            management: Err("no GPU".to_owned()),
        }
    }

    fn real(only: Option<u32>, host: &HostFacts, root: SystemRoot<'_>) -> Self {
        let required = only.is_some();
        let opened = device::cuda(only.unwrap_or(0));
        let (platform, infos) = match opened.and_then(|it| Ok((it.devices()?, it))) {
            Ok((infos, platform)) => (platform, infos),
            Err(error) => return Self::none(error, required),
        };
        let management = Management::open();
        let count = infos.len();
        let is_wanted = |info: &DeviceInfo| only.is_none_or(|only| info.ordinal == only);
        let wanted = infos.into_iter().filter(is_wanted);
        let gpus = wanted.map(|info| {
            // A simulated libcuda makes up its PCI address.
            let real = info.pci.filter(|_| info.simulated.is_none());
            let queried = real.zip(management.as_ref().ok());
            let query_link = || {
                let link = queried.and_then(|(pci, library)| library.link(pci));
                link.or_else(|| pci::read(root, real?.to_string()).link())
            };
            let state = queried.map_or_else(GpuState::default, |(pci, library)| library.state(pci));
            let load = load_link(&platform, info.ordinal, &query_link);
            let after = queried.and_then(|(pci, library)| library.replays(pci));
            let replays = after.zip(state.replays);
            let replays = replays.map(|(after, before)| after.saturating_sub(before));
            Gpu {
                pci: real.and_then(|pci| host.pci_gpu(&pci.to_string()).cloned()),
                info,
                state,
                load: loaded(load, replays),
                rates_gb_per_s: None,
            }
        });
        Self {
            gpus: gpus.collect(),
            count,
            error: None,
            required,
            management: management.map(|library| library.driver_version()),
        }
    }

    fn simulated(profile: &Profile) -> Self {
        let backend = Backend::simulated(profile.clone(), device::for_timing);
        let devices = backend.platform.devices().unwrap_or_default();
        let rate = |direction| {
            let ns = profile.copy_ns(direction, HostKind::Pinned, RATE_BYTES);
            // Bytes per nanosecond are GB/s.
            (ns > 0).then(|| RATE_BYTES as f64 / ns as f64)
        };
        let rates = [rate(Direction::HostToDevice), rate(Direction::DeviceToHost)];
        let gpus = devices.into_iter().map(|info| Gpu {
            load: loaded(load_link(&*backend.platform, info.ordinal, &|| None), None),
            info,
            pci: None,
            state: GpuState::default(),
            rates_gb_per_s: Some(rates),
        });
        let gpus: Vec<_> = gpus.collect();
        Self {
            count: gpus.len(),
            gpus,
            error: None,
            required: false,
            management: Err("simulated".to_owned()),
        }
    }
}

fn loaded(link: pinlane::Result<Option<Link>>, replays: Option<u32>) -> Result<LoadedLink, String> {
    match link {
        Ok(link) => Ok(LoadedLink { link, replays }),
        Err(error) => Err(error.to_string()),
    }
}

/// Copies until the link is at full speed, which an idle link is not, or the time is over.
fn load_link(
    platform: &dyn Platform,
    ordinal: u32,
    link: &dyn Fn() -> Option<Link>,
) -> pinlane::Result<Option<Link>> {
    let driver = platform.open(ordinal)?;
    // Another check reports an invalid PINLANE_PINNED_LIMIT.
    let budget = Budget::with_limit(2 * LOAD_BYTES as u64);
    let device = Device::with_budget(driver, &budget);
    let stream = device.stream()?;
    let mut target = device.alloc::<u8>(LOAD_BYTES)?;
    let mut source = device.pinned::<u8>(LOAD_BYTES)?;
    let start = Instant::now();
    loop {
        source = stream.upload(source, &mut target)?.wait()?;
        let link = link();
        let at_best = link.is_none_or(|link| link.generation >= link.max_generation);
        if at_best || start.elapsed() > LOAD_TIME {
            return Ok(link);
        }
    }
}
