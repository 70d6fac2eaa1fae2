//! The driver and its problems.

use super::*;
use pinlane_driver::{Error, ErrorKind};

const BUS: &str = "sys/bus/pci/devices/0000:01:00.0";
const MODULE: &str = "proc/driver/nvidia/version";

fn without_gpu(tree: &Tree, kind: ErrorKind, required: bool, variables: &[(&str, &str)]) -> Facts {
    Facts {
        host: tree.host(variables),
        gpus: GpuFacts {
            gpus: Vec::new(),
            count: 0,
            error: Some(Error::new(kind, "cuInit")),
            required,
            management: Err("no GPU".to_owned()),
        },
    }
}

#[test]
fn versions_are_reported() {
    let facts = facts(&Tree::healthy(), healthy_gpu());
    good(&facts, "CUDA driver", ["CUDA 13.0", "580.159.03"]);
    good(&facts, "kernel module", ["580.159.03"]);
    good(&facts, "GPUs", ["1 GPU: NVIDIA H200"]);
    good(&facts, "device files", ["1 GPU"]);
}

#[test]
fn the_closed_module_is_recognized() {
    let line = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12\n";
    let facts = facts(&Tree::healthy().with(MODULE, line), healthy_gpu());
    good(&facts, "kernel module", ["535.183.01"]);
}

#[test]
fn a_missing_gpu_fails_only_if_it_was_named() {
    let tree = Tree::empty();
    let auto = without_gpu(&tree, ErrorKind::NoDriver, false, &[]);
    warns(
        &auto,
        "CUDA driver",
        ["simulated devices only", "--device sim"],
    );
    skips(&auto, "PCIe link", ["no GPU"]);
    assert!(crate::commands::doctor::examine(&auto).is_good());
    let cuda = without_gpu(&tree, ErrorKind::NoDriver, true, &[]);
    fails(&cuda, "CUDA driver", ["no CUDA driver library"]);
    assert!(!crate::commands::doctor::examine(&cuda).is_good());
}

#[test]
fn the_remedy_fits_the_machine() {
    let absent = |tree: Tree| without_gpu(&tree, ErrorKind::NoDriver, false, &[]);
    let bare = absent(Tree::healthy().without(MODULE));
    warns(
        &bare,
        "CUDA driver",
        ["install NVIDIA's driver", "modprobe"],
    );
    warns(&bare, "kernel module", ["not loaded", "1 GPU"]);
    let container = absent(Tree::healthy().without("dev").with(".dockerenv", ""));
    warns(
        &container,
        "CUDA driver",
        ["start the container with its GPUs", "--gpus all"],
    );
    warns(&container, "device files", ["/dev/nvidiactl", "--gpus all"]);
    let unknown = absent(Tree::empty().with(".dockerenv", ""));
    warns(&unknown, "CUDA driver", ["if the machine has a GPU"]);
    let wsl = absent(Tree::empty().with("proc/version", "Linux 5.15 Microsoft-standard-WSL2"));
    warns(&wsl, "CUDA driver", ["on Windows"]);
    skips(&wsl, "kernel module", ["WSL"]);
    let loaded = absent(Tree::healthy());
    warns(&loaded, "CUDA driver", ["libnvidia-compute"]);
}

#[test]
fn a_missing_device_file_is_named() {
    let tree = Tree::healthy().without("dev/nvidia-uvm");
    let absent = without_gpu(&tree, ErrorKind::NoDevice, true, &[]);
    fails(
        &absent,
        "device files",
        ["/dev/nvidia-uvm missing", "nvidia-modprobe"],
    );
    let working = facts(&tree, healthy_gpu());
    skips(&working, "device files", []);
}

#[test]
fn an_unusable_driver_always_fails() {
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
    fails(
        &facts,
        "CUDA driver",
        ["11.4", "12.0", "update the NVIDIA driver"],
    );
    let other = ErrorKind::NoSuchDevice {
        ordinal: 7,
        count: 2,
    };
    let facts = without_gpu(&Tree::healthy(), other, true, &[]);
    fails(
        &facts,
        "CUDA driver",
        ["device 7 does not exist", "nvidia-smi"],
    );
}

#[test]
fn hidden_gpus_are_reported() {
    for value in ["", "-1", "NoDevFiles", " ,0"] {
        let variables = [("CUDA_VISIBLE_DEVICES", value)];
        let facts = without_gpu(&Tree::healthy(), ErrorKind::NoDevice, false, &variables);
        warns(&facts, "CUDA driver", ["unset CUDA_VISIBLE_DEVICES"]);
        warns(&facts, "CUDA_VISIBLE_DEVICES", ["hides every GPU"]);
    }
    let variables = [("CUDA_VISIBLE_DEVICES", "0")];
    let elsewhere = without_gpu(&Tree::healthy(), ErrorKind::NoDevice, false, &variables);
    good(&elsewhere, "CUDA_VISIBLE_DEVICES", ["0"]);
    // One of two GPUs is visible.
    let mut some = facts(&Tree::healthy(), healthy_gpu());
    let other = some.host.pci[0].clone();
    some.host.pci.push(other);
    some.host.variables.visible_devices = Some("0".to_owned());
    good(
        &some,
        "GPUs",
        ["CUDA_VISIBLE_DEVICES=0", "2 on the PCI bus"],
    );
}

#[test]
fn other_vendors_and_sound_cards_are_not_gpus() {
    for (file, text) in [("vendor", "0x1002"), ("class", "0x040300")] {
        let tree = Tree::healthy().with(&format!("{BUS}/{file}"), text);
        assert_eq!(tree.host(&[]).pci.len(), 0, "{text}");
    }
    assert_eq!(Tree::healthy().host(&[]).pci.len(), 1);
}

#[test]
fn a_missing_management_library_is_no_failure() {
    let mut facts = facts(&Tree::healthy(), healthy_gpu());
    facts.gpus.management = Err("cannot load libnvidia-ml.so.1".to_owned());
    skips(&facts, "management library", ["libnvidia-ml.so.1"]);
}
