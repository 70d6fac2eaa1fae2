//! The driver, its kernel module, and the GPUs it shows.

use pinlane_driver::{Error, ErrorKind};

use super::{Check, DoctorGroup, Finding, GpuFacts, HostFacts};

const DRIVER: Check = Check(DoctorGroup::Gpu, "CUDA driver");
const MODULE: Check = Check(DoctorGroup::Gpu, "kernel module");
const DEVICE_FILES: Check = Check(DoctorGroup::Gpu, "device files");
const GPUS: Check = Check(DoctorGroup::Gpu, "GPUs");
const MANAGEMENT: Check = Check(DoctorGroup::Gpu, "management library");

pub(super) fn all(host: &HostFacts, gpus: &GpuFacts) -> Vec<Finding> {
    if gpus.gpus.iter().any(|gpu| gpu.info.simulated.is_some()) {
        // A simulated GPU does not use the driver of this machine.
        return Vec::new();
    }
    let mut findings = vec![driver(host, gpus), module(host, gpus)];
    findings.extend(device_files(host, gpus));
    if gpus.error.is_none() {
        findings.push(count(host, gpus));
        findings.push(match &gpus.management {
            Ok(_) => MANAGEMENT.ok("libnvidia-ml works"),
            Err(reason) => MANAGEMENT.skip(reason.clone()),
        });
    }
    findings
}

fn driver(host: &HostFacts, gpus: &GpuFacts) -> Finding {
    match (&gpus.error, gpus.gpus.first()) {
        (None, Some(gpu)) => {
            let mut seen = format!("CUDA {}", gpu.info.driver_version);
            if let Ok(Some(version)) = &gpus.management {
                seen.push_str(&format!(", driver {version}"));
            }
            DRIVER.ok(seen)
        }
        (None, None) => no_gpu(host, gpus.required, ErrorKind::NoDevice, ""),
        (Some(error), _) => driver_error(host, gpus.required, error),
    }
}

fn driver_error(host: &HostFacts, required: bool, error: &Error) -> Finding {
    if matches!(error.kind, ErrorKind::NoDriver | ErrorKind::NoDevice) {
        return no_gpu(host, required, error.kind.clone(), &error.detail);
    }
    // The text of the error ends with the remedy.
    let text = error.kind.to_string();
    let otherwise = (&*text, "choose a GPU that `nvidia-smi` lists");
    let (seen, remedy) = text.split_once("; ").unwrap_or(otherwise);
    let seen = match error.detail.as_str() {
        "" => seen.to_owned(),
        detail => format!("{seen}: {detail}"),
    };
    DRIVER.fail(seen, remedy, 100)
}

fn no_gpu(host: &HostFacts, required: bool, kind: ErrorKind, detail: &str) -> Finding {
    let is_loaded = kind == ErrorKind::NoDevice;
    let mut seen = match is_loaded {
        true => "the driver finds no GPU".to_owned(),
        false => "no CUDA driver library".to_owned(),
    };
    if !detail.is_empty() {
        seen += &format!(" ({detail})");
    }
    let remedy = match &host.visible_devices {
        Some(value) if is_loaded && hides_all(value) => "unset CUDA_VISIBLE_DEVICES".to_owned(),
        _ => find_gpu(host),
    };
    if !required {
        seen.insert_str(0, "no GPU, simulated devices only: ");
    }
    DRIVER.missing(required, seen, remedy, 100)
}

impl Check {
    /// A missing GPU is an error only if `--device` names one.
    fn missing(self, required: bool, seen: String, remedy: String, weight: u8) -> Finding {
        match required {
            true => self.fail(seen, remedy, weight),
            false => self.warn(seen, remedy, weight),
        }
    }
}

/// CUDA ends the list at the first unknown name.
pub(super) fn hides_all(visible_devices: &str) -> bool {
    let first = visible_devices.split(',').next().unwrap_or_default().trim();
    first.is_empty() || first.starts_with('-') || first == "NoDevFiles"
}

