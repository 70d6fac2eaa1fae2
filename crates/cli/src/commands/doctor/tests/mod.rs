//! Checks on fake machines: system files in a folder, and made-up GPUs.

mod cuda_environment;
mod driver;
mod fake_system_files;
mod gpu;
mod host;
mod hostile;
mod link;

use pinlane_driver::{DeviceInfo, PciAddress, Version};
use pinlane_report::{DoctorFinding, DoctorStatus};

use super::facts::gpu::{Gpu, GpuFacts, LoadedLink};
use super::{Facts, checks, examine};
use crate::system::nvml::{ComputeMode, GpuState};
use crate::system::pci::Link;
use fake_system_files::Tree;

const LINK: Link = Link {
    generation: 5,
    width: 16,
    max_generation: 5,
    max_width: 16,
};

fn healthy_gpu() -> Gpu {
    let mut info = DeviceInfo::new(0, "NVIDIA H200");
    let (domain, bus, device) = (0, 1, 0);
    info.pci = Some(PciAddress {
        domain,
        bus,
        device,
    });
    let (major, minor) = (13, 0);
    info.driver_version = Version { major, minor };
    Gpu {
        info,
        pci: None,
        state: GpuState {
            link: Some(LINK),
            replays: Some(3),
            compute_mode: Some(ComputeMode::Default),
            persistence: Some(true),
            confidential: Some(false),
            processes: Some(Vec::new()),
            mps: Some(false),
        },
        load: loaded(Some(LINK), Some(0)),
        rates_gb_per_s: None,
    }
}

fn loaded(link: Option<Link>, replays: Option<u32>) -> Result<LoadedLink, String> {
    Ok(LoadedLink { link, replays })
}

/// The machine in the folder with this GPU, whose PCI facts are read from the folder.
fn facts(tree: &Tree, mut gpu: Gpu) -> Facts {
    let host = tree.host(&[]);
    let address = gpu.info.pci.expect("an address").to_string();
    gpu.pci = host.pci_gpu(&address).cloned();
    let gpus = GpuFacts {
        count: 1,
        gpus: vec![gpu],
        error: None,
        required: false,
        management: Ok(Some("580.159.03".to_owned())),
    };
    Facts { host, gpus }
}

fn machine(tree: Tree) -> Facts {
    facts(&tree, healthy_gpu())
}

/// A healthy machine with this change to its GPU.
fn with_gpu(change: impl FnOnce(&mut Gpu)) -> Facts {
    let mut gpu = healthy_gpu();
    change(&mut gpu);
    facts(&Tree::healthy(), gpu)
}

fn with_file(path: &str, text: &str) -> Facts {
    machine(Tree::healthy().with(path, text))
}

fn with_variable(name: &str, value: &str) -> Facts {
    let mut facts = machine(Tree::healthy());
    facts.host = Tree::healthy().host(&[(name, value)]);
    facts
}

#[track_caller]
fn found(facts: &Facts, check: &str) -> Found {
    let mut all = checks::run_all(facts).into_iter();
    let finding = all.find(|finding| finding.check == check);
    Found(finding.unwrap_or_else(|| panic!("no check is called {check}")))
}

struct Found(DoctorFinding);

impl Found {
    #[track_caller]
    fn good<const N: usize>(&self, parts: [&str; N]) {
        self.has(DoctorStatus::Ok, &parts);
    }

    #[track_caller]
    fn warns<const N: usize>(&self, parts: [&str; N]) {
        self.has(DoctorStatus::Warn, &parts);
    }

    #[track_caller]
    fn fails<const N: usize>(&self, parts: [&str; N]) {
        self.has(DoctorStatus::Fail, &parts);
    }

    #[track_caller]
    fn skips<const N: usize>(&self, parts: [&str; N]) {
        self.has(DoctorStatus::Skip, &parts);
    }

    /// The check has this status, and its finding and remedy contain all parts.
    #[track_caller]
    fn has(&self, status: DoctorStatus, parts: &[&str]) {
        let Self(finding) = self;
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
}

fn names(facts: &Facts) -> Vec<String> {
    let findings = checks::run_all(facts).into_iter();
    findings.map(|finding| finding.check).collect()
}

#[test]
fn a_healthy_machine_has_no_warnings() {
    let facts = machine(Tree::healthy());
    for finding in checks::run_all(&facts) {
        assert_eq!(finding.status, DoctorStatus::Ok, "{finding:?}");
        assert_eq!(finding.remedy, None, "{finding:?}");
    }
    let report = examine(&facts);
    assert!(report.is_good());
    assert_eq!(report.devices, ["NVIDIA H200"]);
}

#[test]
fn check_names_are_unique() {
    let mut names = names(&machine(Tree::healthy()));
    names.sort();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}
