//! Facts about the host: kernel, memory, CPUs, and the limits of the process.

use std::fmt;

use pinlane::memory::{ControlGroups, GroupMemory};

use crate::system::pci::{self, PciGpu};
use crate::system::{SystemRoot, field, kib_field};

const NODES: &str = "sys/devices/system/node";
const HUGE_PAGES: &str = "sys/kernel/mm/transparent_hugepage";

/// The capability to lock any amount of memory.
const CAP_IPC_LOCK: u32 = 14;

/// The kernel cuts process names to 15 characters.
const MPS_NAME: &str = "nvidia-cuda-mps";

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NumaNode {
    pub(crate) number: u32,
    pub(crate) cpus: IdSet,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Memlock {
    Unlimited,
    Bytes(u64),
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct DeviceFiles {
    pub(crate) control: bool,
    pub(crate) memory: bool,
    pub(crate) gpus: usize,
}

/// Facts about the host; `None` if unknown.
#[derive(Debug)]
pub(crate) struct HostFacts {
    pub(crate) wsl: bool,
    pub(crate) container: bool,
    pub(crate) kernel_module: Option<String>,
    pub(crate) device_files: DeviceFiles,
    pub(crate) pci: Vec<PciGpu>,
    pub(crate) nodes: Vec<NumaNode>,
    pub(crate) cpus: Option<IdSet>,
    /// The NUMA nodes whose memory the process may use.
    pub(crate) memory_nodes: Option<IdSet>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) available_bytes: Option<u64>,
    /// The active setting of several.
    pub(crate) huge_pages: Option<String>,
    pub(crate) huge_page_defrag: Option<String>,
    pub(crate) group_memory: Option<GroupMemory>,
    pub(crate) group_cpus: Option<f64>,
    pub(crate) memlock: Option<Memlock>,
    pub(crate) may_lock: bool,
    pub(crate) iommus: Vec<String>,
    pub(crate) kernel_args: Option<String>,
    pub(crate) mps_daemon: bool,
    /// Environment variables.
    pub(crate) visible_devices: Option<String>,
    pub(crate) launch_blocking: Option<String>,
    pub(crate) mps_pipe: Option<String>,
    pub(crate) pinned_limit: Option<String>,
    /// The library's limit of pinned memory, or why it is unknown.
    pub(crate) budget_bytes: Result<u64, String>,
}

impl HostFacts {
    pub(crate) fn read(
        root: SystemRoot<'_>,
        variable: &dyn Fn(&str) -> Option<String>,
        budget_bytes: Result<u64, String>,
    ) -> Self {
        let status = root.text("proc/self/status").unwrap_or_default();
        let ids = |name| IdSet::parse(field(&status, name)?);
        let meminfo = root.text("proc/meminfo").unwrap_or_default();
        let kernel = root.text("proc/version").unwrap_or_default();
        let groups = ControlGroups::find(root.0);
        let setting =
            |name| Some(active_setting(&root.text(&format!("{HUGE_PAGES}/{name}"))?)?.to_owned());
        Self {
            wsl: kernel.to_ascii_lowercase().contains("microsoft"),
            container: root.has("run/.containerenv") || root.has(".dockerenv"),
            kernel_module: kernel_module(root),
            device_files: device_files(root),
            pci: pci::gpus(root),
            nodes: nodes(root),
            cpus: ids("Cpus_allowed_list"),
            memory_nodes: ids("Mems_allowed_list"),
            memory_bytes: kib_field(&meminfo, "MemTotal"),
            available_bytes: kib_field(&meminfo, "MemAvailable"),
            huge_pages: setting("enabled"),
            huge_page_defrag: setting("defrag"),
            group_memory: groups.memory(),
            group_cpus: groups.cpus(),
            memlock: memlock(&root.text("proc/self/limits").unwrap_or_default()),
            may_lock: field(&status, "CapEff")
                .and_then(|bits| u64::from_str_radix(bits, 16).ok())
                .is_some_and(|bits| bits >> CAP_IPC_LOCK & 1 == 1),
            iommus: root.names("sys/class/iommu"),
            kernel_args: root.text("proc/cmdline"),
            mps_daemon: mps_daemon(root),
            visible_devices: variable("CUDA_VISIBLE_DEVICES"),
            launch_blocking: variable("CUDA_LAUNCH_BLOCKING"),
            mps_pipe: variable("CUDA_MPS_PIPE_DIRECTORY"),
            pinned_limit: variable("PINLANE_PINNED_LIMIT"),
            budget_bytes,
        }
    }

    pub(crate) fn node(&self, number: u32) -> Option<&NumaNode> {
        self.nodes.iter().find(|node| node.number == number)
    }

    pub(crate) fn pci_gpu(&self, address: &str) -> Option<&PciGpu> {
        self.pci.iter().find(|gpu| gpu.address == address)
    }
}

/// `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.03  Tue …`; the open module has `for x86_64` before
/// its version.
fn kernel_module(root: SystemRoot<'_>) -> Option<String> {
    let text = root.text("proc/driver/nvidia/version")?;
    let line = text.lines().find(|line| line.starts_with("NVRM version"))?;
    let is_version =
        |word: &&str| word.contains('.') && word.split('.').all(|part| part.parse::<u32>().is_ok());
    line.split_whitespace().find(is_version).map(str::to_owned)
}

fn device_files(root: SystemRoot<'_>) -> DeviceFiles {
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

fn nodes(root: SystemRoot<'_>) -> Vec<NumaNode> {
    let node = |name: &String| {
        Some(NumaNode {
            number: name.strip_prefix("node")?.parse().ok()?,
            // Empty for a node without CPUs, which is skipped.
            cpus: IdSet::parse(&root.text(&format!("{NODES}/{name}/cpulist"))?)?,
        })
    };
    root.names(NODES).iter().filter_map(node).collect()
}

/// The setting in brackets: `always [madvise] never`.
fn active_setting(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0)
}

/// `Max locked memory  8388608  8388608  bytes`: the first is the soft limit, which applies.
fn memlock(limits: &str) -> Option<Memlock> {
    let mut lines = limits.lines();
    let rest = lines.find_map(|line| line.strip_prefix("Max locked memory"))?;
    match rest.split_whitespace().next()? {
        "unlimited" => Some(Memlock::Unlimited),
        bytes => bytes.parse().ok().map(Memlock::Bytes),
    }
}

fn mps_daemon(root: SystemRoot<'_>) -> bool {
    let is_process = |name: &&String| name.bytes().all(|byte| byte.is_ascii_digit());
    let names = root.names("proc");
    names.iter().filter(is_process).any(|pid| {
        let name = root.text(&format!("proc/{pid}/comm"));
        name.is_some_and(|name| name.starts_with(MPS_NAME))
    })
}

/// A set of CPUs or NUMA nodes, as sorted, disjoint ranges. In the kernel's notation: `0-3,8,10-11`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct IdSet(Vec<(u32, u32)>);

impl IdSet {
    /// `None` if the text is not a set.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut ranges = Vec::new();
        for part in text.trim().split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            if first > last {
                return None;
            }
            ranges.push((first, last));
        }
        ranges.sort_unstable();
        let mut joined: Vec<(u32, u32)> = Vec::new();
        for (first, last) in ranges {
            match joined.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => joined.push((first, last)),
            }
        }
        Some(Self(joined))
    }

    pub(crate) fn count(&self) -> u64 {
        let length = |(first, last): &(u32, u32)| u64::from(last - first) + 1;
        self.0.iter().map(length).sum()
    }

    pub(crate) fn contains(&self, number: u32) -> bool {
        let mut ranges = self.0.iter();
        ranges.any(|(first, last)| (*first..=*last).contains(&number))
    }

    pub(crate) fn count_common(&self, other: &Self) -> u64 {
        let mut common = 0;
        let (mut ours, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(our), Some(their)) = (ours.peek(), theirs.peek()) {
            let (first, last) = (our.0.max(their.0), our.1.min(their.1));
            if first <= last {
                common += u64::from(last - first) + 1;
            }
            if our.1 <= their.1 {
                ours.next();
            } else {
                theirs.next();
            }
        }
        common
    }
}