fn module(host: &HostFacts, gpus: &GpuFacts) -> Finding {
    match (&host.kernel_module, &gpus.error) {
        (Some(version), _) => MODULE.ok(format!("nvidia {version}")),
        (None, None) => MODULE.skip("works, but its version is unknown"),
        (None, Some(_)) if host.wsl => MODULE.skip("not used under WSL"),
        (None, Some(_)) if host.pci.is_empty() => MODULE.skip("no NVIDIA GPU on the PCI bus"),
        (None, Some(_)) => {
            let gpus_on_bus = gpus_text(host.pci.len());
            let seen = format!("not loaded, but the PCI bus has {gpus_on_bus}");
            MODULE.missing(gpus.required, seen, find_gpu(host), 100)
        }
    }
}

/// If the module is loaded but the GPU does not work, missing device files may be the reason.
fn device_files(host: &HostFacts, gpus: &GpuFacts) -> Option<Finding> {
    host.kernel_module.as_ref()?;
    let files = host.device_files;
    let missing: Vec<_> = [
        (!files.control).then_some("/dev/nvidiactl"),
        (!files.memory).then_some("/dev/nvidia-uvm"),
        (files.gpus == 0).then_some("/dev/nvidia0"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if missing.is_empty() {
        let seen = format!("/dev has {}", gpus_text(files.gpus));
        return Some(DEVICE_FILES.ok(seen));
    }
    let missing = format!("{} missing", missing.join(", "));
    if gpus.error.is_none() {
        return Some(DEVICE_FILES.skip(format!("{missing}, but CUDA works without")));
    }
    let remedy = match host.container {
        true => find_gpu(host),
        false => "sudo nvidia-modprobe -c 0 -u".to_owned(),
    };
    Some(DEVICE_FILES.missing(gpus.required, missing, remedy, 99))
}

fn count(host: &HostFacts, gpus: &GpuFacts) -> Finding {
    let mut names: Vec<_> = gpus.gpus.iter().map(|gpu| gpu.info.name.as_str()).collect();
    names.dedup();
    let mut seen = format!("{}: {}", gpus_text(gpus.count), names.join(", "));
    if gpus.gpus.len() < gpus.count {
        let number = gpus.gpus.first().map_or(0, |gpu| gpu.info.ordinal);
        seen.push_str(&format!(" (only number {number} is checked)"));
    }
    let on_bus = host.pci.len();
    if let Some(value) = &host.visible_devices
        && on_bus > gpus.count
    {
        let hides = format!("hides others of the {on_bus} on the PCI bus");
        seen += &format!("; CUDA_VISIBLE_DEVICES={value} {hides}");
    }
    GPUS.ok(seen)
}

fn gpus_text(count: usize) -> String {
    match count {
        1 => "1 GPU".to_owned(),
        count => format!("{count} GPUs"),
    }
}

/// What to do if the process finds no GPU.
fn find_gpu(host: &HostFacts) -> String {
    let is_present = !host.pci.is_empty() || host.kernel_module.is_some();
    if host.wsl {
        "install NVIDIA's driver on Windows (not in Linux), then run `wsl --update`".to_owned()
    } else if host.container && !host.device_files.control {
        let start = "`docker run --gpus all …` (needs the NVIDIA Container Toolkit)";
        match is_present {
            true => format!("start the container with its GPUs: {start}"),
            false => format!("if the machine has a GPU, start the container with it: {start}"),
        }
    } else if !is_present {
        "nothing to do on a machine without an NVIDIA GPU; `--device sim` simulates one".to_owned()
    } else if host.kernel_module.is_none() {
        "install NVIDIA's driver (`sudo ubuntu-drivers install` on Ubuntu, or \
         https://www.nvidia.com/drivers), or load it with `sudo modprobe nvidia`"
            .to_owned()
    } else {
        "check `nvidia-smi`; libcuda.so.1 is part of the driver's package (libnvidia-compute on Ubuntu)"
            .to_owned()
    }
}
