//! Measures a machine and writes down what the model needs to know about it.
//!
//! ```text
//!   calibrate   the device's facts, and all parts below       (this file)
//!     bench     streams, buffers, events, the host's clock
//!     copies    pinned and pageable curves, both ways at once
//!     kernels   launches, device memory, hand-over between engines
//!     calls     what calls cost the host
//!     pinning   what page-locking costs
//!     lanes     the express lane
//!     files     threads that read files
//!     fit       from times to curves
//! ```

mod bench;
mod calls;
mod copies;
#[cfg(feature = "load")]
mod files;
mod fit;
mod kernels;
mod lanes;
mod pinning;

use pinlane_model::{DeviceFacts, PciFacts, Profile};

use bench::Bench;
use pinlane_core::{Device, Error, Result};

/// Measures the machine: some seconds on a GPU. `clock` tells the host's time in nanoseconds: the
/// time of day will do on a real machine, and a simulated one has a clock of its own.
///
/// # Errors
/// Of the device; or a profile that makes no sense, such as that of a device on which nothing
/// takes any time.
pub fn calibrate(device: &Device, clock: &dyn Fn() -> u64) -> Result<Profile> {
    let _as_it_comes = NothingKept::new(device);
    let mut bench = Bench::new(device, clock)?;
    let info = device.info();
    let kernels = kernels::measure(&mut bench)?;
    let [h2d_pinned, d2h_pinned] = copies::pinned(&mut bench)?;
    let calls = calls::measure(&mut bench, &h2d_pinned)?;
    let [h2d_pageable, d2h_pageable] = copies::pageable(&mut bench, &calls)?;
    let handover_ns = kernels::handover_ns(&mut bench)?;
    let switch_ns = kernels::switch_ns(&mut bench)?;
    let pci = info
        .pci
        .map_or([0; 3], |pci| [pci.domain, pci.bus, pci.device]);
    let profile = Profile {
        name: profile_name(&info.name),
        both_ways_percent: copies::both_ways_percent(&mut bench)?,
        d2d_bytes_per_s: kernels::d2d_bytes_per_s(&mut bench, &kernels)?,
        device: DeviceFacts {
            name: info.name.clone(),
            memory_bytes: info.memory_bytes,
            multiprocessors: info.multiprocessors,
            compute_capability: [info.compute_capability.0, info.compute_capability.1],
            async_engines: info.async_engines,
            h2d_engines: 1,
            // With one engine both directions take turns.
            d2h_engines: u32::from(info.async_engines != 1),
            handover_ns,
            switch_ns,
            numa_node: info.numa_node,
            pci: PciFacts {
                domain: pci[0],
                bus: pci[1],
                device: pci[2],
            },
        },
        h2d: pinlane_model::DirectionCosts {
            pageable: h2d_pageable,
            pinned: h2d_pinned,
        },
        d2h: pinlane_model::DirectionCosts {
            pageable: d2h_pageable,
            pinned: d2h_pinned,
        },
        kernel: kernels,
        calls,
        host_memory: pinning::measure(&bench)?,
        express: lanes::measure(&bench)?,
        #[cfg(feature = "load")]
        files: files::measure(&bench),
        #[cfg(not(feature = "load"))]
        files: None,
    };
    match profile.validate() {
        Ok(()) => Ok(profile),
        Err(error) => Err(Error::Calibration(error.to_string())),
    }
}

/// While it is there the device keeps no memory: allocating is measured, too.
struct NothingKept<'a> {
    device: &'a Device,
    usual_bytes: u64,
}

impl<'a> NothingKept<'a> {
    fn new(device: &'a Device) -> Self {
        let usual_bytes = device.keep_device_memory(0);
        Self {
            device,
            usual_bytes,
        }
    }
}

impl Drop for NothingKept<'_> {
    fn drop(&mut self) {
        self.device.keep_device_memory(self.usual_bytes);
    }
}

/// What the profile of a device is called, such as `nvidia-h200`: lower case, digits and dashes.
#[must_use]
pub fn profile_name(device_name: &str) -> String {
    let words = device_name.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    match words.is_empty() {
        true => "gpu".to_owned(),
        false => words.join("-").to_ascii_lowercase(),
    }
}
