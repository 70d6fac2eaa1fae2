//! The GPUs that were asked for, each looked at before and under load.

use std::time::{Duration, Instant};

use pinlane::{Budget, Device};
use pinlane_driver::{DeviceInfo, Error, Platform};
use pinlane_model::{Direction, HostKind, Profile};

use super::files::Root;
use super::host::Host;
use super::pci::{self, PciGpu};
use crate::device::{self, Choice, Chosen};
use crate::nvml::{GpuState, Management};
use crate::pcie::Link;

/// Bytes of one copy that puts a link under load.
const LOAD_BYTES: usize = 16 << 20;

/// A link that has not come to its best by then will not.
const LOAD_TIME: Duration = Duration::from_millis(500);

/// The size of copies whose rate is told of a simulated link.
const RATE_BYTES: u64 = 32 << 20;

/// A GPU under load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Load {
    /// The best that the link came to.
    pub(crate) link: Option<Link>,
    /// Packets that were sent again meanwhile.
    pub(crate) replays: Option<u32>,
}

/// A GPU.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Gpu {
    pub(crate) info: DeviceInfo,
    /// As the kernel sees it.
    pub(crate) pci: Option<PciGpu>,
    /// As the management library saw it before it was put under load.
    pub(crate) state: GpuState,
    /// What came of putting it under load, or why that failed.
    pub(crate) load: Result<Load, String>,
    /// Of a simulated one: GB/s of pinned memory to the device and from it; `None` where copies take no
    /// time.
    pub(crate) rates_gb_per_s: Option<[Option<f64>; 2]>,
}

/// What became of `--device`.
#[derive(Debug)]
pub(crate) struct Gpus {
    pub(crate) gpus: Vec<Gpu>,
    /// How many CUDA sees, of which `gpus` may be a part.
    pub(crate) count: usize,
    /// Why there are none.
    pub(crate) absent: Option<Error>,
    /// Whether a real one was asked for by name.
    pub(crate) demanded: bool,
    /// Version of the driver, or why the management library cannot be asked.
    pub(crate) management: Result<Option<String>, String>,
}

impl Gpus {
    /// `auto` is every GPU there is.
    pub(crate) fn find(choice: &Choice, host: &Host, root: Root<'_>) -> Self {
        match choice {
            Choice::Auto => match device::cuda(0) {
                Ok(platform) => Self::real(&platform, None, false, host, root),
                Err(error) => Self::none(error, false),
            },
            Choice::Cuda(ordinal) => match device::cuda(*ordinal) {
                Ok(platform) => Self::real(&platform, Some(*ordinal), true, host, root),
                Err(error) => Self::none(error, true),
            },
            Choice::Sim(named) => Self::simulated(&named.profile),
        }
    }

    fn none(error: Error, demanded: bool) -> Self {
        Self {
            gpus: Vec::new(),
            count: 0,
            absent: Some(error),
            demanded,
            management: Err("no GPU".to_owned()),
        }
    }

    fn real(
        platform: &dyn Platform,
        only: Option<u32>,
        demanded: bool,
        host: &Host,
        root: Root<'_>,
    ) -> Self {
        let infos = match platform.devices() {
            Ok(infos) => infos,
            Err(error) => return Self::none(error, demanded),
        };
        let management = Management::open();
        let count = infos.len();
        let wanted = infos
            .into_iter()
            .filter(|info| only.is_none_or(|only| info.ordinal == only));
        let gpus = wanted.map(|info| {
            // What a stand-in for libcuda says of the bus is made up.
            let real = info.pci.filter(|_| info.simulated.is_none());
            let asked = real.zip(management.as_ref().ok());
            let ask_link = || {
                let of_library = asked.and_then(|(pci, library)| library.link(pci));
                of_library.or_else(|| pci::read(root, real?.to_string()).link())
            };
            let ask_all =
                || asked.map_or_else(GpuState::default, |(pci, library)| library.state(pci));
            let state = ask_all();
            let load = put_under_load(platform, info.ordinal, &ask_link).map(|link| {
                let replays = asked.and_then(|(pci, library)| library.replays(pci));
                Load {
                    link,
                    replays: replays
                        .zip(state.replays)
                        .map(|(after, before)| after.saturating_sub(before)),
                }
            });
            Gpu {
                pci: real.and_then(|pci| host.pci_gpu(&pci.to_string()).cloned()),
                info,
                state,
                load,
                rates_gb_per_s: None,
            }
        });
        Self {
            gpus: gpus.collect(),
            count,
            absent: None,
            demanded,
            management: management.map(|library| library.driver_version()),
        }
    }

    fn simulated(profile: &Profile) -> Self {
        let chosen = Chosen::Sim(Box::new(profile.clone()));
        let target = device::start(chosen, |sim| sim.checks(false).record_timeline(false));
        let devices = target.platform().devices().unwrap_or_default();
        let rate = |direction| {
            let ns = profile.copy_ns(direction, HostKind::Pinned, RATE_BYTES);
            // Bytes a nanosecond are GB/s.
            (ns > 0).then(|| RATE_BYTES as f64 / ns as f64)
        };
        let rates = [rate(Direction::HostToDevice), rate(Direction::DeviceToHost)];
        let gpus = devices.into_iter().map(|info| Gpu {
            load: put_under_load(target.platform(), info.ordinal, &|| None).map(|link| Load {
                link,
                replays: None,
            }),
            info,
            pci: None,
            state: GpuState::default(),
            rates_gb_per_s: Some(rates),
        });
        let gpus: Vec<_> = gpus.collect();
        Self {
            count: gpus.len(),
            gpus,
            absent: None,
            demanded: false,
            management: Err("simulated".to_owned()),
        }
    }
}

/// Copies until the link is at its best, which an idle one is not, or the time is over.
fn put_under_load(
    platform: &dyn Platform,
    ordinal: u32,
    link: &dyn Fn() -> Option<Link>,
) -> Result<Option<Link>, String> {
    let words = |error: pinlane::Error| error.to_string();
    let driver = platform.open(ordinal).map_err(|error| error.to_string())?;
    // A wrong PINLANE_PINNED_LIMIT is told by another check.
    let budget = Budget::with_limit(2 * LOAD_BYTES as u64);
    let device = Device::with_budget(driver, &budget);
    let stream = device.stream().map_err(words)?;
    let mut target = device.alloc::<u8>(LOAD_BYTES).map_err(words)?;
    let mut source = device.pinned::<u8>(LOAD_BYTES).map_err(words)?;
    let began = Instant::now();
    loop {
        let copy = stream
            .upload(source, &mut target)
            .map_err(|e| e.to_string())?;
        source = copy.wait().map_err(|e| e.to_string())?;
        let link = link();
        let best = link.is_none_or(|link| link.generation >= link.max_generation);
        if best || began.elapsed() > LOAD_TIME {
            return Ok(link);
        }
    }
}
