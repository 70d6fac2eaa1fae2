//! Unexpected file contents: no check panics, hangs or uses much memory.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use pinlane_report::DoctorStyle;

use super::tree::{GPU, SLOT};
use super::*;

const FILES: &[&str] = &[
    "proc/version",
    "proc/cmdline",
    "proc/meminfo",
    "proc/self/status",
    "proc/self/limits",
    "proc/self/cgroup",
    "proc/self/mountinfo",
    "proc/1/comm",
    "proc/driver/nvidia/version",
    "sys/kernel/mm/transparent_hugepage/enabled",
    "sys/kernel/mm/transparent_hugepage/defrag",
    "sys/devices/system/node/node0/cpulist",
    "sys/devices/system/node/node1/cpulist",
    "sys/fs/cgroup/memory.max",
    "sys/fs/cgroup/cpu.max",
];

const GPU_FILES: &[&str] = &[
    "vendor",
    "class",
    "numa_node",
    "current_link_speed",
    "current_link_width",
    "max_link_speed",
    "max_link_width",
    "iommu_group/type",
];

fn paths() -> Vec<String> {
    let gpu = GPU_FILES.iter().map(|name| format!("{GPU}/{name}"));
    let slot = ["max_link_speed", "max_link_width"].map(|name| format!("{SLOT}/{name}"));
    let host = FILES.iter().map(|path| (*path).to_owned());
    host.chain(gpu).chain(slot).collect()
}

/// Every check finishes, and the report can be printed.
fn survives(tree: &Tree) {
    let mut gpu = healthy_gpu();
    gpu.state = GpuState::default();
    let report = crate::commands::doctor::examine(&facts(tree, gpu));
    assert!(report.findings.len() > 15);
    let text = report.to_text(DoctorStyle::default());
    assert!(!text.contains('\u{1b}') && text.len() < 1 << 20);
    serde_json::from_str::<serde_json::Value>(&report.to_json()).expect("valid JSON");
}

#[test]
fn an_empty_machine() {
    survives(&Tree::empty());
}

#[test]
fn each_file_with_junk() {
    let long = "9".repeat(1 << 17);
    let junk: [&[u8]; 11] = [
        b"",
        b"\n",
        b"\0\0\0\0",
        b"\xff\xfe\x80 \x1b[2J",
        b"-1",
        b"18446744073709551616",
        b"18446744073709551615 1",
        b"0-4294967295",
        b"Cpus_allowed_list: 0-4294967295,5\nMemAvailable: 18446744073709551615 kB\nMax locked memory 99999999999999999999 x",
        b"[]][[",
        long.as_bytes(),
    ];
    for path in paths() {
        let tree = Tree::healthy();
        for bytes in junk {
            tree.write(&path, bytes);
            survives(&tree);
        }
    }
    let all = Tree::healthy();
    for bytes in junk {
        for path in paths() {
            all.write(&path, bytes);
        }
        survives(&all);
    }
}

#[test]
fn each_file_missing_unreadable_or_special() {
    for path in paths() {
        let tree = Tree::healthy();
        tree.write(&path, "1");
        let place = tree.root().join(&path);
        // Root can still read it, which does no harm.
        fs::set_permissions(&place, fs::Permissions::from_mode(0o000)).expect("it is there");
        survives(&tree);
        fs::remove_file(&place).expect("it is there");
        survives(&tree);
        fs::create_dir(&place).expect("nothing is there");
        survives(&tree);
        fs::remove_dir(&place).expect("it is there");
        // A link to an endless file, and one to itself.
        symlink("/dev/zero", &place).expect("nothing is there");
        survives(&tree);
        fs::remove_file(&place).expect("it is there");
        symlink(&place, &place).expect("nothing is there");
        survives(&tree);
    }
}

#[test]
fn facts_of_a_gpu_at_their_limits() {
    let mut gpu = healthy_gpu();
    let huge = Link {
        generation: u32::MAX,
        width: u32::MAX,
        max_generation: u32::MAX,
        max_width: u32::MAX,
    };
    let mut info = DeviceInfo::new(u32::MAX, "\u{1b}[2J\n");
    info.pci = Some(PciAddress {
        domain: u32::MAX,
        bus: u32::MAX,
        device: u32::MAX,
    });
    info.numa_node = Some(u32::MAX);
    gpu.info = info;
    gpu.state.link = Some(huge);
    gpu.state.replays = Some(u32::MAX);
    gpu.load = Ok(LoadedLink {
        link: Some(huge),
        replays: Some(u32::MAX),
    });
    let report = crate::commands::doctor::examine(&facts(&Tree::healthy(), gpu));
    assert!(!report.to_text(DoctorStyle::default()).contains('\u{1b}'));
}
