//! What made a report: the program, the driver and the machine.

use serde::Serialize;

/// When, with which software and on which machine a report was made. What is unknown is left out.
///
/// Reports do not hold it: [`to_json`](crate::Bench::to_json) and [`to_html`](crate::Bench::to_html)
/// take it, so that no output of the tool can forget it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Environment {
    /// Version of Pinlane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When the command started: UTC, ISO 8601, such as `2026-11-15T09:36:59Z`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The driver of the device, such as `CUDA 13.0 (NVIDIA 580.159.03)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Name of the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// Model of the host's CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// CPUs that this process may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u64>,
    /// Operating system and its kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
}

impl Environment {
    /// Without the device, for reports that used none.
    #[must_use]
    pub fn without_device(self) -> Self {
        Self {
            driver: None,
            gpu: None,
            ..self
        }
    }
}
