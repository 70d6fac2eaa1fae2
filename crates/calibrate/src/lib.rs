//! Measures a machine and writes the profile that the model needs.
//!
//! ```text
//!   calibrate              device properties, and all parts below        (this file)
//!     timing_harness       streams, buffers, events, the host's clock
//!     copies               pinned and pageable curves, both directions at once, within the device; gaps between
//!                          copies
//!     kernels              launches, and the rate at which kernels read and write memory
//!     driver_call_costs    host cost of driver calls, and of page-locking
//!     express_copies       the express lane
//!     file_reading_threads    how many threads read files best
//!     fit                  fits curves to times
//! ```

mod copies;
mod driver_call_costs;
mod express_copies;
#[cfg(feature = "load")]
mod file_reading_threads;
mod fit;
mod kernels;
mod timing_harness;

use pinlane_model::{DeviceFacts, DirectionCosts, PciFacts, Profile};

use pinlane_core::{Device, Error, Result};
use timing_harness::Bench;

/// Measures the machine, which takes some seconds on a GPU. `clock` returns the host's time in nanoseconds:
/// wall-clock time on a real machine, the simulated clock on a simulated one.
///
/// # Errors
/// Errors of the device, or an invalid profile, for example of a device on which nothing takes any time.
pub fn calibrate(device: &Device, clock: &dyn Fn() -> u64) -> Result<Profile> {
    let _as_it_comes = NothingKept(device, device.keep_device_memory(0));
    let mut bench = Bench::new(device, clock)?;
    let info = device.info();
    let kernels = kernels::measure(&mut bench)?;
    let [up, down] = copies::pinned(&mut bench)?;
    let calls = driver_call_costs::measure(&mut bench, &up)?;
    let [h2d, d2h] = copies::pageable(&mut bench, &calls)?;
    let direction = |pageable, pinned| DirectionCosts { pageable, pinned };
    let handover_ns = copies::handover_ns(&mut bench)?;
    let switch_ns = copies::switch_ns(&mut bench)?;
    let pci = info
        .pci
        .map_or([0; 3], |pci| [pci.domain, pci.bus, pci.device]);
    let profile = Profile {
        name: profile_name(&info.name),
        both_ways_percent: copies::both_ways_percent(&mut bench)?,
        d2d_bytes_per_s: copies::d2d_bytes_per_s(&mut bench, &kernels)?,
        device: DeviceFacts {
            name: info.name.clone(),
            memory_bytes: info.memory_bytes,
            multiprocessors: info.multiprocessors,
            compute_capability: [info.compute_capability.0, info.compute_capability.1],
            async_engines: info.async_engines,
            h2d_engines: 1,
            // With a single engine, both directions take turns.
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
        h2d: direction(h2d, up),
        d2h: direction(d2h, down),
        kernel: kernels,
        calls,
        host_memory: driver_call_costs::page_locking(&bench)?,
        express: express_copies::measure(&bench)?,
        #[cfg(feature = "load")]
        files: file_reading_threads::measure(&bench),
        #[cfg(not(feature = "load"))]
        files: None,
    };
    let valid = profile.validate();
    valid.map_err(|error| Error::Calibration(error.to_string()))?;
    Ok(profile)
}

/// Restores the usual cache of device memory, disabled meanwhile to measure allocation.
struct NothingKept<'a>(&'a Device, u64);

impl Drop for NothingKept<'_> {
    fn drop(&mut self) {
        self.0.keep_device_memory(self.1);
    }
}

/// Name of a device's profile, such as `nvidia-h200`: lower case, digits and dashes.
#[must_use]
pub fn profile_name(device_name: &str) -> String {
    let words = device_name.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    match words.is_empty() {
        true => "gpu".to_owned(),
        false => words.join("-").to_ascii_lowercase(),
    }
}
