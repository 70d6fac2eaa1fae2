//! Where figures come from.

use serde::{Deserialize, Serialize};

/// The device of a report.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "origin", rename_all_fields = "snake_case")]
pub enum Origin {
    /// A real device.
    #[serde(rename = "MEASURED")]
    Measured {
        /// Its name.
        device: String,
    },
    /// A simulated device: nothing is measured.
    #[serde(rename = "SIMULATED")]
    Simulated {
        /// Its name.
        device: String,
        /// Name of its profile.
        profile: String,
    },
    /// No device: computed by the model from a profile.
    #[serde(rename = "COMPUTED")]
    Computed {
        /// The device that the profile describes.
        device: String,
        /// Name of the profile.
        profile: String,
        /// Whether the profile is of a simulated device.
        simulated: bool,
    },
}

impl Origin {
    /// The origin of a run on this device; with a `profile` if it is simulated.
    #[must_use]
    pub fn new(device: impl Into<String>, profile: Option<String>) -> Self {
        let device = device.into();
        match profile {
            None => Self::Measured { device },
            Some(profile) => Self::Simulated { device, profile },
        }
    }

    /// The origin of a prediction for this device by its profile.
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

    /// Whether the figures are measurements of a real device.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        matches!(self, Self::Measured { .. })
    }

    /// One line without newline: the device, or SIMULATED and the profile, or that it is computed.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Self::Measured { device } => format!("Measured on {device}"),
            Self::Simulated { profile, .. } => format!("SIMULATED: sim:{profile}, not a real GPU"),
            Self::Computed {
                profile, simulated, ..
            } => match simulated {
                true => format!("SIMULATED: sim:{profile}, computed by the model, not measured"),
                false => format!("Computed by the model from profile {profile}, not measured"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_names_its_origin() {
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
