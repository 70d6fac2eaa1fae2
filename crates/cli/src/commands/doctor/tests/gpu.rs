//! A single GPU, and the processes on it.

use super::*;
use crate::system::nvml::GpuProcess;

#[test]
fn a_gpu_that_does_not_open_fails() {
    let lost = with_gpu(|gpu| gpu.load = Err("the GPU is lost".to_owned()));
    found(&lost, "usable").fails(["the GPU is lost", "nvidia-smi"]);
    found(&machine(Tree::healthy()), "usable").good(["NVIDIA H200"]);
}

#[test]
fn pinning_gains_nothing_with_shared_memory() {
    let integrated = with_gpu(|gpu| gpu.info.integrated = true);
    found(&integrated, "GPU memory").warns(["shared", "mapped"]);
    let coherent = with_gpu(|gpu| gpu.info.coherent = true);
    found(&coherent, "GPU memory").warns(["C2C", "compare"]);
    found(&machine(Tree::healthy()), "GPU memory").good([]);
}

#[test]
fn compute_modes() {
    let mode = |mode| {
        let facts = with_gpu(|gpu| gpu.state.compute_mode = mode);
        found(&facts, "compute mode")
    };
    let remedy = "nvidia-smi -i 0000:01:00.0 -c DEFAULT";
    mode(Some(ComputeMode::Default)).good([]);
    mode(Some(ComputeMode::ExclusiveThread)).warns(["one process", remedy]);
    mode(Some(ComputeMode::ExclusiveProcess)).warns(["one process", remedy]);
    mode(Some(ComputeMode::Prohibited)).fails(["no process", remedy]);
    mode(None).skips([]);
}

#[test]
fn persistence() {
    let on = |on| {
        let facts = with_gpu(|gpu| gpu.state.persistence = on);
        found(&facts, "persistence mode")
    };
    on(Some(true)).good(["on"]);
    on(Some(false)).warns(["-i 0000:01:00.0 -pm 1"]);
    on(None).skips([]);
}

#[test]
fn confidential_computing() {
    let on = |on| {
        let facts = with_gpu(|gpu| gpu.state.confidential = on);
        found(&facts, "confidential computing")
    };
    on(Some(false)).good(["off"]);
    on(Some(true)).warns(["encrypted", "pinlane compare"]);
    on(None).skips([]);
}

#[test]
fn findings_about_a_simulated_gpu_are_marked() {
    let mut facts = with_gpu(|gpu| {
        gpu.info.simulated = Some("pcie3-x16".to_owned());
        gpu.rates_gb_per_s = Some([Some(12.0), None]);
    });
    for finding in checks::run_all(&facts) {
        assert_eq!(finding.simulated, finding.gpu.is_some(), "{finding:?}");
    }
    found(&facts, "link").good(["12.0 GB/s", "no cost", "profile"]);
    let real_only = ["CUDA driver", "persistence mode", "NUMA node"];
    for name in names(&facts) {
        assert!(
            !real_only.contains(&&*name) && name != "other processes",
            "{name}"
        );
    }
    facts.gpus.gpus[0].rates_gb_per_s = None;
    found(&facts, "link").skips([]);
}

#[test]
fn other_processes_on_the_gpu() {
    let check = |processes| {
        let facts = with_gpu(|gpu| gpu.state.processes = processes);
        found(&facts, "other processes")
    };
    let processes = |count| {
        let process = |pid| GpuProcess {
            pid,
            name: Some("/usr/bin/python3".to_owned()),
            memory_bytes: Some(20 << 30),
        };
        check(Some((1..=count).map(process).collect()))
    };
    processes(0).good(["none"]);
    processes(1).warns(["python3 (pid 1, 20 GiB)", "nvidia-smi -i 0000:01:00.0"]);
    processes(1000).warns(["997 more"]);
    check(None).skips([]);
}
