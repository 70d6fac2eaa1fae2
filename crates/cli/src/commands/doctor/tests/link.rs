//! The link, by the management library and by the kernel's files.

use pinlane_report::DoctorStatus::{Ok as Good, Skip, Warn};

use super::tree::{GPU, SLOT};
use super::*;

fn with_link(link: Link) -> Facts {
    let mut gpu = healthy_gpu();
    gpu.state.link = Some(link);
    gpu.load = Ok(Load {
        link: Some(link),
        replays: Some(0),
    });
    facts(&Tree::healthy(), gpu)
}

/// A GPU of which only the kernel tells.
fn by_kernel(tree: &Tree) -> Facts {
    let mut gpu = healthy_gpu();
    gpu.state = GpuState::default();
    gpu.load = Ok(Load {
        link: None,
        replays: None,
    });
    facts(tree, gpu)
}

#[test]
fn a_link_at_its_best_tells_what_it_can_carry() {
    expect(
        &with_link(LINK),
        "link generation",
        Good,
        &["PCIe 5 x16", "57 GB/s"],
    );
    expect(&with_link(LINK), "link width", Good, &["x16"]);
}

#[test]
fn a_narrow_or_slow_link_is_to_be_looked_at() {
    let narrow = Link { width: 8, ..LINK };
    expect(
        &with_link(narrow),
        "link width",
        Warn,
        &["x8 of x16", "50%", "reseat"],
    );
    let slow = Link {
        generation: 3,
        ..LINK
    };
    expect(
        &with_link(slow),
        "link generation",
        Warn,
        &["PCIe 3", "PCIe 5", "under load"],
    );
}

#[test]
fn an_idle_gpu_is_not_blamed_for_resting() {
    let mut gpu = healthy_gpu();
    gpu.state.link = Some(Link {
        generation: 1,
        ..LINK
    });
    let idle = facts(&Tree::healthy(), gpu.clone());
    expect(&idle, "link generation", Good, &["PCIe 5"]);
    gpu.load = Err("busy".to_owned());
    let unseen = facts(&Tree::healthy(), gpu);
    expect(
        &unseen,
        "link generation",
        Skip,
        &["PCIe 1", "rest at a lower"],
    );
}

#[test]
fn the_kernel_tells_where_the_library_is_silent() {
    let tree = Tree::healthy();
    expect(&by_kernel(&tree), "link generation", Good, &["PCIe 5 x16"]);
    tree.write(&format!("{GPU}/current_link_width"), "4\n");
    expect(&by_kernel(&tree), "link width", Warn, &["x4 of x16"]);
    // What the slot cannot do is not asked of the link.
    tree.write(&format!("{SLOT}/max_link_width"), "4\n");
    expect(&by_kernel(&tree), "link width", Good, &["x4"]);
    let tree = tree.without(&format!("{GPU}/current_link_speed"));
    expect(&by_kernel(&tree), "PCIe link", Skip, &[]);
}

#[test]
fn a_slot_that_is_less_than_the_card() {
    let tree = Tree::healthy();
    expect(&by_kernel(&tree), "slot", Good, &["PCIe 5 x16"]);
    tree.write(&format!("{SLOT}/max_link_speed"), "16.0 GT/s PCIe\n");
    tree.write(&format!("{GPU}/current_link_speed"), "16.0 GT/s PCIe\n");
    expect(
        &by_kernel(&tree),
        "slot",
        Warn,
        &["PCIe 4 x16", "PCIe 5 x16", "faster slot"],
    );
    // A port that carries more than it says it can is made up.
    tree.write(&format!("{SLOT}/max_link_speed"), "2.5 GT/s PCIe\n");
    expect(&by_kernel(&tree), "slot", Skip, &[]);
    expect(&by_kernel(&tree), "link width", Good, &["x16"]);
}

#[test]
fn packets_sent_again() {
    let replays = |before, during| {
        let mut gpu = healthy_gpu();
        gpu.state.replays = before;
        gpu.load = Ok(Load {
            link: Some(LINK),
            replays: during,
        });
        facts(&Tree::healthy(), gpu)
    };
    expect(
        &replays(Some(3), Some(0)),
        "link errors",
        Good,
        &["3 before"],
    );
    expect(
        &replays(Some(3), Some(9)),
        "link errors",
        Warn,
        &["9 packets"],
    );
    expect(&replays(None, None), "link errors", Skip, &[]);
}

#[test]
fn the_process_belongs_on_the_gpus_node() {
    let status = |cpus: &str, nodes: &str| {
        let text = format!("Cpus_allowed_list:\t{cpus}\nMems_allowed_list:\t{nodes}\n");
        let tree = Tree::healthy().with("proc/self/status", &text);
        facts(&tree, healthy_gpu())
    };
    let bind = "numactl --cpunodebind=1 --membind=1";
    expect(&status("8-15", "0-1"), "NUMA node", Good, &["1"]);
    expect(
        &status("0-7", "0-1"),
        "NUMA node",
        Warn,
        &["node 1", "elsewhere", bind, "8-15"],
    );
    expect(
        &status("0-15", "0-1"),
        "NUMA node",
        Warn,
        &["8 of the 16", bind],
    );
    expect(
        &status("8-15", "0"),
        "NUMA node",
        Warn,
        &["may not use", "--cpuset-mems=1"],
    );
    expect(&status("junk", "0-1"), "NUMA node", Skip, &[]);
    let elsewhere = found(&status("0-7", "0-1"), "NUMA node").weight;
    assert!(elsewhere > found(&status("0-15", "0-1"), "NUMA node").weight);
}

#[test]
fn nodes_that_are_one_or_unknown() {
    let one = Tree::healthy().without("sys/devices/system/node/node1");
    expect(&facts(&one, healthy_gpu()), "NUMA node", Good, &["one"]);
    let unknown = Tree::healthy().with(&format!("{GPU}/numa_node"), "-1\n");
    expect(&facts(&unknown, healthy_gpu()), "NUMA node", Skip, &[]);
    // The driver may know where the kernel does not.
    let mut gpu = healthy_gpu();
    gpu.info.numa_node = Some(1);
    expect(&facts(&unknown, gpu), "NUMA node", Good, &["1"]);
}

#[test]
fn the_iommu_by_the_gpus_group() {
    let kind = |kind: &str| {
        let tree = Tree::healthy().with(&format!("{GPU}/iommu_group/type"), kind);
        facts(&tree, healthy_gpu())
    };
    expect(&kind("identity\n"), "IOMMU", Good, &["identity"]);
    for translating in ["DMA\n", "DMA-FQ\n"] {
        expect(&kind(translating), "IOMMU", Warn, &["DMA", "iommu=pt"]);
    }
}

#[test]
fn the_iommu_by_the_command_line() {
    let iommu = |tree: Tree| facts(&tree, healthy_gpu());
    expect(&iommu(Tree::healthy()), "IOMMU", Good, &["none"]);
    let on = || Tree::healthy().with("sys/class/iommu/dmar0/name", "");
    expect(&iommu(on()), "IOMMU", Warn, &["may translate", "iommu=pt"]);
    let passing = on().with("proc/cmdline", "quiet intel_iommu=on iommu=pt");
    expect(&iommu(passing), "IOMMU", Good, &["iommu=pt"]);
    expect(&iommu(on().without("proc/cmdline")), "IOMMU", Skip, &[]);
}
