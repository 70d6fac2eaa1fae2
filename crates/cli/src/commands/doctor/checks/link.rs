//! The link between host and GPU.

use super::{Check, DoctorGroup, Finding, Gpu, GpuFacts, HostFacts, gpu};
use crate::system::pci::{Link, LinkSpeed, payload_limit_gb_per_s};

const SIMULATED_LINK: Check = Check(DoctorGroup::Link, "link");
const PCIE_LINK: Check = Check(DoctorGroup::Link, "PCIe link");
const GENERATION: Check = Check(DoctorGroup::Link, "link generation");
const WIDTH: Check = Check(DoctorGroup::Link, "link width");
const SLOT: Check = Check(DoctorGroup::Link, "slot");
const ERRORS: Check = Check(DoctorGroup::Link, "link errors");
const IOMMU: Check = Check(DoctorGroup::Link, "IOMMU");
const NUMA_NODE: Check = Check(DoctorGroup::Link, "NUMA node");

const RESEAT: &str = "reseat the card, and check riser, cable and the slot's firmware settings \
                      (bifurcation, link speed: auto)";

pub(super) fn of_gpu(gpu: &Gpu, host: &HostFacts) -> Vec<Finding> {
    if gpu.info.simulated.is_some() {
        return vec![simulated(gpu)];
    }
    let mut findings = speed(gpu);
    findings.extend([slot(gpu), errors(gpu), numa_node(gpu, host)]);
    findings
}

pub(super) fn of_host(host: &HostFacts, gpus: &GpuFacts) -> Vec<Finding> {
    let mut findings = vec![iommu(host, gpus)];
    if gpus.gpus.is_empty() {
        findings.insert(0, PCIE_LINK.skip("no GPU to check"));
    }
    findings
}

fn simulated(gpu: &Gpu) -> Finding {
    let rate = |gb_per_s: Option<f64>| match gb_per_s {
        Some(rate) => format!("{rate:.1} GB/s"),
        None => "no cost".to_owned(),
    };
    let Some(rates) = gpu.rates_gb_per_s else {
        return SIMULATED_LINK.skip("the simulated libcuda does not report it");
    };
    let [up, down] = rates.map(rate);
    let rates = format!("{up} to the device, {down} from it");
    SIMULATED_LINK.ok(format!("pinned memory, by the profile: {rates}"))
}

/// The link under load, or else idle; from the management library, or else from the kernel.
fn speed(gpu: &Gpu) -> Vec<Finding> {
    let loaded = gpu.load.as_ref().ok().and_then(|load| load.link);
    let known = loaded.or(gpu.state.link);
    match known.or_else(|| gpu.pci.as_ref()?.link()) {
        Some(link) => vec![generation(link, loaded.is_some()), width(link)],
        None => vec![PCIE_LINK.unknown()],
    }
}

fn generation(link: Link, under_load: bool) -> Finding {
    let (now, most) = (link.generation, link.max_generation);
    if now >= most {
        let limit = payload_limit_gb_per_s(now, link.width);
        let limit = limit.map_or_else(String::new, |rate| format!(", at most {rate:.0} GB/s"));
        return GENERATION.ok(format!("PCIe {now} x{}{limit}", link.width));
    }
    let seen = format!("PCIe {now}, but card and slot support PCIe {most}");
    if under_load {
        let seen = format!("{seen}, under load");
        return GENERATION.warn(seen, RESEAT, 90);
    }
    // Idle GPUs lower the generation to save power.
    let why = "idle GPUs slow down, and this one could not be put under load";
    GENERATION.skip(format!("{seen}; {why}"))
}

fn width(link: Link) -> Finding {
    let (now, most) = (link.width, link.max_width);
    if now >= most {
        return WIDTH.ok(format!("x{now}"));
    }
    let share = f64::from(now) / f64::from(most) * 100.0;
    let seen = format!("x{now} of x{most}: {share:.0}% of the rate that card and slot support");
    WIDTH.warn(seen, RESEAT, 92)
}

