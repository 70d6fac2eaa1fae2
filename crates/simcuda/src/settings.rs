//! What the environment says.

use std::collections::BTreeSet;
use std::env;
use std::path::PathBuf;
use std::sync::OnceLock;

use pinlane_model::Profile;

/// The version whose exports this library has.
pub const NEWEST_VERSION: u32 = 13000;

/// How the simulated machine is to look.
pub struct Settings {
    /// Link and device.
    pub profile: Profile,
    /// Number of devices.
    pub devices: u32,
    /// What `cuDriverGetVersion` says.
    pub version: u32,
    /// Names that `cuGetProcAddress` does not find.
    pub omit: BTreeSet<String>,
    /// What goes wrong on purpose.
    pub fail: Fail,
    /// Adversarial schedule, where there is a seed.
    pub seed: Option<u64>,
}

/// What goes wrong on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fail {
    /// Nothing.
    Never,
    /// Every context is refused, as by another process in exclusive mode.
    Busy,
    /// The GPU is lost after this many calls.
    LostAfter(u64),
}

/// The settings of this process, or what is wrong with them.
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

/// The file that the report goes to. Read apart from the rest, so that a report is written even
/// where the rest is wrong.
pub fn report_path() -> Option<PathBuf> {
    static PATH: OnceLock<Option<PathBuf>> = OnceLock::new();
    PATH.get_or_init(|| env::var_os("PINLANE_SIMCUDA_REPORT").map(PathBuf::from))
        .clone()
}

impl Settings {
    /// Reads the settings through `variable`, which knows the environment.
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
                "PINLANE_SIMCUDA_VERSION={version}: choose between 1000 and {NEWEST_VERSION}"
            ));
        }
        let omit = variable("PINLANE_SIMCUDA_OMIT").unwrap_or_default();
        Ok(Self {
            profile: profile(
                variable("PINLANE_SIMCUDA_PROFILE")
                    .as_deref()
                    .unwrap_or("h200"),
            )?,
            devices: u32::try_from(devices)
                .map_err(|_| format!("PINLANE_SIMCUDA_DEVICES={devices}: too many"))?,
            version: version as u32,
            omit: words(&omit),
            fail: fail(variable("PINLANE_SIMCUDA_FAIL").as_deref())?,
            seed: number("PINLANE_SIMCUDA_SEED")?,
        })
    }
}

/// The words of a comma list.
fn words(list: &str) -> BTreeSet<String> {
    let words = list.split(',').map(str::trim);
    words
        .filter(|word| !word.is_empty())
        .map(String::from)
        .collect()
}

/// A built-in profile, or one from a file.
fn profile(name: &str) -> Result<Profile, String> {
    if let Some(profile) = Profile::builtin(name) {
        return Ok(profile);
    }
    let text = std::fs::read_to_string(name).map_err(|error| {
        format!("PINLANE_SIMCUDA_PROFILE={name}: no built-in profile, and no file: {error}")
    })?;
    Profile::from_toml(&text).map_err(|error| format!("PINLANE_SIMCUDA_PROFILE={name}: {error}"))
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
                format!("PINLANE_SIMCUDA_FAIL={other}: choose busy, or lost:N with a number")
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
    fn a_wrong_value_is_named() {
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
