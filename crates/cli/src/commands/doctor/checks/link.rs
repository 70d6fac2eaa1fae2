//! The link between host and GPU.

use pinlane_report::{DoctorFinding as Finding, DoctorGroup};

use super::{gpu, numa};
use crate::doctor::facts::gpu::{Gpu, Gpus};
use crate::doctor::facts::host::Host;
use crate::doctor::facts::pci::Best;
use crate::pcie::{Link, payload_limit_gb_per_s};

const GROUP: DoctorGroup = DoctorGroup::Link;

/// What to do about a card that is not seated well, after which its place is suspected.
const RESEAT: &str = "reseat the card, look at riser and cable, and at the slot's settings in the \
                      firmware (bifurcation, link speed: auto)";

pub(super) fn of_gpu(gpu: &Gpu, host: &Host) -> Vec<Finding> {
    if gpu.info.simulated.is_some() {
        return vec![simulated(gpu)];
    }
    let mut findings = now(gpu);
    findings.push(slot(gpu));
    findings.push(replays(gpu));
    findings.push(numa::node(gpu, host));
    findings
}

pub(super) fn of_host(host: &Host, gpus: &Gpus) -> Vec<Finding> {
    let mut findings = vec![iommu(host, gpus)];
    if gpus.gpus.is_empty() {
        findings.insert(0, Finding::skip(GROUP, "PCIe link", "no GPU to look at"));
    }
    findings
}

fn simulated(gpu: &Gpu) -> Finding {
    let rate = |gb_per_s: Option<f64>| match gb_per_s {
        Some(rate) => format!("{rate:.1} GB/s"),
        None => "no cost".to_owned(),
    };
    match gpu.rates_gb_per_s {
        Some([up, down]) => Finding::ok(
            GROUP,
            "link",
            format!(
                "pinned memory moves at {} to the device, {} from it, by the profile",
                rate(up),
                rate(down)
            ),
        ),
        None => Finding::skip(GROUP, "link", "the stand-in for libcuda does not tell"),
    }
}

/// The link under load where there is one, else as it was found; from the kernel where the
/// management library is silent.
fn now(gpu: &Gpu) -> Vec<Finding> {
    let loaded = gpu.load.as_ref().ok().and_then(|load| load.link);
    let under_load = loaded.is_some();
    let link = loaded
        .or(gpu.state.link)
        .or_else(|| gpu.pci.as_ref()?.link());
    match link {
        Some(link) => vec![generation(link, under_load), width(link)],
        None => vec![Finding::skip(
            GROUP,
            "PCIe link",
            "neither the management library nor the kernel tells",
        )],
    }
}

fn generation(link: Link, under_load: bool) -> Finding {
    const CHECK: &str = "link generation";
    let Link {
        generation: now,
        max_generation: most,
        ..
    } = link;
    if now >= most {
        let limit = payload_limit_gb_per_s(now, link.width);
        let limit = limit.map_or_else(String::new, |rate| format!(", {rate:.0} GB/s at most"));
        let seen = format!("PCIe {now} x{}{limit}", link.width);
        return Finding::ok(GROUP, CHECK, seen);
    }
    let seen = format!("PCIe {now}, where card and slot can do PCIe {most}");
    match under_load {
        true => Finding::warn(GROUP, CHECK, format!("{seen}, under load")).remedy(RESEAT, 90),
        // Idle GPUs rest at a lower generation to save power.
        false => Finding::skip(
            GROUP,
            CHECK,
            format!(
                "{seen}; idle GPUs rest at a lower one, and this one could not be seen under load"
            ),
        ),
    }
}

fn width(link: Link) -> Finding {
    const CHECK: &str = "link width";
    let (now, most) = (link.width, link.max_width);
    if now >= most {
        return Finding::ok(GROUP, CHECK, format!("x{now}"));
    }
    let share = f64::from(now) / f64::from(most) * 100.0;
    let seen = format!("x{now} of x{most}: {share:.0}% of the speed that card and slot can do");
    Finding::warn(GROUP, CHECK, seen).remedy(RESEAT, 92)
}

fn slot(gpu: &Gpu) -> Finding {
    const CHECK: &str = "slot";
    let pci = gpu.pci.as_ref();
    let ends = pci.and_then(|pci| Some((pci.card?, pci.credible_slot()?)));
    let Some((card, slot)) = ends else {
        return Finding::skip(GROUP, CHECK, "the kernel does not tell what it can do");
    };
    let text = |best: Best| format!("PCIe {} x{}", best.generation, best.width);
    if slot.generation >= card.generation && slot.width >= card.width {
        return Finding::ok(GROUP, CHECK, format!("{}, as good as the card", text(slot)));
    }
    let seen = format!("{}, less than the card's {}", text(slot), text(card));
    Finding::warn(GROUP, CHECK, seen)
        .remedy("move the card to a faster slot, if the machine has one", 60)
}

fn replays(gpu: &Gpu) -> Finding {
    const CHECK: &str = "link errors";
    let under_load = gpu.load.as_ref().ok().and_then(|load| load.replays);
    match (under_load, gpu.state.replays) {
        (Some(1..), _) => {
            let count = under_load.unwrap_or_default();
            let seen = format!("{count} packets were sent again during a short copy");
            Finding::warn(GROUP, CHECK, seen).remedy(RESEAT, 85)
        }
        (Some(0), Some(before)) => Finding::ok(
            GROUP,
            CHECK,
            format!("no packet sent again during a short copy, {before} before"),
        ),
        _ => Finding::skip(GROUP, CHECK, format!("GPU {} does not tell", gpu::id(gpu))),
    }
}

/// Whether DMA goes through tables of an IOMMU.
fn iommu(host: &Host, gpus: &Gpus) -> Finding {
    const CHECK: &str = "IOMMU";
    const REMEDY: &str = "add iommu=pt to the kernel's command line (GRUB_CMDLINE_LINUX in \
                          /etc/default/grub, then `sudo update-grub`) and reboot";
    let kinds: Vec<&str> = gpus
        .gpus
        .iter()
        .filter_map(|gpu| gpu.pci.as_ref()?.iommu.as_deref())
        .collect();
    if let Some(kind) = kinds.iter().find(|kind| kind.starts_with("DMA")) {
        let seen = format!("translates the GPU's accesses ({kind}), which makes pinning slower");
        return Finding::warn(GROUP, CHECK, seen).remedy(REMEDY, 35);
    }
    if kinds.contains(&"identity") {
        return Finding::ok(GROUP, CHECK, "on, and lets the GPU through (identity)");
    }
    if host.iommus.is_empty() {
        return Finding::ok(GROUP, CHECK, "none at work");
    }
    let Some(words) = &host.kernel_words else {
        return Finding::skip(GROUP, CHECK, "on; the kernel does not tell how");
    };
    let passes = [
        "iommu=pt",
        "iommu.passthrough=1",
        "intel_iommu=off",
        "amd_iommu=off",
    ];
    if words.iter().any(|word| passes.contains(&word.as_str())) {
        return Finding::ok(GROUP, CHECK, "on, and lets devices through (iommu=pt)");
    }
    Finding::warn(GROUP, CHECK, "on, and may translate what GPUs access").remedy(REMEDY, 15)
}
