//! Variables of CUDA in the process's environment, and MPS.

use pinlane_driver::ErrorKind;

use super::{Check, DoctorGroup, Finding, GpuFacts, HostFacts, driver};

const MPS: Check = Check(DoctorGroup::Process, "MPS");
const VISIBLE: Check = Check(DoctorGroup::Process, "CUDA_VISIBLE_DEVICES");
const BLOCKING: Check = Check(DoctorGroup::Process, "CUDA_LAUNCH_BLOCKING");

pub(super) fn all(host: &HostFacts, gpus: &GpuFacts) -> Vec<Finding> {
    vec![mps(host, gpus), visible(host, gpus), blocking(host)]
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
