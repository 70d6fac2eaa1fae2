//! The driver, its part in the kernel, and how many GPUs it shows.

use pinlane_driver::{Error, ErrorKind};
use pinlane_report::{DoctorFinding as Finding, DoctorGroup, DoctorStatus};

use super::remedies;
use crate::doctor::facts::gpu::Gpus;
use crate::doctor::facts::host::Host;

const GROUP: DoctorGroup = DoctorGroup::Gpu;

pub(super) fn all(host: &Host, gpus: &Gpus) -> Vec<Finding> {
    if gpus.gpus.iter().any(|gpu| gpu.info.simulated.is_some()) {
        // The driver of this machine has nothing to do with it.
        return Vec::new();
    }
    let mut findings = vec![driver(host, gpus), module(host, gpus)];
    findings.extend(device_files(host, gpus));
    if gpus.absent.is_none() {
        findings.push(count(host, gpus));
        findings.push(management(gpus));
    }
    findings
}

fn driver(host: &Host, gpus: &Gpus) -> Finding {
    match (&gpus.absent, gpus.gpus.first()) {
        (None, Some(gpu)) => {
            let mut seen = format!("CUDA {}", gpu.info.driver_version);
            if let Ok(Some(version)) = &gpus.management {
                seen.push_str(&format!(", driver {version}"));
            }
            Finding::ok(GROUP, "CUDA driver", seen)
        }
        (None, None) => no_gpu(host, gpus.demanded, ErrorKind::NoDevice, ""),
        (Some(error), _) => absent(host, gpus.demanded, error),
    }
}

fn absent(host: &Host, demanded: bool, error: &Error) -> Finding {
    let of_no_gpu = matches!(error.kind, ErrorKind::NoDriver | ErrorKind::NoDevice);
    if !of_no_gpu {
        // The kind's own words end with what to do.
        let text = error.kind.to_string();
        let (seen, remedy) = text.split_once("; ").unwrap_or((
            &text,
            "see what `nvidia-smi` says, and choose a GPU that it shows",
        ));
        let seen = match error.detail.is_empty() {
            true => seen.to_owned(),
            false => format!("{seen}: {}", error.detail),
        };
        return Finding::fail(GROUP, "CUDA driver", seen).remedy(remedy, 100);
    }
    no_gpu(host, demanded, error.kind.clone(), &error.detail)
}

/// Wrong where a GPU was asked for; else something to know.
fn no_gpu(host: &Host, demanded: bool, kind: ErrorKind, detail: &str) -> Finding {
    let is_loaded = kind == ErrorKind::NoDevice;
    let mut seen = match is_loaded {
        true => "the driver sees no GPU".to_owned(),
        false => "no CUDA driver library".to_owned(),
    };
    if !detail.is_empty() {
        seen.push_str(&format!(" ({detail})"));
    }
    let remedy = match &host.variables.visible_devices {
        Some(value) if is_loaded && hides_all(value) => "unset CUDA_VISIBLE_DEVICES".to_owned(),
        _ => remedies::see_a_gpu(host),
    };
    let seen = match demanded {
        true => seen,
        false => format!("no GPU, simulated devices only: {seen}"),
    };
    Finding::new(GROUP, "CUDA driver", how_bad(demanded), seen).remedy(remedy, 100)
}

/// The lack of a GPU is an error where one was asked for.
fn how_bad(demanded: bool) -> DoctorStatus {
    match demanded {
        true => DoctorStatus::Fail,
        false => DoctorStatus::Warn,
    }
}

/// CUDA ends the list at the first name that it does not know.
pub(super) fn hides_all(visible_devices: &str) -> bool {
    let first = visible_devices.split(',').next().unwrap_or_default().trim();
    first.is_empty() || first.starts_with('-') || first == "NoDevFiles"
}

fn module(host: &Host, gpus: &Gpus) -> Finding {
    const CHECK: &str = "kernel module";
    match (&host.module, &gpus.absent) {
        (Some(version), _) => Finding::ok(GROUP, CHECK, format!("nvidia {version}")),
        (None, None) => Finding::skip(
            GROUP,
            CHECK,
            "at work, but the system does not tell its version",
        ),
        (None, Some(_)) if host.wsl => Finding::skip(GROUP, CHECK, "not used under WSL"),
        (None, Some(_)) if host.pci.is_empty() => {
            Finding::skip(GROUP, CHECK, "no NVIDIA GPU on the PCI bus")
        }
        (None, Some(_)) => Finding::new(
            GROUP,
            CHECK,
            how_bad(gpus.demanded),
            format!(
                "not loaded, though {} on the PCI bus",
                gpus_text(host.pci.len())
            ),
        )
        .remedy(remedies::see_a_gpu(host), 100),
    }
}

/// Where the module is loaded and the GPU is not to be used, the files in /dev may be why.
fn device_files(host: &Host, gpus: &Gpus) -> Option<Finding> {
    const CHECK: &str = "device files";
    host.module.as_ref()?;
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
        return Some(Finding::ok(GROUP, CHECK, seen));
    }
    if gpus.absent.is_none() {
        return Some(Finding::skip(
            GROUP,
            CHECK,
            "CUDA works without those that are missing",
        ));
    }
    let status = how_bad(gpus.demanded);
    let remedy = match host.container {
        true => remedies::see_a_gpu(host),
        false => "sudo nvidia-modprobe -c 0 -u".to_owned(),
    };
    Some(
        Finding::new(
            GROUP,
            CHECK,
            status,
            format!("{} missing", missing.join(", ")),
        )
        .remedy(remedy, 99),
    )
}

fn count(host: &Host, gpus: &Gpus) -> Finding {
    const CHECK: &str = "GPUs";
    let looked_at = gpus.gpus.len();
    let mut seen = gpus_text(gpus.count);
    let mut names: Vec<_> = gpus.gpus.iter().map(|gpu| gpu.info.name.as_str()).collect();
    names.dedup();
    seen.push_str(&format!(": {}", names.join(", ")));
    if looked_at < gpus.count {
        let number = gpus.gpus.first().map_or(0, |gpu| gpu.info.ordinal);
        seen.push_str(&format!(" (number {number} is looked at)"));
    }
    match &host.variables.visible_devices {
        Some(value) if host.pci.len() > gpus.count => {
            let all = host.pci.len();
            seen.push_str(&format!(
                "; CUDA_VISIBLE_DEVICES={value} hides others of the {all} on the PCI bus"
            ));
            Finding::ok(GROUP, CHECK, seen)
        }
        _ => Finding::ok(GROUP, CHECK, seen),
    }
}

fn management(gpus: &Gpus) -> Finding {
    const CHECK: &str = "management library";
    match &gpus.management {
        Ok(_) => Finding::ok(GROUP, CHECK, "libnvidia-ml answers"),
        Err(reason) => Finding::skip(GROUP, CHECK, reason.clone()),
    }
}

fn gpus_text(count: usize) -> String {
    match count {
        1 => "1 GPU".to_owned(),
        count => format!("{count} GPUs"),
    }
}
