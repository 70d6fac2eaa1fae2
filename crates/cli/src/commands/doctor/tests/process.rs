//! Settings and neighbours.

use pinlane_report::DoctorStatus::{Ok as Good, Skip, Warn};

use super::*;
use crate::nvml::GpuProcess;

fn with_variable(name: &'static str, value: &'static str) -> Facts {
    let mut facts = facts(&Tree::healthy(), healthy_gpu());
    facts.host = Tree::healthy().host(&[(name, value)]);
    facts
}

#[test]
fn neighbours_on_the_gpu() {
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
    expect(&processes(0), "other processes", Good, &["none"]);
    let words = ["python3 (pid 1, 20 GiB)", "nvidia-smi -i 0000:01:00.0"];
    expect(&processes(1), "other processes", Warn, &words);
    expect(&processes(1000), "other processes", Warn, &["997 more"]);
    let mut gpu = healthy_gpu();
    gpu.state.processes = None;
    expect(&facts(&Tree::healthy(), gpu), "other processes", Skip, &[]);
}

#[test]
fn mps_by_its_server_its_clients_and_its_variable() {
    expect(
        &facts(&Tree::healthy(), healthy_gpu()),
        "MPS",
        Good,
        &["off"],
    );
    let server = Tree::healthy().with("proc/812/comm", "nvidia-cuda-mps\n");
    expect(
        &facts(&server, healthy_gpu()),
        "MPS",
        Warn,
        &["on", "echo quit"],
    );
    let mut gpu = healthy_gpu();
    gpu.state.mps = Some(true);
    expect(&facts(&Tree::healthy(), gpu), "MPS", Warn, &["on"]);
    let variable = with_variable("CUDA_MPS_PIPE_DIRECTORY", "/tmp/mps");
    expect(&variable, "MPS", Warn, &["CUDA_MPS_PIPE_DIRECTORY"]);
}

#[test]
fn blocking_launches() {
    for off in ["0", ""] {
        let facts = with_variable("CUDA_LAUNCH_BLOCKING", off);
        expect(&facts, "CUDA_LAUNCH_BLOCKING", Good, &[]);
    }
    let on = with_variable("CUDA_LAUNCH_BLOCKING", "1");
    expect(
        &on,
        "CUDA_LAUNCH_BLOCKING",
        Warn,
        &["unset CUDA_LAUNCH_BLOCKING"],
    );
}
