//! Opening a device by number or by name.

use crate::{Device, Error, Result};

impl Device {
    /// Opens a CUDA GPU by its ordinal, in the order of `CUDA_VISIBLE_DEVICES`.
    #[cfg(feature = "cuda")]
    pub fn cuda(ordinal: u32) -> Result<Self> {
        Self::open(&pinlane_cuda::Cuda::load()?, ordinal)
    }

    /// Opens a simulated GPU: a built-in profile (`h200`, `pcie3-x16`, …) or the path of a profile file
    /// that `pinlane calibrate` wrote.
    ///
    /// ```
    /// let device = pinlane::Device::sim("h200")?;
    /// assert!(device.info().simulated.is_some());
    /// # Ok::<(), pinlane::Error>(())
    /// ```
    #[cfg(feature = "sim")]
    pub fn sim(profile: &str) -> Result<Self> {
        let sim = pinlane_sim::Sim::named(profile).map_err(|error| Error::UnknownDevice {
            name: format!("sim:{profile}"),
            reason: error.to_string(),
        })?;
        Self::open(&sim, 0)
    }

    /// Opens a device by the name that the tool's `--device` takes: `auto` or `cuda` for the first CUDA GPU,
    /// `cuda:N`, `sim`, `sim:PROFILE` or `sim:FILE`. Never falls back to the simulator.
    ///
    /// ```
    /// let device = pinlane::Device::named("sim:h200")?;
    /// # drop(device);
    /// assert!(pinlane::Device::named("gpu").is_err());
    /// # Ok::<(), pinlane::Error>(())
    /// ```
    pub fn named(name: &str) -> Result<Self> {
        let unknown = |reason: &str| Error::UnknownDevice {
            name: name.to_owned(),
            reason: reason.to_owned(),
        };
        let (kind, rest) = match name.split_once(':') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (name, None),
        };
        match (kind, rest) {
            #[cfg(feature = "cuda")]
            ("auto" | "cuda", None) => Self::cuda(0),
            #[cfg(feature = "cuda")]
            ("cuda", Some(number)) => match number.parse() {
                Ok(ordinal) => Self::cuda(ordinal),
                Err(_) => Err(unknown("the number of a GPU is needed, as in cuda:1")),
            },
            #[cfg(not(feature = "cuda"))]
            ("auto" | "cuda", _) => Err(unknown("the feature `cuda` of pinlane is off")),
            #[cfg(feature = "sim")]
            ("sim", profile) => Self::sim(profile.unwrap_or("pcie3-x16")),
            #[cfg(not(feature = "sim"))]
            ("sim", _) => Err(unknown("the feature `sim` of pinlane is off")),
            _ => Err(unknown(
                "use auto, cuda, cuda:N, sim, sim:PROFILE or sim:FILE",
            )),
        }
    }
}
