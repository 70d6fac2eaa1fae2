//! The link, from the management library and from the kernel.

use super::fake_system_files::{GPU, SLOT};
use super::*;

fn with_link(link: Link) -> Facts {
    with_gpu(|gpu| {
        gpu.state.link = Some(link);
        gpu.load = loaded(Some(link), Some(0));
    })
}

/// A check of a GPU that only the kernel knows.
fn by_kernel(tree: &Tree, check: &str) -> Found {
    let mut gpu = healthy_gpu();
    gpu.state = GpuState::default();
    gpu.load = loaded(None, None);
    found(&facts(tree, gpu), check)
}

#[test]
fn a_link_at_full_speed_shows_its_limit() {
    found(&with_link(LINK), "link generation").good(["PCIe 5 x16", "57 GB/s"]);
    found(&with_link(LINK), "link width").good(["x16"]);
}

#[test]
fn a_narrow_or_slow_link_is_a_warning() {
    let (width, generation) = (8, 3);
    let narrow = with_link(Link { width, ..LINK });
    found(&narrow, "link width").warns(["x8 of x16", "50%", "reseat"]);
    let slow = with_link(Link { generation, ..LINK });
    found(&slow, "link generation").warns(["PCIe 3", "PCIe 5", "under load"]);
}

#[test]
fn an_idle_gpu_may_slow_its_link_down() {
    let mut gpu = healthy_gpu();
    let generation = 1;
    gpu.state.link = Some(Link { generation, ..LINK });
    let idle = facts(&Tree::healthy(), gpu.clone());
    found(&idle, "link generation").good(["PCIe 5"]);
    gpu.load = Err("busy".to_owned());
    let unseen = facts(&Tree::healthy(), gpu);
    found(&unseen, "link generation").skips(["PCIe 1", "idle GPUs slow down"]);
}

#[test]
fn the_kernel_replaces_a_missing_library() {
    let tree = Tree::healthy();
    by_kernel(&tree, "link generation").good(["PCIe 5 x16"]);
    tree.write(&format!("{GPU}/current_link_width"), "4\n");
    by_kernel(&tree, "link width").warns(["x4 of x16"]);
    // The slot limits what is expected of the link.
    tree.write(&format!("{SLOT}/max_link_width"), "4\n");
    by_kernel(&tree, "link width").good(["x4"]);
    let tree = tree.without(&format!("{GPU}/current_link_speed"));
    by_kernel(&tree, "PCIe link").skips([]);
}

#[test]
fn a_slot_slower_than_the_card() {
    let tree = Tree::healthy();
    by_kernel(&tree, "slot").good(["PCIe 5 x16"]);
    tree.write(&format!("{SLOT}/max_link_speed"), "16.0 GT/s PCIe\n");
    tree.write(&format!("{GPU}/current_link_speed"), "16.0 GT/s PCIe\n");
    by_kernel(&tree, "slot").warns(["PCIe 4 x16", "PCIe 5 x16", "faster slot"]);
    // A slot slower than its link is made up.
    tree.write(&format!("{SLOT}/max_link_speed"), "2.5 GT/s PCIe\n");
    by_kernel(&tree, "slot").skips([]);
    by_kernel(&tree, "link width").good(["x16"]);
}

#[test]
fn resent_packets() {
    let replays = |before, during| {
        let facts = with_gpu(|gpu| {
            gpu.state.replays = before;
            gpu.load = loaded(Some(LINK), during);
        });
        found(&facts, "link errors")
    };
    replays(Some(3), Some(0)).good(["3 before"]);
    replays(Some(3), Some(9)).warns(["9 packets"]);
    replays(None, None).skips([]);
}

#[test]
fn the_process_should_run_on_the_gpus_node() {
    let status = |cpus: &str, nodes: &str| {
        let text = format!("Cpus_allowed_list:\t{cpus}\nMems_allowed_list:\t{nodes}\n");
        found(&with_file("proc/self/status", &text), "NUMA node")
    };
    let bind = "numactl --cpunodebind=1 --membind=1";
    status("8-15", "0-1").good(["1"]);
    let (elsewhere, partly) = (status("0-7", "0-1"), status("0-15", "0-1"));
    elsewhere.warns(["node 1", "elsewhere", bind, "8-15"]);
    partly.warns(["8 of the 16", bind]);
    assert!(elsewhere.0.weight > partly.0.weight);
    status("8-15", "0").warns(["may not use", "--cpuset-mems=1"]);
    status("junk", "0-1").skips([]);
}

#[test]
fn a_single_or_unknown_node() {
    let one = Tree::healthy().without("sys/devices/system/node/node1");
    found(&machine(one), "NUMA node").good(["one"]);
    let unknown = Tree::healthy().with(&format!("{GPU}/numa_node"), "-1\n");
    found(&facts(&unknown, healthy_gpu()), "NUMA node").skips([]);
    // The driver may know what the kernel does not.
    let mut gpu = healthy_gpu();
    gpu.info.numa_node = Some(1);
    found(&facts(&unknown, gpu), "NUMA node").good(["1"]);
}

#[test]
fn the_iommu_by_the_gpus_group() {
    let mode = |mode| {
        let facts = with_file(&format!("{GPU}/iommu_group/type"), mode);
        found(&facts, "IOMMU")
    };
    mode("identity\n").good(["identity"]);
    mode("DMA\n").warns(["DMA", "iommu=pt"]);
    mode("DMA-FQ\n").warns(["DMA", "iommu=pt"]);
}

#[test]
fn the_iommu_by_the_command_line() {
    let iommu = |tree: Tree| found(&machine(tree), "IOMMU");
    iommu(Tree::healthy()).good(["none"]);
    let on = || Tree::healthy().with("sys/class/iommu/dmar0/name", "");
    iommu(on()).warns(["may translate", "iommu=pt"]);
    iommu(on().with("proc/cmdline", "quiet intel_iommu=on iommu=pt")).good(["iommu=pt"]);
    iommu(on().without("proc/cmdline")).skips([]);
}
