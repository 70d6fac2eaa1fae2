//! A single GPU, and the processes on it.

use pinlane_report::short_size;

use super::{Check, DoctorGroup, Finding, Gpu};
use crate::system::nvml::{ComputeMode, GpuProcess};

const USABLE: Check = Check(DoctorGroup::Gpu, "usable");
const MEMORY: Check = Check(DoctorGroup::Gpu, "GPU memory");
const COMPUTE_MODE: Check = Check(DoctorGroup::Gpu, "compute mode");
const PERSISTENCE: Check = Check(DoctorGroup::Gpu, "persistence mode");
const CONFIDENTIAL: Check = Check(DoctorGroup::Gpu, "confidential computing");
const OTHERS: Check = Check(DoctorGroup::Process, "other processes");

/// Processes that are named; the rest is counted.
const NAMED_MAX: usize = 3;

pub(super) fn all(gpu: &Gpu) -> Vec<Finding> {
    let mut findings = vec![usable(gpu), memory(gpu)];
    if gpu.info.simulated.is_none() {
        findings.extend([compute_mode(gpu), persistence(gpu), confidential(gpu)]);
    }
    findings
}

fn usable(gpu: &Gpu) -> Finding {
    let name = &gpu.info.name;
    match &gpu.load {
        Ok(_) => USABLE.ok(format!("{name} opens and copies")),
        Err(reason) => USABLE.fail(format!("cannot use {name}: {reason}"), "check memory, processes and errors of the GPU with `nvidia-smi`, and the kernel log with \
             `sudo dmesg | grep -i xid`", 95),
    }
}

fn memory(gpu: &Gpu) -> Finding {
    if gpu.info.integrated {
        MEMORY.warn(
            "shared with the host: pinning gains little or nothing",
            "do not copy; let kernels access host memory (`Device::mapped`, cudaHostAllocMapped)",
            70,
        )
    } else if gpu.info.coherent {
        MEMORY.warn(
            "coherent link to host memory (NVLink-C2C): pinning gains little or nothing",
            "measure what pinning gains with `pinlane compare`",
            40,
        )
    } else {
        MEMORY.ok("separate from host memory: pinning pays")
    }
}

fn compute_mode(gpu: &Gpu) -> Finding {
    let reset = format!("sudo nvidia-smi -i {} -c DEFAULT", id(gpu));
    match gpu.state.compute_mode {
        None => COMPUTE_MODE.unknown(),
        Some(ComputeMode::Default) => COMPUTE_MODE.ok("shared by all processes"),
        Some(ComputeMode::ExclusiveThread | ComputeMode::ExclusiveProcess) => {
            COMPUTE_MODE.warn("exclusive: only one process at a time", reset, 25)
        }
        Some(ComputeMode::Prohibited) => {
            COMPUTE_MODE.fail("prohibited: no process may use the GPU", reset, 98)
        }
    }
}

fn persistence(gpu: &Gpu) -> Finding {
    let id = id(gpu);
    let turn_on = format!("sudo nvidia-smi -i {id} -pm 1 (or run nvidia-persistenced)");
    match gpu.state.persistence {
        None => PERSISTENCE.unknown(),
        Some(true) => PERSISTENCE.ok("on"),
        Some(false) => PERSISTENCE.warn(
            "off: the driver unloads an unused GPU, which delays the next first call",
            turn_on,
            20,
        ),
    }
}

fn confidential(gpu: &Gpu) -> Finding {
    match gpu.state.confidential {
        None => CONFIDENTIAL.unknown(),
        Some(false) => CONFIDENTIAL.ok("off"),
        Some(true) => CONFIDENTIAL.warn(
            "on: copies are encrypted, and memory cannot be registered",
            "expect only a part of the link's rate (measure it with `pinlane compare`), or ask the \
                 administrator to turn confidential computing off",
            75,
        ),
    }
}

/// `None` for a simulated GPU.
pub(super) fn other_processes(gpu: &Gpu) -> Option<Finding> {
    if gpu.info.simulated.is_some() {
        return None;
    }
    let Some(processes) = &gpu.state.processes else {
        return Some(OTHERS.unknown());
    };
    if processes.is_empty() {
        return Some(OTHERS.ok("none on this GPU"));
    }
    let mut named: Vec<_> = processes.iter().take(NAMED_MAX).map(describe).collect();
    if processes.len() > NAMED_MAX {
        named.push(format!("{} more", processes.len() - NAMED_MAX));
    }
    Some(OTHERS.warn(
        format!("on this GPU: {}", named.join(", ")),
        format!(
            "measure while the other processes are idle (`nvidia-smi -i {}` lists them), or choose \
                 another GPU with --device cuda:N",
            id(gpu)
        ),
        33,
    ))
}

fn describe(process: &GpuProcess) -> String {
    let path = process.name.as_deref().unwrap_or("a process");
    let name = path.rsplit('/').next().unwrap_or(path);
    match process.memory_bytes.map(short_size) {
        Some(memory) => format!("{name} (pid {}, {memory})", process.pid),
        None => format!("{name} (pid {})", process.pid),
    }
}

/// The GPU's name for nvidia-smi.
pub(super) fn id(gpu: &Gpu) -> String {
    match gpu.info.pci {
        Some(pci) => pci.to_string(),
        None => gpu.info.ordinal.to_string(),
    }
}
