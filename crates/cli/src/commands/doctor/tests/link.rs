//! The link, from the management library and from the kernel.

use super::tree::{GPU, SLOT};
use super::*;

fn with_link(link: Link) -> Facts {
    let mut gpu = healthy_gpu();
    gpu.state.link = Some(link);
    gpu.load = Ok(LoadedLink {
        link: Some(link),
        replays: Some(0),
    });
    facts(&Tree::healthy(), gpu)
}

/// A GPU that only the kernel knows.
fn by_kernel(tree: &Tree) -> Facts {
    let mut gpu = healthy_gpu();
    gpu.state = GpuState::default();
    gpu.load = Ok(LoadedLink {
        link: None,
        replays: None,
    });
    facts(tree, gpu)
}

#[test]
fn a_link_at_full_speed_shows_its_limit() {
    good(
        &with_link(LINK),
        "link generation",
        ["PCIe 5 x16", "57 GB/s"],
    );
    good(&with_link(LINK), "link width", ["x16"]);
}

#[test]
fn a_narrow_or_slow_link_is_a_warning() {
    let narrow = Link { width: 8, ..LINK };
    warns(
        &with_link(narrow),
        "link width",
        ["x8 of x16", "50%", "reseat"],
    );
    let slow = Link {
        generation: 3,
        ..LINK
    };
    warns(
        &with_link(slow),
        "link generation",
        ["PCIe 3", "PCIe 5", "under load"],
    );
}

#[test]
fn an_idle_gpu_may_slow_its_link_down() {
    let mut gpu = healthy_gpu();
    gpu.state.link = Some(Link {
        generation: 1,
        ..LINK
    });
    let idle = facts(&Tree::healthy(), gpu.clone());
    good(&idle, "link generation", ["PCIe 5"]);
    gpu.load = Err("busy".to_owned());
    let unseen = facts(&Tree::healthy(), gpu);
    skips(
        &unseen,
        "link generation",
        ["PCIe 1", "idle GPUs slow down"],
    );
}

#[test]
fn the_kernel_replaces_a_missing_library() {
    let tree = Tree::healthy();
    good(&by_kernel(&tree), "link generation", ["PCIe 5 x16"]);
    tree.write(&format!("{GPU}/current_link_width"), "4\n");
    warns(&by_kernel(&tree), "link width", ["x4 of x16"]);
    // The slot limits what is expected of the link.
    tree.write(&format!("{SLOT}/max_link_width"), "4\n");
    good(&by_kernel(&tree), "link width", ["x4"]);
    let tree = tree.without(&format!("{GPU}/current_link_speed"));
    skips(&by_kernel(&tree), "PCIe link", []);
}

#[test]
fn a_slot_slower_than_the_card() {
    let tree = Tree::healthy();
    good(&by_kernel(&tree), "slot", ["PCIe 5 x16"]);
    tree.write(&format!("{SLOT}/max_link_speed"), "16.0 GT/s PCIe\n");
    tree.write(&format!("{GPU}/current_link_speed"), "16.0 GT/s PCIe\n");
    warns(
        &by_kernel(&tree),
        "slot",
        ["PCIe 4 x16", "PCIe 5 x16", "faster slot"],
    );
    // A slot slower than its link is made up.
    tree.write(&format!("{SLOT}/max_link_speed"), "2.5 GT/s PCIe\n");
    skips(&by_kernel(&tree), "slot", []);
    good(&by_kernel(&tree), "link width", ["x16"]);
}

#[test]
fn resent_packets() {
    let replays = |before, during| {
        let mut gpu = healthy_gpu();
        gpu.state.replays = before;
        gpu.load = Ok(LoadedLink {
            link: Some(LINK),
            replays: during,
        });
        facts(&Tree::healthy(), gpu)
    };
    good(&replays(Some(3), Some(0)), "link errors", ["3 before"]);
    warns(&replays(Some(3), Some(9)), "link errors", ["9 packets"]);
    skips(&replays(None, None), "link errors", []);
}

#[test]
fn the_process_should_run_on_the_gpus_node() {
    let status = |cpus: &str, nodes: &str| {
        let text = format!("Cpus_allowed_list:\t{cpus}\nMems_allowed_list:\t{nodes}\n");
        let tree = Tree::healthy().with("proc/self/status", &text);
        facts(&tree, healthy_gpu())
    };
    let bind = "numactl --cpunodebind=1 --membind=1";
    good(&status("8-15", "0-1"), "NUMA node", ["1"]);
    warns(
        &status("0-7", "0-1"),
        "NUMA node",
        ["node 1", "elsewhere", bind, "8-15"],
    );
    warns(&status("0-15", "0-1"), "NUMA node", ["8 of the 16", bind]);
    warns(
        &status("8-15", "0"),
        "NUMA node",
        ["may not use", "--cpuset-mems=1"],
    );
    skips(&status("junk", "0-1"), "NUMA node", []);
    let elsewhere = found(&status("0-7", "0-1"), "NUMA node").weight;
    assert!(elsewhere > found(&status("0-15", "0-1"), "NUMA node").weight);
}

#[test]
fn a_single_or_unknown_node() {
    let one = Tree::healthy().without("sys/devices/system/node/node1");
    good(&facts(&one, healthy_gpu()), "NUMA node", ["one"]);
    let unknown = Tree::healthy().with(&format!("{GPU}/numa_node"), "-1\n");
    skips(&facts(&unknown, healthy_gpu()), "NUMA node", []);
    // The driver may know what the kernel does not.
    let mut gpu = healthy_gpu();
    gpu.info.numa_node = Some(1);
    good(&facts(&unknown, gpu), "NUMA node", ["1"]);
}

#[test]
fn the_iommu_by_the_gpus_group() {
    let kind = |kind: &str| {
        let tree = Tree::healthy().with(&format!("{GPU}/iommu_group/type"), kind);
        facts(&tree, healthy_gpu())
    };
    good(&kind("identity\n"), "IOMMU", ["identity"]);
    for translating in ["DMA\n", "DMA-FQ\n"] {
        warns(&kind(translating), "IOMMU", ["DMA", "iommu=pt"]);
    }
}

#[test]
fn the_iommu_by_the_command_line() {
    let iommu = |tree: Tree| facts(&tree, healthy_gpu());
    good(&iommu(Tree::healthy()), "IOMMU", ["none"]);
    let on = || Tree::healthy().with("sys/class/iommu/dmar0/name", "");
    warns(&iommu(on()), "IOMMU", ["may translate", "iommu=pt"]);
    let passing = on().with("proc/cmdline", "quiet intel_iommu=on iommu=pt");
    good(&iommu(passing), "IOMMU", ["iommu=pt"]);
    skips(&iommu(on().without("proc/cmdline")), "IOMMU", []);
}
