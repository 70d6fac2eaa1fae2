//! The driver and its problems.

use super::*;
use pinlane_driver::{Error, ErrorKind};

const BUS: &str = "sys/bus/pci/devices/0000:01:00.0";
const MODULE: &str = "proc/driver/nvidia/version";

fn without_gpu(tree: &Tree, kind: ErrorKind, required: bool, variables: &[(&str, &str)]) -> Facts {
    let error = Error::new(kind, "cuInit");
    Facts {
        host: tree.host(variables),
        gpus: GpuFacts::none(error, required),
    }
}

#[test]
fn versions_are_reported() {
    let facts = machine(Tree::healthy());
    found(&facts, "CUDA driver").good(["CUDA 13.0", "580.159.03"]);
    found(&facts, "kernel module").good(["580.159.03"]);
    found(&facts, "GPUs").good(["1 GPU: NVIDIA H200"]);
    found(&facts, "device files").good(["1 GPU"]);
}

#[test]
fn the_closed_module_is_recognized() {
    let line = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12\n";
    found(&with_file(MODULE, line), "kernel module").good(["535.183.01"]);
}

#[test]
fn a_missing_gpu_fails_only_if_it_was_named() {
    let tree = Tree::empty();
    let auto = without_gpu(&tree, ErrorKind::NoDriver, false, &[]);
    found(&auto, "CUDA driver").warns(["simulated devices only", "--device sim"]);
    found(&auto, "PCIe link").skips(["no GPU"]);
    assert!(examine(&auto).is_good());
    let cuda = without_gpu(&tree, ErrorKind::NoDriver, true, &[]);
    found(&cuda, "CUDA driver").fails(["no CUDA driver library"]);
    assert!(!examine(&cuda).is_good());
}

#[test]
fn the_remedy_fits_the_machine() {
    let absent = |tree: Tree| without_gpu(&tree, ErrorKind::NoDriver, false, &[]);
    let bare = absent(Tree::healthy().without(MODULE));
    found(&bare, "CUDA driver").warns(["install NVIDIA's driver", "modprobe"]);
    found(&bare, "kernel module").warns(["not loaded", "1 GPU"]);
    let container = absent(Tree::healthy().without("dev").with(".dockerenv", ""));
    found(&container, "CUDA driver").warns(["start the container with its GPUs", "--gpus all"]);
    found(&container, "device files").warns(["/dev/nvidiactl", "--gpus all"]);
    let unknown = absent(Tree::empty().with(".dockerenv", ""));
    found(&unknown, "CUDA driver").warns(["if the machine has a GPU"]);
    let wsl = absent(Tree::empty().with("proc/version", "Linux 5.15 Microsoft-standard-WSL2"));
    found(&wsl, "CUDA driver").warns(["on Windows"]);
    found(&wsl, "kernel module").skips(["WSL"]);
    found(&absent(Tree::healthy()), "CUDA driver").warns(["libnvidia-compute"]);
}

#[test]
fn a_missing_device_file_is_named() {
    let tree = Tree::healthy().without("dev/nvidia-uvm");
    let absent = without_gpu(&tree, ErrorKind::NoDevice, true, &[]);
    found(&absent, "device files").fails(["/dev/nvidia-uvm missing", "nvidia-modprobe"]);
    found(&machine(tree), "device files").skips([]);
}

#[test]
fn an_unusable_driver_always_fails() {
    let version = |major, minor| Version { major, minor };
    let (found_version, needed) = (version(11, 4), version(12, 0));
    let old = ErrorKind::DriverTooOld {
        found: found_version,
        needed,
    };
    let facts = without_gpu(&Tree::healthy(), old, false, &[]);
    found(&facts, "CUDA driver").fails(["11.4", "12.0", "update the NVIDIA driver"]);
    let (ordinal, count) = (7, 2);
    let other = ErrorKind::NoSuchDevice { ordinal, count };
    let facts = without_gpu(&Tree::healthy(), other, true, &[]);
    found(&facts, "CUDA driver").fails(["device 7 does not exist", "nvidia-smi"]);
}

#[test]
fn hidden_gpus_are_reported() {
    let visible = |value| {
        let variables = [("CUDA_VISIBLE_DEVICES", value)];
        without_gpu(&Tree::healthy(), ErrorKind::NoDevice, false, &variables)
    };
    for value in ["", "-1", "NoDevFiles", " ,0"] {
        found(&visible(value), "CUDA driver").warns(["unset CUDA_VISIBLE_DEVICES"]);
        found(&visible(value), "CUDA_VISIBLE_DEVICES").warns(["hides every GPU"]);
    }
    found(&visible("0"), "CUDA_VISIBLE_DEVICES").good(["0"]);
    // One of two GPUs is visible.
    let mut some = with_variable("CUDA_VISIBLE_DEVICES", "0");
    let other = some.host.pci[0].clone();
    some.host.pci.push(other);
    found(&some, "GPUs").good(["CUDA_VISIBLE_DEVICES=0", "2 on the PCI bus"]);
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
    let mut facts = machine(Tree::healthy());
    facts.gpus.management = Err("cannot load libnvidia-ml.so.1".to_owned());
    found(&facts, "management library").skips(["libnvidia-ml.so.1"]);
}
