//! Where figures come from.

use serde::{Deserialize, Serialize};

/// The device behind a report.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "origin", rename_all_fields = "snake_case")]
pub enum Origin {
    /// A real device.
    #[serde(rename = "MEASURED")]
    Measured {
        /// Its name.
        device: String,
    },
    /// A simulated device: nothing of it is a measurement.
    #[serde(rename = "SIMULATED")]
    Simulated {
        /// Its name.
        device: String,
        /// Name of the profile that its figures come from.
        profile: String,
    },
    /// No device at all: the model computed it from a profile.
    #[serde(rename = "COMPUTED")]
    Computed {
        /// The device that the profile describes.
        device: String,
        /// Name of the profile.
        profile: String,
        /// Whether the profile is that of a simulated device.
        simulated: bool,
    },
}

impl Origin {
    /// The origin of what this device says; `profile` for a simulated one.
    #[must_use]
    pub fn new(device: impl Into<String>, profile: Option<String>) -> Self {
        let device = device.into();
        match profile {
            None => Self::Measured { device },
            Some(profile) => Self::Simulated { device, profile },
        }
    }

    /// The origin of what the model computed for this device from this profile.
    #[must_use]
    pub fn computed(
        device: impl Into<String>,
        profile: impl Into<String>,
        simulated: bool,
    ) -> Self {
        Self::Computed {
            device: device.into(),
            profile: profile.into(),
            simulated,
        }
    }

    /// One line, without its end: the device, or SIMULATED and the profile, or that it is computed.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Self::Measured { device } => format!("Measured on {device}"),
            Self::Simulated { profile, .. } => {
                format!("SIMULATED: sim:{profile}, not a real GPU")
            }
            Self::Computed {
                profile,
                simulated: true,
                ..
            } => format!("SIMULATED: sim:{profile}, computed by the model, not measured"),
            Self::Computed { profile, .. } => {
                format!("Computed by the model from profile {profile}, not measured")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_says_what_was_at_work() {
        for (origin, line) in [
            (Origin::new("NVIDIA H200", None), "Measured on NVIDIA H200"),
            (
                Origin::new("GPU", Some("pcie3-x16".into())),
                "SIMULATED: sim:pcie3-x16, not a real GPU",
            ),
            (
                Origin::computed("NVIDIA H200", "h200", false),
                "Computed by the model from profile h200, not measured",
            ),
            (
                Origin::computed("GPU", "pcie3-x16", true),
                "SIMULATED: sim:pcie3-x16, computed by the model, not measured",
            ),
        ] {
            assert_eq!(origin.line(), line);
        }
    }
}
