//! Settings from environment variables.

use std::collections::BTreeSet;
use std::env;
use std::path::PathBuf;
use std::sync::OnceLock;

use pinlane_model::Profile;
use pinlane_sim::profile_named;

/// The CUDA version whose symbols this library exports.
pub const NEWEST_VERSION: u32 = 13000;

/// The configuration of the simulated machine.
pub struct Settings {
    /// Link and device.
    pub profile: Profile,
    /// Number of devices.
    pub devices: u32,
    /// Result of `cuDriverGetVersion`.
    pub version: u32,
    /// Names that `cuGetProcAddress` does not find.
    pub omit: BTreeSet<String>,
    /// Injected failure.
    pub fail: Fail,
    /// Seed of an adversarial schedule.
    pub seed: Option<u64>,
}

/// An injected failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fail {
    /// Nothing.
    Never,
    /// Contexts cannot be created, as if another process held the GPU in exclusive mode.
    Busy,
    /// The GPU is lost after this many calls.
    LostAfter(u64),
}

/// The settings of this process, or why they are invalid.
pub fn settings() -> Result<&'static Settings, &'static str> {
    static SETTINGS: OnceLock<Result<Settings, String>> = OnceLock::new();
    let parsed = SETTINGS.get_or_init(|| {
        let settings = Settings::parse(|name| env::var(name).ok());
        if let Err(reason) = &settings {
            eprintln!("pinlane simcuda: {reason}");
        }
        settings
    });
    parsed.as_ref().map_err(String::as_str)
}

/// The report's file. Read separately, so that a report is written even if other settings are
/// invalid.
pub fn report_path() -> Option<PathBuf> {
    static PATH: OnceLock<Option<PathBuf>> = OnceLock::new();
    PATH.get_or_init(|| env::var_os("PINLANE_SIMCUDA_REPORT").map(PathBuf::from))
        .clone()
}

impl Settings {
    /// Parses the settings; `variable` looks up an environment variable.
    fn parse(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let number = |name: &str| -> Result<Option<u64>, String> {
            let Some(text) = variable(name) else {
                return Ok(None);
            };
            let parsed = text.trim().parse().map(Some);
            parsed.map_err(|_| format!("{name}={text}: not a number"))
        };
        let devices = number("PINLANE_SIMCUDA_DEVICES")?.unwrap_or(1);
        let version = number("PINLANE_SIMCUDA_VERSION")?.unwrap_or(NEWEST_VERSION.into());
        if !(1000..=u64::from(NEWEST_VERSION)).contains(&version) {
            return Err(format!(
                "PINLANE_SIMCUDA_VERSION={version}: must be between 1000 and {NEWEST_VERSION}"
            ));
        }
        let omit = variable("PINLANE_SIMCUDA_OMIT").unwrap_or_default();
        let profile = variable("PINLANE_SIMCUDA_PROFILE").unwrap_or("h200".to_owned());
        Ok(Self {
            profile: profile_named(&profile)
                .map_err(|error| format!("PINLANE_SIMCUDA_PROFILE={profile}: {error}"))?,
            devices: u32::try_from(devices)
                .map_err(|_| format!("PINLANE_SIMCUDA_DEVICES={devices}: too many"))?,
            version: version as u32,
            omit: items(&omit),
            fail: fail(variable("PINLANE_SIMCUDA_FAIL").as_deref())?,
            seed: number("PINLANE_SIMCUDA_SEED")?,
        })
    }
}

/// The items of a comma-separated list.
fn items(list: &str) -> BTreeSet<String> {
    let items = list.split(',').map(str::trim);
    let items = items.filter(|item| !item.is_empty());
    items.map(String::from).collect()
}

fn fail(word: Option<&str>) -> Result<Fail, String> {
    match word {
        None | Some("") => Ok(Fail::Never),
        Some("busy") => Ok(Fail::Busy),
        Some(other) => {
            let calls = other
                .strip_prefix("lost:")
                .and_then(|calls| calls.parse().ok());
            calls.map(Fail::LostAfter).ok_or_else(|| {
                format!("PINLANE_SIMCUDA_FAIL={other}: must be busy, or lost:N with a number")
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<Settings, String> {
        Settings::parse(|name| {
            let pair = pairs
                .iter()
                .find(|pair| name == format!("PINLANE_SIMCUDA_{}", pair.0));
            pair.map(|pair| pair.1.to_owned())
        })
    }

    #[test]
    fn the_default_is_one_h200_of_the_newest_version() {
        let settings = parse(&[]).unwrap();
        assert_eq!(settings.profile.name, "h200");
        assert_eq!((settings.devices, settings.version), (1, NEWEST_VERSION));
        assert_eq!((settings.fail, settings.seed), (Fail::Never, None));
        assert!(settings.omit.is_empty());
    }

    #[test]
    fn each_variable_is_read() {
        let settings = parse(&[
            ("PROFILE", "null"),
            ("DEVICES", "3"),
            ("VERSION", "11020"),
            ("OMIT", "cuMemAllocAsync, cuMemcpyBatchAsync"),
            ("FAIL", "lost:7"),
            ("SEED", "5"),
        ])
        .unwrap();
        assert_eq!(settings.profile.name, "null");
        assert_eq!((settings.devices, settings.version), (3, 11020));
        assert!(settings.omit.contains("cuMemcpyBatchAsync"));
        assert_eq!(
            (settings.fail, settings.seed),
            (Fail::LostAfter(7), Some(5))
        );
    }

    #[test]
    fn errors_name_variable_and_value() {
        for (name, value) in [
            ("PROFILE", "no-such"),
            ("DEVICES", "many"),
            ("VERSION", "14000"),
            ("FAIL", "often"),
            ("SEED", "x"),
        ] {
            let reason = parse(&[(name, value)]).err().expect("refused");
            assert!(reason.contains(name) && reason.contains(value), "{reason}");
        }
    }
}
