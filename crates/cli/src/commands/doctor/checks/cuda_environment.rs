//! The process's settings, and other processes.

use pinlane_driver::ErrorKind;
use pinlane_report::short_size;

use super::{Check, DoctorGroup, Finding, Gpu, GpuFacts, HostFacts, driver, gpu};
use crate::system::nvml::GpuProcess;

const OTHERS: Check = Check(DoctorGroup::Process, "other processes");
const MPS: Check = Check(DoctorGroup::Process, "MPS");
const VISIBLE: Check = Check(DoctorGroup::Process, "CUDA_VISIBLE_DEVICES");
const BLOCKING: Check = Check(DoctorGroup::Process, "CUDA_LAUNCH_BLOCKING");

const NAMED_MAX: usize = 3;

pub(super) fn of_gpu(gpu: &Gpu) -> Vec<Finding> {
    match gpu.info.simulated {
        Some(_) => Vec::new(),
        None => vec![other_processes(gpu)],
    }
}

pub(super) fn of_host(host: &HostFacts, gpus: &GpuFacts) -> Vec<Finding> {
    vec![mps(host, gpus), visible(host, gpus), blocking(host)]
}

fn other_processes(gpu: &Gpu) -> Finding {
    let Some(processes) = &gpu.state.processes else {
        return OTHERS.unknown();
    };
    if processes.is_empty() {
        return OTHERS.ok("none on this GPU");
    }
    let mut named: Vec<_> = processes.iter().take(NAMED_MAX).map(describe).collect();
    if processes.len() > NAMED_MAX {
        named.push(format!("{} more", processes.len() - NAMED_MAX));
    }
    OTHERS.warn(
        format!("on this GPU: {}", named.join(", ")),
        format!(
            "measure while the other processes are idle (`nvidia-smi -i {}` lists them), or choose \
                 another GPU with --device cuda:N",
            gpu::id(gpu)
        ),
        33,
    )
}

fn describe(process: &GpuProcess) -> String {
    let path = process.name.as_deref().unwrap_or("a process");
    let name = path.rsplit('/').next().unwrap_or(path);
    match process.memory_bytes.map(short_size) {
        Some(memory) => format!("{name} (pid {}, {memory})", process.pid),
        None => format!("{name} (pid {})", process.pid),
    }
}

fn mps(host: &HostFacts, gpus: &GpuFacts) -> Finding {
    let has_clients = gpus.gpus.iter().any(|gpu| gpu.state.mps == Some(true));
    let seen = if host.mps_daemon || has_clients {
        "on: processes share the GPU through one server, so their copies wait for each other"
    } else if host.mps_pipe.is_some() {
        "CUDA_MPS_PIPE_DIRECTORY is set, but no server is visible from here"
    } else {
        return MPS.ok("off");
    };
    MPS.warn(seen, "if MPS is not needed: `echo quit | nvidia-cuda-mps-control`, and unset CUDA_MPS_PIPE_DIRECTORY", 12)
}

fn visible(host: &HostFacts, gpus: &GpuFacts) -> Finding {
    let Some(value) = &host.visible_devices else {
        return VISIBLE.ok("not set");
    };
    let shown = match value.trim() {
        "" => "set, but empty".to_owned(),
        value => value.to_owned(),
    };
    let finds_none = matches!(&gpus.error, Some(error) if error.kind == ErrorKind::NoDevice);
    if !finds_none || !driver::hides_all(value) {
        return VISIBLE.ok(shown);
    }
    let seen = format!("{shown}: hides every GPU");
    VISIBLE.warn(seen, "unset CUDA_VISIBLE_DEVICES", 96)
}

fn blocking(host: &HostFacts) -> Finding {
    match host.launch_blocking.as_deref().map(str::trim) {
        None | Some("" | "0") => BLOCKING.ok("not set"),
        Some(value) => BLOCKING.warn(
            format!("`{value}`: every launch waits for its kernel, so nothing overlaps"),
            "unset CUDA_LAUNCH_BLOCKING",
            80,
        ),
    }
}
