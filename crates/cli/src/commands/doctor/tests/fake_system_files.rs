//! A folder with fake system files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use crate::commands::doctor::facts::host::HostFacts;
use crate::scratch::Scratch;
use crate::system::SystemRoot;

/// The folder of the GPU, below its slot.
pub(super) const GPU: &str = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0";
pub(super) const SLOT: &str = "sys/devices/pci0000:00/0000:00:01.0";

/// Each line is a path and its contents: two NUMA nodes with eight CPUs each; process and GPU are on the
/// second.
const HEALTHY: &str = r"
proc/version Linux version 6.8.0-45-generic (gcc) #1 SMP\n
proc/cmdline BOOT_IMAGE=/vmlinuz root=/dev/sda1 quiet\n
proc/meminfo MemTotal: 134217728 kB\nMemFree: 1 kB\nMemAvailable: 67108864 kB\n
proc/self/status CapEff:\t0000000000000000\nCpus_allowed_list:\t8-15\nMems_allowed_list:\t0-1\n
proc/self/limits Limit  Soft\nMax locked memory         unlimited            unlimited            bytes     \n
proc/1/comm systemd\n
proc/driver/nvidia/version NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build\nGCC version: 12\n
dev/nvidiactl
dev/nvidia-uvm
dev/nvidia0
sys/kernel/mm/transparent_hugepage/enabled always [madvise] never\n
sys/kernel/mm/transparent_hugepage/defrag always defer defer+madvise [madvise] never\n
sys/devices/system/node/node0/cpulist 0-7\n
sys/devices/system/node/node1/cpulist 8-15\n
GPU/vendor 0x10de\n
GPU/class 0x030200\n
GPU/numa_node 1\n
GPU/current_link_speed 32.0 GT/s PCIe\n
GPU/current_link_width 16\n
GPU/max_link_speed 32.0 GT/s PCIe\n
GPU/max_link_width 16\n
SLOT/max_link_speed 32.0 GT/s PCIe\n
SLOT/max_link_width 16\n";

pub(super) fn healthy_files() -> impl Iterator<Item = (String, String)> {
    HEALTHY.trim().lines().map(|line| {
        let (path, text) = line.split_once(' ').unwrap_or((line, ""));
        let path = path.replace("GPU", GPU).replace("SLOT", SLOT);
        (path, text.replace(r"\n", "\n").replace(r"\t", "\t"))
    })
}

pub(super) struct Tree(Scratch);

impl Tree {
    pub(super) fn empty() -> Self {
        Self(Scratch::new())
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.0.folder().join(path)
    }

    pub(super) fn healthy() -> Self {
        let tree = Self::empty();
        for (path, text) in healthy_files() {
            tree.write(&path, text);
        }
        let bus = tree.path("sys/bus/pci/devices");
        fs::create_dir_all(&bus).expect("a folder");
        symlink(tree.path(GPU), bus.join("0000:01:00.0")).expect("a link");
        tree
    }

    pub(super) fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }

    pub(super) fn with(self, path: &str, text: &str) -> Self {
        self.write(path, text);
        self
    }

    pub(super) fn without(self, path: &str) -> Self {
        let path = self.path(path);
        match path.is_dir() && !path.is_symlink() {
            true => fs::remove_dir_all(path),
            false => fs::remove_file(path),
        }
        .expect("it was there");
        self
    }

    /// The host, with these variables and a budget of 8 GiB.
    pub(super) fn host(&self, variables: &[(&str, &str)]) -> HostFacts {
        let variable = crate::test_variables(variables);
        HostFacts::read(SystemRoot(self.0.folder()), &variable, Ok(8 << 30))
    }
}
