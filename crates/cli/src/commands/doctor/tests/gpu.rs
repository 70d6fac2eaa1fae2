//! A single GPU.

use super::*;

fn with(change: impl FnOnce(&mut Gpu)) -> Facts {
    let mut gpu = healthy_gpu();
    change(&mut gpu);
    facts(&Tree::healthy(), gpu)
}

#[test]
fn a_gpu_that_does_not_open_fails() {
    let facts = with(|gpu| gpu.load = Err("the GPU is lost".to_owned()));
    fails(&facts, "usable", ["the GPU is lost", "nvidia-smi"]);
    good(&with(|_| ()), "usable", ["NVIDIA H200"]);
}

#[test]
fn pinning_gains_nothing_with_shared_memory() {
    warns(
        &with(|gpu| gpu.info.integrated = true),
        "GPU memory",
        ["shared", "mapped"],
    );
    warns(
        &with(|gpu| gpu.info.coherent = true),
        "GPU memory",
        ["C2C", "compare"],
    );
    good(&with(|_| ()), "GPU memory", []);
}

#[test]
fn compute_modes() {
    let mode = |mode| with(|gpu| gpu.state.compute_mode = mode);
    let remedy = "nvidia-smi -i 0000:01:00.0 -c DEFAULT";
    good(&mode(Some(ComputeMode::Shared)), "compute mode", []);
    warns(
        &mode(Some(ComputeMode::Exclusive)),
        "compute mode",
        ["one process", remedy],
    );
    fails(
        &mode(Some(ComputeMode::Prohibited)),
        "compute mode",
        ["no process", remedy],
    );
    skips(&mode(None), "compute mode", []);
}

#[test]
fn persistence() {
    let on = |on| with(|gpu| gpu.state.persistence = on);
    good(&on(Some(true)), "persistence mode", ["on"]);
    warns(
        &on(Some(false)),
        "persistence mode",
        ["-i 0000:01:00.0 -pm 1"],
    );
    skips(&on(None), "persistence mode", []);
}

#[test]
fn confidential_computing() {
    let on = |on| with(|gpu| gpu.state.confidential = on);
    good(&on(Some(false)), "confidential computing", ["off"]);
    warns(
        &on(Some(true)),
        "confidential computing",
        ["encrypted", "pinlane compare"],
    );
    skips(&on(None), "confidential computing", []);
}

#[test]
fn findings_about_a_simulated_gpu_are_marked() {
    let mut facts = with(|gpu| {
        gpu.info.simulated = Some("pcie3-x16".to_owned());
        gpu.rates_gb_per_s = Some([Some(12.0), None]);
    });
    for finding in checks::run_all(&facts) {
        assert_eq!(finding.simulated, finding.gpu.is_some(), "{finding:?}");
    }
    good(&facts, "link", ["12.0 GB/s", "no cost", "profile"]);
    let names: Vec<_> = checks::run_all(&facts)
        .into_iter()
        .map(|f| f.check)
        .collect();
    for real_only in [
        "CUDA driver",
        "persistence mode",
        "NUMA node",
        "other processes",
    ] {
        assert!(!names.iter().any(|name| name == real_only), "{real_only}");
    }
    facts.gpus.gpus[0].rates_gb_per_s = None;
    skips(&facts, "link", []);
}
