//! Unexpected file contents: no check panics, hangs or uses much memory.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use pinlane_report::{DoctorStyle, Environment};

use super::fake_system_files::{GPU, healthy_files};
use super::*;

/// Every file that a check reads.
fn paths() -> Vec<String> {
    let group = ["proc/self/cgroup", "proc/self/mountinfo"];
    let limits = ["sys/fs/cgroup/memory.max", "sys/fs/cgroup/cpu.max"];
    let healthy = healthy_files().map(|(path, _)| path);
    let all = healthy.chain(group.into_iter().chain(limits).map(str::to_owned));
    all.chain([format!("{GPU}/iommu_group/type")]).collect()
}

/// Every check finishes, and the report can be printed.
fn survives(tree: &Tree) {
    let mut gpu = healthy_gpu();
    gpu.state = GpuState::default();
    let report = examine(&facts(tree, gpu));
    assert!(report.findings.len() > 15);
    let text = report.to_text(DoctorStyle::default());
    assert!(!text.contains('\u{1b}') && text.len() < 1 << 20);
    serde_json::from_str::<serde_json::Value>(&report.to_json(&Environment::default()))
        .expect("valid JSON");
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
        let place = tree.path(&path);
        // Root can still read it, which does no harm.
        fs::set_permissions(&place, fs::Permissions::from_mode(0o000)).expect("it is there");
        survives(&tree);
        fs::remove_file(&place).expect("it is there");
        survives(&tree);
        fs::create_dir(&place).expect("nothing is there");
        survives(&tree);
        fs::remove_dir(&place).expect("it is there");
        // A link to an endless file, and one to itself.
        for target in ["/dev/zero".as_ref(), place.as_path()] {
            symlink(target, &place).expect("nothing is there");
            survives(&tree);
            fs::remove_file(&place).expect("it is there");
        }
    }
}

#[test]
fn facts_of_a_gpu_at_their_limits() {
    const MAX: u32 = u32::MAX;
    let mut gpu = healthy_gpu();
    let huge = Link {
        generation: MAX,
        width: MAX,
        max_generation: MAX,
        max_width: MAX,
    };
    gpu.info = DeviceInfo::new(MAX, "\u{1b}[2J\n");
    gpu.info.pci = Some(PciAddress {
        domain: MAX,
        bus: MAX,
        device: MAX,
    });
    gpu.info.numa_node = Some(MAX);
    gpu.state.link = Some(huge);
    gpu.state.replays = Some(MAX);
    gpu.load = loaded(Some(huge), Some(MAX));
    let report = examine(&facts(&Tree::healthy(), gpu));
    assert!(!report.to_text(DoctorStyle::default()).contains('\u{1b}'));
}
