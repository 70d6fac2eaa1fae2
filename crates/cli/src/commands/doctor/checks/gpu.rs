//! A GPU by itself.

use pinlane_report::{DoctorFinding as Finding, DoctorGroup};

use crate::doctor::facts::gpu::Gpu;
use crate::nvml::ComputeMode;

const GROUP: DoctorGroup = DoctorGroup::Gpu;

pub(super) fn all(gpu: &Gpu) -> Vec<Finding> {
    let mut findings = vec![usable(gpu), kind_of_memory(gpu)];
    if gpu.info.simulated.is_none() {
        findings.push(compute_mode(gpu));
        findings.push(persistence(gpu));
        findings.push(confidential(gpu));
    }
    findings
}

fn usable(gpu: &Gpu) -> Finding {
    const CHECK: &str = "usable";
    let name = &gpu.info.name;
    match &gpu.load {
        Ok(_) => Finding::ok(GROUP, CHECK, format!("{name} opens and takes a copy")),
        Err(reason) => Finding::fail(GROUP, CHECK, format!("{name} cannot be used: {reason}"))
            .remedy(
                "see what `nvidia-smi` says of the GPU (memory, processes, errors), and the kernel log: \
                 `sudo dmesg | grep -i xid`",
                95,
            ),
    }
}

fn kind_of_memory(gpu: &Gpu) -> Finding {
    const CHECK: &str = "GPU memory";
    let seen = |what: &str| format!("{what}: pinning gains little or nothing here");
    if gpu.info.integrated {
        Finding::warn(GROUP, CHECK, seen("shared with the host")).remedy(
            "do not copy: let kernels use host memory in place (`Device::mapped`, cudaHostAllocMapped)",
            70,
        )
    } else if gpu.info.coherent {
        Finding::warn(
            GROUP,
            CHECK,
            seen("its own, beside a link through which it reaches ordinary memory (NVLink-C2C)"),
        )
        .remedy(
            "see what pinning gains before using it: `pinlane compare`",
            40,
        )
    } else {
        Finding::ok(GROUP, CHECK, "its own: pinned memory pays")
    }
}

fn compute_mode(gpu: &Gpu) -> Finding {
    const CHECK: &str = "compute mode";
    let back = format!("sudo nvidia-smi -i {} -c DEFAULT", id(gpu));
    match gpu.state.compute_mode {
        None => Finding::skip(GROUP, CHECK, "not known"),
        Some(ComputeMode::Shared) => Finding::ok(GROUP, CHECK, "shared by all processes"),
        Some(ComputeMode::Exclusive) => Finding::warn(
            GROUP,
            CHECK,
            "exclusive: one process at a time, others are refused",
        )
        .remedy(back, 25),
        Some(ComputeMode::Prohibited) => {
            Finding::fail(GROUP, CHECK, "prohibited: no process may compute on it").remedy(back, 98)
        }
    }
}

fn persistence(gpu: &Gpu) -> Finding {
    const CHECK: &str = "persistence mode";
    match gpu.state.persistence {
        None => Finding::skip(GROUP, CHECK, "not known"),
        Some(true) => Finding::ok(GROUP, CHECK, "on"),
        Some(false) => Finding::warn(
            GROUP,
            CHECK,
            "off: the driver lets the GPU go when nobody uses it, and the next first call waits",
        )
        .remedy(
            format!(
                "sudo nvidia-smi -i {} -pm 1 (or run nvidia-persistenced)",
                id(gpu)
            ),
            20,
        ),
    }
}

fn confidential(gpu: &Gpu) -> Finding {
    const CHECK: &str = "confidential computing";
    match gpu.state.confidential {
        None => Finding::skip(GROUP, CHECK, "not known"),
        Some(false) => Finding::ok(GROUP, CHECK, "off"),
        Some(true) => Finding::warn(
            GROUP,
            CHECK,
            "on: copies are encrypted on their way, and memory cannot be page-locked in place",
        )
        .remedy(
            "expect a part of the link's speed under confidential computing (`pinlane \
             compare` says which); turning it off is up to whoever runs the machine",
            75,
        ),
    }
}

/// How nvidia-smi knows it.
pub(super) fn id(gpu: &Gpu) -> String {
    match gpu.info.pci {
        Some(pci) => pci.to_string(),
        None => gpu.info.ordinal.to_string(),
    }
}
