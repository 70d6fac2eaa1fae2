//! Settings, and other processes.

use super::*;
use crate::system::nvml::GpuProcess;

fn with_variable(name: &'static str, value: &'static str) -> Facts {
    let mut facts = facts(&Tree::healthy(), healthy_gpu());
    facts.host = Tree::healthy().host(&[(name, value)]);
    facts
}

#[test]
fn other_processes_on_the_gpu() {
    let processes = |count: u32| {
        let mut gpu = healthy_gpu();
        let process = |pid| GpuProcess {
            pid,
            name: Some("/usr/bin/python3".to_owned()),
            memory_bytes: Some(20 << 30),
        };
        gpu.state.processes = Some((1..=count).map(process).collect());
        facts(&Tree::healthy(), gpu)
    };
    good(&processes(0), "other processes", ["none"]);
    let parts = ["python3 (pid 1, 20 GiB)", "nvidia-smi -i 0000:01:00.0"];
    warns(&processes(1), "other processes", parts);
    warns(&processes(1000), "other processes", ["997 more"]);
    let mut gpu = healthy_gpu();
    gpu.state.processes = None;
    skips(&facts(&Tree::healthy(), gpu), "other processes", []);
}

#[test]
fn mps_by_its_server_its_clients_and_its_variable() {
    good(&facts(&Tree::healthy(), healthy_gpu()), "MPS", ["off"]);
    let server = Tree::healthy().with("proc/812/comm", "nvidia-cuda-mps\n");
    warns(&facts(&server, healthy_gpu()), "MPS", ["on", "echo quit"]);
    let mut gpu = healthy_gpu();
    gpu.state.mps = Some(true);
    warns(&facts(&Tree::healthy(), gpu), "MPS", ["on"]);
    let variable = with_variable("CUDA_MPS_PIPE_DIRECTORY", "/tmp/mps");
    warns(&variable, "MPS", ["CUDA_MPS_PIPE_DIRECTORY"]);
}

#[test]
fn blocking_launches() {
    for off in ["0", ""] {
        let facts = with_variable("CUDA_LAUNCH_BLOCKING", off);
        good(&facts, "CUDA_LAUNCH_BLOCKING", []);
    }
    let on = with_variable("CUDA_LAUNCH_BLOCKING", "1");
    warns(&on, "CUDA_LAUNCH_BLOCKING", ["unset CUDA_LAUNCH_BLOCKING"]);
}
