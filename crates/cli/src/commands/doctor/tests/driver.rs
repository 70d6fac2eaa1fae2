//! The driver and what stands in its way.

use pinlane_driver::{Error, ErrorKind};
use pinlane_report::DoctorStatus::{Fail, Ok as Good, Skip, Warn};

use super::*;

const BUS: &str = "sys/bus/pci/devices/0000:01:00.0";
const MODULE: &str = "proc/driver/nvidia/version";

fn without_gpu(tree: &Tree, kind: ErrorKind, demanded: bool, variables: &[(&str, &str)]) -> Facts {
    Facts {
        host: tree.host(variables),
        gpus: Gpus {
            gpus: Vec::new(),
            count: 0,
            absent: Some(Error::new(kind, "cuInit")),
            demanded,
            management: Err("no GPU".to_owned()),
        },
    }
}

#[test]
fn versions_are_told() {
    let facts = facts(&Tree::healthy(), healthy_gpu());
    expect(&facts, "CUDA driver", Good, &["CUDA 13.0", "580.159.03"]);
    expect(&facts, "kernel module", Good, &["580.159.03"]);
    expect(&facts, "GPUs", Good, &["1 GPU: NVIDIA H200"]);
    expect(&facts, "device files", Good, &["1 GPU"]);
}

#[test]
fn the_closed_module_is_read_too() {
    let line = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12\n";
    let facts = facts(&Tree::healthy().with(MODULE, line), healthy_gpu());
    expect(&facts, "kernel module", Good, &["535.183.01"]);
}

#[test]
fn no_gpu_is_wrong_only_where_one_was_asked_for() {
    let tree = Tree::empty();
    let auto = without_gpu(&tree, ErrorKind::NoDriver, false, &[]);
    expect(
        &auto,
        "CUDA driver",
        Warn,
        &["simulated devices only", "--device sim"],
    );
    expect(&auto, "PCIe link", Skip, &["no GPU"]);
    assert!(crate::doctor::examine(&auto).is_good());
    let cuda = without_gpu(&tree, ErrorKind::NoDriver, true, &[]);
    expect(&cuda, "CUDA driver", Fail, &["no CUDA driver library"]);
    assert!(!crate::doctor::examine(&cuda).is_good());
}

#[test]
fn the_remedy_fits_what_is_there() {
    let absent = |tree: Tree| without_gpu(&tree, ErrorKind::NoDriver, false, &[]);
    let bare = absent(Tree::healthy().without(MODULE));
    expect(
        &bare,
        "CUDA driver",
        Warn,
        &["install NVIDIA's driver", "modprobe"],
    );
    expect(&bare, "kernel module", Warn, &["not loaded", "1 GPU"]);
    let container = absent(Tree::healthy().without("dev").with(".dockerenv", ""));
    expect(
        &container,
        "CUDA driver",
        Warn,
        &["start the container with its GPUs", "--gpus all"],
    );
    expect(
        &container,
        "device files",
        Warn,
        &["/dev/nvidiactl", "--gpus all"],
    );
    let unknown = absent(Tree::empty().with(".dockerenv", ""));
    expect(&unknown, "CUDA driver", Warn, &["if the machine has a GPU"]);
    let wsl = absent(Tree::empty().with("proc/version", "Linux 5.15 Microsoft-standard-WSL2"));
    expect(&wsl, "CUDA driver", Warn, &["on Windows"]);
    expect(&wsl, "kernel module", Skip, &["WSL"]);
    let loaded = absent(Tree::healthy());
    expect(&loaded, "CUDA driver", Warn, &["libnvidia-compute"]);
}

#[test]
fn a_missing_device_file_is_named() {
    let tree = Tree::healthy().without("dev/nvidia-uvm");
    let absent = without_gpu(&tree, ErrorKind::NoDevice, true, &[]);
    expect(
        &absent,
        "device files",
        Fail,
        &["/dev/nvidia-uvm missing", "nvidia-modprobe"],
    );
    let working = facts(&tree, healthy_gpu());
    expect(&working, "device files", Skip, &[]);
}

#[test]
fn a_driver_that_cannot_be_used_is_wrong_in_any_case() {
    let old = ErrorKind::DriverTooOld {
        found: Version {
            major: 11,
            minor: 4,
        },
        needed: Version {
            major: 12,
            minor: 0,
        },
    };
    let facts = without_gpu(&Tree::healthy(), old, false, &[]);
    expect(
        &facts,
        "CUDA driver",
        Fail,
        &["11.4", "12.0", "update the NVIDIA driver"],
    );
    let other = ErrorKind::NoSuchDevice {
        ordinal: 7,
        count: 2,
    };
    let facts = without_gpu(&Tree::healthy(), other, true, &[]);
    expect(
        &facts,
        "CUDA driver",
        Fail,
        &["device 7 does not exist", "nvidia-smi"],
    );
}

#[test]
fn hidden_gpus_are_told() {
    for value in ["", "-1", "NoDevFiles", " ,0"] {
        let variables = [("CUDA_VISIBLE_DEVICES", value)];
        let facts = without_gpu(&Tree::healthy(), ErrorKind::NoDevice, false, &variables);
        expect(&facts, "CUDA driver", Warn, &["unset CUDA_VISIBLE_DEVICES"]);
        expect(&facts, "CUDA_VISIBLE_DEVICES", Warn, &["hides every GPU"]);
    }
    let variables = [("CUDA_VISIBLE_DEVICES", "0")];
    let elsewhere = without_gpu(&Tree::healthy(), ErrorKind::NoDevice, false, &variables);
    expect(&elsewhere, "CUDA_VISIBLE_DEVICES", Good, &["0"]);
    // One of two is shown.
    let mut some = facts(&Tree::healthy(), healthy_gpu());
    let other = some.host.pci[0].clone();
    some.host.pci.push(other);
    some.host.variables.visible_devices = Some("0".to_owned());
    expect(
        &some,
        "GPUs",
        Good,
        &["CUDA_VISIBLE_DEVICES=0", "2 on the PCI bus"],
    );
}

#[test]
fn cards_of_others_and_sound_are_no_gpus() {
    for (file, text) in [("vendor", "0x1002"), ("class", "0x040300")] {
        let tree = Tree::healthy().with(&format!("{BUS}/{file}"), text);
        assert_eq!(tree.host(&[]).pci.len(), 0, "{text}");
    }
    assert_eq!(Tree::healthy().host(&[]).pci.len(), 1);
}

#[test]
fn a_silent_management_library_is_no_fault() {
    let mut facts = facts(&Tree::healthy(), healthy_gpu());
    facts.gpus.management = Err("libnvidia-ml.so.1 cannot be loaded".to_owned());
    expect(&facts, "management library", Skip, &["libnvidia-ml.so.1"]);
}
