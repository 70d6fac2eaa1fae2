//! Where figures come from.

use serde::Serialize;

/// The device behind a report.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
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

    /// One line, without its end: SIMULATED and the profile, or the device.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Self::Measured { device } => format!("Measured on {device}"),
            Self::Simulated { profile, .. } => {
                format!("SIMULATED: sim:{profile}, not a real GPU")
            }
        }
    }
}
