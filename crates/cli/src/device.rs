//! The `--device` flag, and opening what it names.

use std::path::Path;

use anyhow::Context;
use pinlane::Device;
use pinlane_cuda::Cuda;
use pinlane_driver::{DeviceInfo, Error, ErrorKind, Platform};
use pinlane_model::Profile;
use pinlane_report::Origin;
use pinlane_sim::{Sim, SimBuilder};

use crate::output;
use crate::profile::{self, ProfileFile};

/// The profile that `auto` simulates without a GPU.
const FALLBACK_PROFILE: &str = "pcie3-x16";

#[derive(Clone)]
pub(crate) enum DeviceChoice {
    Auto,
    Cuda(u32),
    Sim(Box<ProfileFile>),
}

pub(crate) struct Backend {
    pub(crate) platform: Box<dyn Platform>,
    pub(crate) ordinal: u32,
    pub(crate) sim: Option<Sim>,
    pub(crate) profile: Option<Profile>,
}

impl DeviceChoice {
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Sim(profile) => profile.file.as_deref(),
            Self::Auto | Self::Cuda(_) => None,
        }
    }

    /// Opens the backend. `configure` sets up a simulated machine. Prints a note if `auto` finds no GPU.
    pub(crate) fn open(
        &self,
        configure: impl FnOnce(SimBuilder) -> SimBuilder,
    ) -> anyhow::Result<Backend> {
        match self {
            Self::Cuda(ordinal) => Backend::cuda(*ordinal).with_context(|| {
                let number = match ordinal {
                    0 => String::new(),
                    number => format!(":{number}"),
                };
                format!("cannot use --device cuda{number}; use --device sim to simulate a GPU")
            }),
            Self::Sim(named) => Ok(Backend::simulated(named.profile.clone(), configure)),
            Self::Auto => Ok(Backend::cuda(0).unwrap_or_else(|error| {
                output::complain(&match output::is_verbose() {
                    true => {
                        let reason = error.to_string().replace('\n', " ");
                        format!("no GPU: {reason}; using sim:{FALLBACK_PROFILE}")
                    }
                    false => format!("no GPU; using sim:{FALLBACK_PROFILE} (-v says why)"),
                });
                let profile = Profile::builtin(FALLBACK_PROFILE).expect("a built-in profile");
                Backend::simulated(profile, configure)
            })),
        }
    }

    /// The device that [`open`](Self::open) finds, if there is one.
    pub(crate) fn info(&self) -> Option<DeviceInfo> {
        let simulated = |profile| Backend::simulated(profile, for_timing);
        let backend = match self {
            Self::Cuda(ordinal) => Backend::cuda(*ordinal).ok()?,
            Self::Sim(named) => simulated(named.profile.clone()),
            Self::Auto => {
                let fallback = || Some(simulated(Profile::builtin(FALLBACK_PROFILE)?));
                Backend::cuda(0).ok().or_else(fallback)?
            }
        };
        let mut devices = backend.platform.devices().ok()?.into_iter();
        devices.find(|info| info.ordinal == backend.ordinal)
    }

    pub(crate) fn open_for_timing(&self) -> anyhow::Result<Backend> {
        self.open(for_timing)
    }
}

/// Turns off what would slow a simulated machine down. The checks hash every buffer in flight to find
/// mistakes of the caller, which the library rules out; hashing costs more than copying.
pub(crate) fn for_timing(sim: SimBuilder) -> SimBuilder {
    sim.checks(false).record_timeline(false)
}

impl Backend {
    pub(crate) fn simulated(
        profile: Profile,
        configure: impl FnOnce(SimBuilder) -> SimBuilder,
    ) -> Self {
        let sim = configure(Sim::builder().profile(profile.clone())).build();
        Self {
            platform: Box::new(sim.clone()),
            ordinal: 0,
            sim: Some(sim),
            profile: Some(profile),
        }
    }

    fn cuda(ordinal: u32) -> pinlane_driver::Result<Self> {
        Ok(Self {
            platform: Box::new(cuda(ordinal)?),
            ordinal,
            sim: None,
            profile: None,
        })
    }

    pub(crate) fn device(&self) -> pinlane::Result<Device> {
        let device = Device::open(&*self.platform, self.ordinal)?;
        // Here, an invalid PINLANE_PINNED_LIMIT gets no advice about sizes.
        device.budget().limit_bytes()?;
        Ok(device)
    }

    /// The profile of a simulated device, if known: a simulated libcuda reports only its name.
    pub(crate) fn profile_of(&self, device: &Device) -> Option<Profile> {
        let name = device.info().simulated.as_ref()?;
        self.profile.clone().or_else(|| Profile::builtin(name))
    }
}

/// The device as reports name it.
pub(crate) fn origin(info: &DeviceInfo) -> Origin {
    Origin::new(&info.name, info.simulated.clone())
}

/// Parses `--device`. Reads a profile file here, so that an invalid one is an invalid argument.
pub(crate) fn parse(text: &str) -> Result<DeviceChoice, String> {
    let simulated = |name| Ok(DeviceChoice::Sim(Box::new(profile::named(name)?)));
    match text
        .split_once(':')
        .map_or((text, None), |(kind, rest)| (kind, Some(rest)))
    {
        ("auto", None) => Ok(DeviceChoice::Auto),
        ("cuda", None) => Ok(DeviceChoice::Cuda(0)),
        ("cuda", Some(number)) => number
            .parse()
            .map(DeviceChoice::Cuda)
            .map_err(|_| format!("`{number}` is not a device number; use cuda:0, cuda:1, …")),
        ("sim", name) => simulated(name.unwrap_or(FALLBACK_PROFILE)),
        _ => Err("use auto, cuda, cuda:N, sim, sim:PROFILE or sim:FILE".to_owned()),
    }
}

/// Loads CUDA. Fails unless it has a device with this number.
pub(crate) fn cuda(ordinal: u32) -> pinlane_driver::Result<Cuda> {
    let platform = Cuda::load()?;
    let count = platform.devices()?.len() as u32;
    let kind = match count {
        0 => ErrorKind::NoDevice,
        _ if ordinal >= count => ErrorKind::NoSuchDevice { ordinal, count },
        _ => return Ok(platform),
    };
    Err(Error::new(kind, "cuDeviceGetCount"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_parsed() {
        assert!(matches!(parse("auto"), Ok(DeviceChoice::Auto)));
        assert!(matches!(parse("cuda"), Ok(DeviceChoice::Cuda(0))));
        assert!(matches!(parse("cuda:3"), Ok(DeviceChoice::Cuda(3))));
        for (text, name) in [("sim", "pcie3-x16"), ("sim:h200", "h200")] {
            match parse(text) {
                Ok(DeviceChoice::Sim(named)) => assert_eq!(named.profile.name, name),
                _ => panic!("{text} is a simulated device"),
            }
        }
    }

    #[test]
    fn invalid_devices_are_rejected() {
        for text in ["", "gpu", "cuda:", "cuda:x", "cuda:-1", "auto:1", "sim:"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("sim:no-such").is_err());
    }
}
