//! The host: its kernel, memory, CPUs, and what the process may use of them.

use pinlane::memory::{ControlGroups, GroupMemory};

use super::cpus::Numbers;
use super::files::{Root, field};
use super::pci::{self, PciGpu};

const NODES: &str = "sys/devices/system/node";
const HUGE_PAGES: &str = "sys/kernel/mm/transparent_hugepage";

/// The bit of a process that may lock as much memory as it likes.
const CAP_IPC_LOCK: u32 = 14;

/// Kernels cut the names of processes after 15 characters.
const MPS_NAME: &str = "nvidia-cuda-mps";

/// A NUMA node with its CPUs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Node {
    pub(crate) number: u32,
    pub(crate) cpus: Numbers,
}

/// RLIMIT_MEMLOCK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Memlock {
    Unlimited,
    Bytes(u64),
}

/// The files through which programs reach the kernel's part of the driver.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct DeviceFiles {
    pub(crate) control: bool,
    pub(crate) memory: bool,
    pub(crate) gpus: usize,
}

/// Variables of the environment that matter.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Variables {
    pub(crate) visible_devices: Option<String>,
    pub(crate) launch_blocking: Option<String>,
    pub(crate) mps_pipe: Option<String>,
    pub(crate) pinned_limit: Option<String>,
}

/// Everything about the host. `None` is what it does not tell.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) wsl: bool,
    pub(crate) container: bool,
    /// Version of the driver's part in the kernel.
    pub(crate) module: Option<String>,
    pub(crate) device_files: DeviceFiles,
    pub(crate) pci: Vec<PciGpu>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) cpus: Option<Numbers>,
    /// NUMA nodes whose memory the process may use.
    pub(crate) memory_nodes: Option<Numbers>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) available_bytes: Option<u64>,
    /// The chosen word of several.
    pub(crate) huge_pages: Option<String>,
    pub(crate) huge_page_defrag: Option<String>,
    pub(crate) group_memory: Option<GroupMemory>,
    pub(crate) group_cpus: Option<f64>,
    pub(crate) memlock: Option<Memlock>,
    pub(crate) may_lock: bool,
    pub(crate) iommus: Vec<String>,
    pub(crate) kernel_words: Option<Vec<String>>,
    pub(crate) mps_daemon: bool,
    pub(crate) variables: Variables,
    /// What the library would page-lock at most, or why it cannot tell.
    pub(crate) budget_bytes: Result<u64, String>,
}

impl Host {
    /// `root` is `/`, except in tests.
    pub(crate) fn read(
        root: Root<'_>,
        variable: &dyn Fn(&str) -> Option<String>,
        budget_bytes: Result<u64, String>,
    ) -> Self {
        let status = root.text("proc/self/status").unwrap_or_default();
        let numbers = |name| Numbers::parse(field(&status, name)?);
        let meminfo = root.text("proc/meminfo").unwrap_or_default();
        let groups = ControlGroups::find(root.0);
        let chosen = |name| Some(chosen(&root.text(&format!("{HUGE_PAGES}/{name}"))?)?.to_owned());
        Self {
            wsl: is_wsl(root),
            container: ["run/.containerenv", ".dockerenv"]
                .iter()
                .any(|file| root.has(file)),
            module: module(root),
            device_files: device_files(root),
            pci: pci::gpus(root),
            nodes: nodes(root),
            cpus: numbers("Cpus_allowed_list"),
            memory_nodes: numbers("Mems_allowed_list"),
            memory_bytes: kib(&meminfo, "MemTotal"),
            available_bytes: kib(&meminfo, "MemAvailable"),
            huge_pages: chosen("enabled"),
            huge_page_defrag: chosen("defrag"),
            group_memory: groups.memory(),
            group_cpus: groups.cpus(),
            memlock: memlock(&root.text("proc/self/limits").unwrap_or_default()),
            may_lock: field(&status, "CapEff")
                .and_then(|bits| u64::from_str_radix(bits, 16).ok())
                .is_some_and(|bits| bits >> CAP_IPC_LOCK & 1 == 1),
            iommus: root.names("sys/class/iommu"),
            kernel_words: root
                .text("proc/cmdline")
                .map(|line| line.split_whitespace().map(str::to_owned).collect()),
            mps_daemon: mps_daemon(root),
            variables: Variables {
                visible_devices: variable("CUDA_VISIBLE_DEVICES"),
                launch_blocking: variable("CUDA_LAUNCH_BLOCKING"),
                mps_pipe: variable("CUDA_MPS_PIPE_DIRECTORY"),
                pinned_limit: variable("PINLANE_PINNED_LIMIT"),
            },
            budget_bytes,
        }
    }

