//! A GPU by itself.

use pinlane_report::DoctorStatus::{Fail, Ok as Good, Skip, Warn};

use super::*;

fn with(change: impl FnOnce(&mut Gpu)) -> Facts {
    let mut gpu = healthy_gpu();
    change(&mut gpu);
    facts(&Tree::healthy(), gpu)
}

#[test]
fn a_gpu_that_does_not_open_is_wrong() {
    let facts = with(|gpu| gpu.load = Err("the GPU is lost".to_owned()));
    expect(&facts, "usable", Fail, &["the GPU is lost", "nvidia-smi"]);
    expect(&with(|_| ()), "usable", Good, &["NVIDIA H200"]);
}

#[test]
fn pinning_gains_nothing_where_memory_is_shared() {
    expect(
        &with(|gpu| gpu.info.integrated = true),
        "GPU memory",
        Warn,
        &["shared", "mapped"],
    );
    expect(
        &with(|gpu| gpu.info.coherent = true),
        "GPU memory",
        Warn,
        &["C2C", "compare"],
    );
    expect(&with(|_| ()), "GPU memory", Good, &[]);
}

#[test]
fn compute_modes() {
    let mode = |mode| with(|gpu| gpu.state.compute_mode = mode);
    let remedy = "nvidia-smi -i 0000:01:00.0 -c DEFAULT";
    expect(&mode(Some(ComputeMode::Shared)), "compute mode", Good, &[]);
    expect(
        &mode(Some(ComputeMode::Exclusive)),
        "compute mode",
        Warn,
        &["one process", remedy],
    );
    expect(
        &mode(Some(ComputeMode::Prohibited)),
        "compute mode",
        Fail,
        &["no process", remedy],
    );
    expect(&mode(None), "compute mode", Skip, &[]);
}

#[test]
fn persistence() {
    let on = |on| with(|gpu| gpu.state.persistence = on);
    expect(&on(Some(true)), "persistence mode", Good, &["on"]);
    expect(
        &on(Some(false)),
        "persistence mode",
        Warn,
        &["-i 0000:01:00.0 -pm 1"],
    );
    expect(&on(None), "persistence mode", Skip, &[]);
}

#[test]
fn confidential_computing() {
    let on = |on| with(|gpu| gpu.state.confidential = on);
    expect(&on(Some(false)), "confidential computing", Good, &["off"]);
    expect(
        &on(Some(true)),
        "confidential computing",
        Warn,
        &["encrypted", "pinlane compare"],
    );
    expect(&on(None), "confidential computing", Skip, &[]);
}

#[test]
fn what_is_said_of_a_simulated_gpu_says_so() {
    let mut facts = with(|gpu| {
        gpu.info.simulated = Some("pcie3-x16".to_owned());
        gpu.rates_gb_per_s = Some([Some(12.0), None]);
    });
    for finding in checks::all(&facts) {
        assert_eq!(finding.simulated, finding.gpu.is_some(), "{finding:?}");
    }
    expect(&facts, "link", Good, &["12.0 GB/s", "no cost", "profile"]);
    let names: Vec<_> = checks::all(&facts).into_iter().map(|f| f.check).collect();
    for real_only in [
        "CUDA driver",
        "persistence mode",
        "NUMA node",
        "other processes",
    ] {
        assert!(!names.iter().any(|name| name == real_only), "{real_only}");
    }
    facts.gpus.gpus[0].rates_gb_per_s = None;
    expect(&facts, "link", Skip, &[]);
}