impl fmt::Display for IdSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (first, last)) in self.0.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> IdSet {
        IdSet::parse(text).expect(text)
    }

    #[test]
    fn ranges_are_joined_and_counted() {
        for (text, count, shown) in [
            ("0", 1, "0"),
            ("0-3,8,10-11\n", 7, "0-3,8,10-11"),
            ("4-7,0-3", 8, "0-7"),
            ("0-4294967295", 1 << 32, "0-4294967295"),
            ("1,1,1-2", 2, "1-2"),
        ] {
            let set = set(text);
            assert_eq!((set.count(), set.to_string().as_str()), (count, shown));
        }
        assert!(set("0-3,8").contains(8) && !set("0-3,8").contains(7));
    }

    #[test]
    fn intersections_are_counted_without_listing_them() {
        for (one, other, count) in [
            ("0-7", "4-11", 4),
            ("0-3", "4-7", 0),
            ("0,2,4,6", "0-6", 4),
            ("0-1,8-9", "1-8", 2),
            ("0-4294967295", "5-4294967295", (1 << 32) - 5),
        ] {
            assert_eq!(set(one).count_common(&set(other)), count);
            assert_eq!(set(other).count_common(&set(one)), count);
        }
    }

    #[test]
    fn junk_is_rejected() {
        for text in ["", " ", "a", "3-1", "1-", "-", "1,,2", "4294967296", "0x1"] {
            assert_eq!(IdSet::parse(text), None, "{text:?}");
        }
    }
}
