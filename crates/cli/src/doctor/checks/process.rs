//! The process's settings and its neighbours.

use pinlane_driver::ErrorKind;
use pinlane_report::{DoctorFinding as Finding, DoctorGroup, short_size};

use super::{driver, gpu};
use crate::doctor::facts::gpu::{Gpu, Gpus};
use crate::doctor::facts::host::Host;
use crate::nvml::GpuProcess;

const GROUP: DoctorGroup = DoctorGroup::Process;

/// As many neighbours are named.
const NAMED_MAX: usize = 3;

pub(super) fn of_gpu(gpu: &Gpu) -> Vec<Finding> {
    match gpu.info.simulated {
        Some(_) => Vec::new(),
        None => vec![neighbours(gpu)],
    }
}

pub(super) fn of_host(host: &Host, gpus: &Gpus) -> Vec<Finding> {
    vec![mps(host, gpus), visible(host, gpus), blocking(host)]
}

fn neighbours(gpu: &Gpu) -> Finding {
    const CHECK: &str = "other processes";
    let Some(processes) = &gpu.state.processes else {
        return Finding::skip(GROUP, CHECK, "not known");
    };
    if processes.is_empty() {
        return Finding::ok(GROUP, CHECK, "none computes on the GPU");
    }
    let mut named: Vec<_> = processes.iter().take(NAMED_MAX).map(describe).collect();
    if processes.len() > NAMED_MAX {
        named.push(format!("{} more", processes.len() - NAMED_MAX));
    }
    let seen = format!("on the same GPU: {}", named.join(", "));
    Finding::warn(GROUP, CHECK, seen).remedy(
        format!(
            "measure when the other processes rest (`nvidia-smi -i {}` shows them), or choose \
             another GPU with --device cuda:N",
            gpu::id(gpu)
        ),
        33,
    )
}

fn describe(process: &GpuProcess) -> String {
    let path = process.name.as_deref().unwrap_or("a process");
    let name = path.rsplit('/').next().unwrap_or(path);
    let memory = process
        .memory_bytes
        .map_or_else(String::new, |bytes| format!(", {}", short_size(bytes)));
    format!("{name} (pid {}{memory})", process.pid)
}

fn mps(host: &Host, gpus: &Gpus) -> Finding {
    const CHECK: &str = "MPS";
    let clients = gpus.gpus.iter().any(|gpu| gpu.state.mps == Some(true));
    let seen = if host.mps_daemon || clients {
        "on: processes share the GPU through one server, and their copies wait for each other"
    } else if host.variables.mps_pipe.is_some() {
        "CUDA_MPS_PIPE_DIRECTORY is set, but no server is to be seen from here"
    } else {
        return Finding::ok(GROUP, CHECK, "off");
    };
    Finding::warn(GROUP, CHECK, seen).remedy(
        "if nobody needs MPS: `echo quit | nvidia-cuda-mps-control`, and unset CUDA_MPS_PIPE_DIRECTORY",
        12,
    )
}

fn visible(host: &Host, gpus: &Gpus) -> Finding {
    const CHECK: &str = "CUDA_VISIBLE_DEVICES";
    let Some(value) = &host.variables.visible_devices else {
        return Finding::ok(GROUP, CHECK, "not set");
    };
    let shown = match value.trim() {
        "" => "set, but empty".to_owned(),
        value => value.to_owned(),
    };
    let sees_none = matches!(&gpus.absent, Some(error) if error.kind == ErrorKind::NoDevice);
    match sees_none && driver::hides_all(value) {
        true => Finding::warn(GROUP, CHECK, format!("{shown}: hides every GPU"))
            .remedy("unset CUDA_VISIBLE_DEVICES", 96),
        false => Finding::ok(GROUP, CHECK, shown),
    }
}

fn blocking(host: &Host) -> Finding {
    const CHECK: &str = "CUDA_LAUNCH_BLOCKING";
    match host.variables.launch_blocking.as_deref().map(str::trim) {
        None | Some("" | "0") => Finding::ok(GROUP, CHECK, "not set"),
        Some(value) => Finding::warn(
            GROUP,
            CHECK,
            format!("`{value}`: kernels block the CPU, and nothing overlaps"),
        )
        .remedy("unset CUDA_LAUNCH_BLOCKING", 80),
    }
}
