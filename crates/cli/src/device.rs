//! Which device the user means, and opening it.

use std::path::Path;

use anyhow::Context;
use pinlane_cuda::Cuda;
use pinlane_driver::{Error, ErrorKind, Platform};
use pinlane_model::Profile;
use pinlane_sim::{Sim, SimBuilder};

use crate::output::{self, UsageError};
use crate::profile::{self, Named};

/// What `auto` takes where there is no GPU.
const FALLBACK_PROFILE: &str = "pcie3-x16";

/// What `--device` says.
#[derive(Clone)]
pub(crate) enum Choice {
    Auto,
    Cuda(u32),
    Sim(Box<Named>),
}

impl Choice {
    /// The file that says what to simulate.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Sim(named) => named.file.as_deref(),
            Self::Auto | Self::Cuda(_) => None,
        }
    }
}

/// What `--device` comes to on this machine.
pub(crate) enum Chosen {
    Cuda { platform: Cuda, ordinal: u32 },
    Sim(Box<Profile>),
}

/// A device to work with.
pub(crate) enum Target {
    Cuda { platform: Cuda, ordinal: u32 },
    Sim(Sim),
}

impl Target {
    pub(crate) fn platform(&self) -> &dyn Platform {
        match self {
            Self::Cuda { platform, .. } => platform,
            Self::Sim(sim) => sim,
        }
    }

    pub(crate) fn ordinal(&self) -> u32 {
        match self {
            Self::Cuda { ordinal, .. } => *ordinal,
            Self::Sim(_) => 0,
        }
    }

    /// The simulated machine, where it is one.
    pub(crate) fn sim(&self) -> Option<&Sim> {
        match self {
            Self::Cuda { .. } => None,
            Self::Sim(sim) => Some(sim),
        }
    }
}

/// The meaning of `--device`. A profile file is read here, so that a wrong one is a wrong word.
pub(crate) fn parse(text: &str) -> Result<Choice, String> {
    let (kind, rest) = match text.split_once(':') {
        Some((kind, rest)) => (kind, Some(rest)),
        None => (text, None),
    };
    match (kind, rest) {
        ("auto", None) => Ok(Choice::Auto),
        ("cuda", None) => Ok(Choice::Cuda(0)),
        ("cuda", Some(number)) => number
            .parse()
            .map(Choice::Cuda)
            .map_err(|_| format!("`{number}` is no device number; write cuda:0, cuda:1, …")),
        ("sim", None) => profile(FALLBACK_PROFILE),
        ("sim", Some(name)) => profile(name),
        _ => Err("write auto, cuda, cuda:N, sim, sim:PROFILE or sim:FILE".to_owned()),
    }
}

fn profile(name: &str) -> Result<Choice, String> {
    Ok(Choice::Sim(Box::new(profile::named(name)?)))
}

/// Open what the user chose. `prepare` sets up a simulated machine; `for_sim_only` names a flag
/// that makes no sense on a real GPU.
pub(crate) fn open(
    choice: &Choice,
    prepare: impl FnOnce(SimBuilder) -> SimBuilder,
    for_sim_only: Option<&str>,
) -> anyhow::Result<Target> {
    let target = start(choose(choice)?, prepare);
    match (for_sim_only, target.sim()) {
        (Some(flag), None) => Err(UsageError::new(format!(
            "{flag} needs a simulated device; add --device sim"
        ))
        .into()),
        _ => Ok(target),
    }
}

/// Open what was chosen.
pub(crate) fn start(chosen: Chosen, prepare: impl FnOnce(SimBuilder) -> SimBuilder) -> Target {
    match chosen {
        Chosen::Cuda { platform, ordinal } => Target::Cuda { platform, ordinal },
        Chosen::Sim(profile) => Target::Sim(prepare(Sim::builder().profile(*profile)).build()),
    }
}

/// Open what the user chose, to take times on it; with its profile where it is simulated.
pub(crate) fn start_to_measure(choice: &Choice) -> anyhow::Result<(Target, Option<Profile>)> {
    let chosen = choose(choice)?;
    let profile = match &chosen {
        Chosen::Sim(profile) => Some(profile.as_ref().clone()),
        Chosen::Cuda { .. } => None,
    };
    // The checks look for mistakes of the caller by hashing every buffer in flight. The library
    // rules those out, and hashing costs more than copying.
    let target = start(chosen, |sim| sim.checks(false).record_timeline(false));
    Ok((target, profile))
}

/// What the user chose, with nothing opened on it. Where `auto` finds no GPU it says so.
pub(crate) fn choose(choice: &Choice) -> anyhow::Result<Chosen> {
    match choice {
        Choice::Cuda(ordinal) => Ok(Chosen::Cuda {
            platform: cuda(*ordinal).with_context(|| {
                let which = match ordinal {
                    0 => String::new(),
                    number => format!(":{number}"),
                };
                format!("--device cuda{which} cannot be used; choose --device sim to simulate one")
            })?,
            ordinal: *ordinal,
        }),
        Choice::Sim(named) => Ok(Chosen::Sim(Box::new(named.profile.clone()))),
        Choice::Auto => match cuda(0) {
            Ok(platform) => Ok(Chosen::Cuda {
                platform,
                ordinal: 0,
            }),
            Err(error) => {
                let reason = error.to_string().replace('\n', " ");
                output::complain(&format!("no GPU: {reason}; using sim:{FALLBACK_PROFILE}"));
                let profile = Profile::builtin(FALLBACK_PROFILE).expect("a built-in profile");
                Ok(Chosen::Sim(Box::new(profile)))
            }
        },
    }
}

/// CUDA, if it has a device of this number.
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
    fn every_form_is_understood() {
        assert!(matches!(parse("auto"), Ok(Choice::Auto)));
        assert!(matches!(parse("cuda"), Ok(Choice::Cuda(0))));
        assert!(matches!(parse("cuda:3"), Ok(Choice::Cuda(3))));
        for (text, name) in [("sim", "pcie3-x16"), ("sim:h200", "h200")] {
            match parse(text) {
                Ok(Choice::Sim(named)) => assert_eq!(named.profile.name, name),
                _ => panic!("{text} is a simulated device"),
            }
        }
    }

    #[test]
    fn other_words_are_refused() {
        for text in [
            "",
            "gpu",
            "cuda:",
            "cuda:x",
            "cuda:-1",
            "auto:1",
            "sim:",
            "sim:no-such",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