fn slot(gpu: &Gpu) -> Finding {
    let pci = gpu.pci.as_ref();
    let ends = pci.and_then(|pci| Some((pci.card?, pci.credible_slot()?)));
    let Some((card, slot)) = ends else {
        return SLOT.unknown();
    };
    let text = |speed: LinkSpeed| format!("PCIe {} x{}", speed.generation, speed.width);
    if slot.generation >= card.generation && slot.width >= card.width {
        return SLOT.ok(format!("{}, as fast as the card", text(slot)));
    }
    let seen = format!("{}, slower than the card's {}", text(slot), text(card));
    SLOT.warn(seen, "move the card to a faster slot, if there is one", 60)
}

fn errors(gpu: &Gpu) -> Finding {
    let under_load = gpu.load.as_ref().ok().and_then(|load| load.replays);
    let resent = |count| format!("{count} packets resent during a short copy");
    match (under_load, gpu.state.replays) {
        (Some(count @ 1..), _) => ERRORS.warn(resent(count.to_string()), RESEAT, 85),
        (Some(0), Some(before)) => ERRORS.ok(resent("no".into()) + &format!(", {before} before")),
        _ => ERRORS.skip(format!("GPU {} does not report them", gpu::id(gpu))),
    }
}

/// Whether an IOMMU translates DMA.
fn iommu(host: &HostFacts, gpus: &GpuFacts) -> Finding {
    const REMEDY: &str = "add iommu=pt to the kernel's command line (GRUB_CMDLINE_LINUX in \
                          /etc/default/grub, then `sudo update-grub`) and reboot";
    let gpus = gpus.gpus.iter();
    let modes = gpus.filter_map(|gpu| gpu.pci.as_ref()?.iommu.as_deref());
    let modes: Vec<&str> = modes.collect();
    if let Some(mode) = modes.iter().find(|mode| mode.starts_with("DMA")) {
        let seen = format!("translates the GPU's accesses ({mode}), which slows pinning down");
        return IOMMU.warn(seen, REMEDY, 35);
    }
    if modes.contains(&"identity") {
        return IOMMU.ok("on, in passthrough mode for the GPU (identity)");
    }
    if host.iommus.is_empty() {
        return IOMMU.ok("none active");
    }
    let Some(args) = &host.kernel_args else {
        return IOMMU.skip("on; mode unknown");
    };
    let passes = |arg: &str| {
        let off = ["intel_iommu=off", "amd_iommu=off"].contains(&arg);
        off || ["iommu=pt", "iommu.passthrough=1"].contains(&arg)
    };
    if args.split_whitespace().any(passes) {
        return IOMMU.ok("on, in passthrough mode (iommu=pt)");
    }
    let seen = "on, may translate the GPU's accesses";
    IOMMU.warn(seen, REMEDY, 15)
}

/// Whether the process runs on the GPU's NUMA node.
fn numa_node(gpu: &Gpu, host: &HostFacts) -> Finding {
    if host.nodes.len() == 1 {
        return NUMA_NODE.ok("the machine has only one");
    }
    let by_kernel = gpu.pci.as_ref().and_then(|pci| pci.numa_node);
    let Some(number) = by_kernel.or(gpu.info.numa_node) else {
        return NUMA_NODE.unknown();
    };
    let (Some(node), Some(cpus)) = (host.node(number), &host.cpus) else {
        let seen = format!("the GPU is on node {number}, whose CPUs are unknown");
        return NUMA_NODE.skip(seen);
    };
    let (near, all) = (cpus.count_common(&node.cpus), cpus.count());
    let memory_nodes = host.memory_nodes.as_ref();
    let (problem, weight) = if near == 0 {
        (format!("but this process runs elsewhere (CPUs {cpus})"), 88)
    } else if memory_nodes.is_some_and(|nodes| !nodes.contains(number)) {
        ("whose memory this process may not use".to_owned(), 87)
    } else if near < all {
        let seen = format!("as are {near} of the {all} CPUs that this process may use");
        (seen, 30)
    } else {
        return NUMA_NODE.ok(format!("the process runs on the GPU's node {number}"));
    };
    let remedy = format!(
        "numactl --cpunodebind={number} --membind={number} pinlane …; for a container: `docker run \
         --cpuset-cpus={} --cpuset-mems={number} …`",
        node.cpus
    );
    let seen = format!("the GPU is on node {number}, {problem}");
    NUMA_NODE.warn(seen, remedy, weight)
}