    /// The node of this number.
    pub(crate) fn node(&self, number: u32) -> Option<&Node> {
        self.nodes.iter().find(|node| node.number == number)
    }

    /// The GPU at this address.
    pub(crate) fn pci_gpu(&self, address: &str) -> Option<&PciGpu> {
        self.pci.iter().find(|gpu| gpu.address == address)
    }
}

/// Memory that the process can still get: what the system has left, or its control group.
pub(crate) fn available_bytes(root: Root<'_>) -> Option<u64> {
    let of_system = kib(&root.text("proc/meminfo")?, "MemAvailable");
    let of_group = ControlGroups::find(root.0).memory();
    let of_group = of_group.map(|memory| memory.headroom_bytes);
    of_system.into_iter().chain(of_group).min()
}

fn is_wsl(root: Root<'_>) -> bool {
    let version = root.text("proc/version").unwrap_or_default();
    version.to_ascii_lowercase().contains("microsoft")
}

/// `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.03  Tue …`; the open one has `for x86_64`
/// before its version.
fn module(root: Root<'_>) -> Option<String> {
    let text = root.text("proc/driver/nvidia/version")?;
    let line = text.lines().find(|line| line.starts_with("NVRM version"))?;
    let is_version =
        |word: &&str| word.contains('.') && word.split('.').all(|part| part.parse::<u32>().is_ok());
    line.split_whitespace().find(is_version).map(str::to_owned)
}

fn device_files(root: Root<'_>) -> DeviceFiles {
    let names = root.names("dev");
    let is_gpu = |name: &&String| {
        let number = name.strip_prefix("nvidia");
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    DeviceFiles {
        control: names.iter().any(|name| name == "nvidiactl"),
        memory: names.iter().any(|name| name == "nvidia-uvm"),
        gpus: names.iter().filter(is_gpu).count(),
    }
}

fn nodes(root: Root<'_>) -> Vec<Node> {
    let node = |name: &String| {
        Some(Node {
            number: name.strip_prefix("node")?.parse().ok()?,
            // A node of memory alone has an empty list.
            cpus: Numbers::parse(&root.text(&format!("{NODES}/{name}/cpulist"))?)?,
        })
    };
    root.names(NODES).iter().filter_map(node).collect()
}

/// `MemTotal:  24682416 kB`, in bytes.
fn kib(meminfo: &str, name: &str) -> Option<u64> {
    let number = field(meminfo, name)?.strip_suffix("kB")?.trim();
    number.parse::<u64>().ok()?.checked_mul(1024)
}

/// The word in brackets: `always [madvise] never`.
fn chosen(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0)
}

/// `Max locked memory  8388608  8388608  bytes`: the first is the one that counts.
fn memlock(limits: &str) -> Option<Memlock> {
    let rest = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max locked memory"))?;
    match rest.split_whitespace().next()? {
        "unlimited" => Some(Memlock::Unlimited),
        bytes => bytes.parse().ok().map(Memlock::Bytes),
    }
}

/// Whether a process of MPS is to be seen.
fn mps_daemon(root: Root<'_>) -> bool {
    let is_process = |name: &&String| name.bytes().all(|byte| byte.is_ascii_digit());
    let names = root.names("proc");
    names.iter().filter(is_process).any(|pid| {
        let name = root.text(&format!("proc/{pid}/comm"));
        name.is_some_and(|name| name.starts_with(MPS_NAME))
    })
}
