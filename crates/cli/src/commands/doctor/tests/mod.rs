//! Checks on fake machines: system files in a folder, and made-up GPUs.

mod driver;
mod gpu;
mod hostile;
mod limits;
mod link;
mod memory;
mod process;
mod tree;

use pinlane_driver::{DeviceInfo, PciAddress, Version};
use pinlane_report::{DoctorFinding, DoctorStatus};

use super::checks;
use super::facts::Facts;
use super::facts::gpu::{Gpu, GpuFacts, LoadedLink};
use crate::system::nvml::{ComputeMode, GpuState};
use crate::system::pcie::Link;
use tree::Tree;

const PCI: PciAddress = PciAddress {
    domain: 0,
    bus: 1,
    device: 0,
};

/// A link at full speed.
const LINK: Link = Link {
    generation: 5,
    width: 16,
    max_generation: 5,
    max_width: 16,
};

/// A GPU without problems.
fn healthy_gpu() -> Gpu {
    let mut info = DeviceInfo::new(0, "NVIDIA H200");
    info.pci = Some(PCI);
    info.driver_version = Version {
        major: 13,
        minor: 0,
    };
    Gpu {
        info,
        pci: None,
        state: GpuState {
            link: Some(LINK),
            replays: Some(3),
            compute_mode: Some(ComputeMode::Shared),
            persistence: Some(true),
            confidential: Some(false),
            processes: Some(Vec::new()),
            mps: Some(false),
        },
        load: Ok(LoadedLink {
            link: Some(LINK),
            replays: Some(0),
        }),
        rates_gb_per_s: None,
    }
}

fn gpus(gpus: Vec<Gpu>) -> GpuFacts {
    GpuFacts {
        count: gpus.len(),
        gpus,
        error: None,
        required: false,
        management: Ok(Some("580.159.03".to_owned())),
    }
}

/// The machine in the folder with this GPU, whose PCI facts are read from the folder.
fn facts(tree: &Tree, mut gpu: Gpu) -> Facts {
    let host = tree.host(&[]);
    gpu.pci = host.pci_gpu(&PCI.to_string()).cloned();
    Facts {
        host,
        gpus: gpus(vec![gpu]),
    }
}

/// The finding of a check.
#[track_caller]
fn found(facts: &Facts, check: &str) -> DoctorFinding {
    let mut all = checks::run_all(facts).into_iter();
    let finding = all.find(|finding| finding.check == check);
    finding.unwrap_or_else(|| panic!("no check is called {check}"))
}

#[track_caller]
fn good<const N: usize>(facts: &Facts, check: &str, parts: [&str; N]) {
    expect(facts, check, DoctorStatus::Ok, &parts);
}

#[track_caller]
fn warns<const N: usize>(facts: &Facts, check: &str, parts: [&str; N]) {
    expect(facts, check, DoctorStatus::Warn, &parts);
}

#[track_caller]
fn fails<const N: usize>(facts: &Facts, check: &str, parts: [&str; N]) {
    expect(facts, check, DoctorStatus::Fail, &parts);
}

#[track_caller]
fn skips<const N: usize>(facts: &Facts, check: &str, parts: [&str; N]) {
    expect(facts, check, DoctorStatus::Skip, &parts);
}

/// The check has this status, and its finding and remedy contain all parts.
#[track_caller]
fn expect(facts: &Facts, check: &str, status: DoctorStatus, parts: &[&str]) {
    let finding = found(facts, check);
    let remedy = finding.remedy.clone().unwrap_or_default();
    let text = format!("{}\n{remedy}", finding.seen);
    assert_eq!(finding.status, status, "{text}");
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    let needs_remedy = matches!(status, DoctorStatus::Warn | DoctorStatus::Fail);
    assert_eq!(finding.remedy.is_some(), needs_remedy, "{text}");
    assert_eq!(finding.weight > 0, needs_remedy, "{text}");
}

#[test]
fn a_healthy_machine_has_no_warnings() {
    let facts = facts(&Tree::healthy(), healthy_gpu());
    for finding in checks::run_all(&facts) {
        assert_eq!(finding.status, DoctorStatus::Ok, "{finding:?}");
        assert_eq!(finding.remedy, None, "{finding:?}");
    }
    let report = super::examine(&facts);
    assert!(report.is_good());
    assert_eq!(report.devices, ["NVIDIA H200"]);
}

#[test]
fn check_names_are_unique() {
    let facts = facts(&Tree::healthy(), healthy_gpu());
    let mut names: Vec<_> = checks::run_all(&facts)
        .into_iter()
        .map(|f| f.check)
        .collect();
    names.sort();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}
