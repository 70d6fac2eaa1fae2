//! Whether the process is where the GPU is.

use pinlane_report::{DoctorFinding as Finding, DoctorGroup};

use super::remedies;
use crate::doctor::facts::gpu::Gpu;
use crate::doctor::facts::host::Host;

const GROUP: DoctorGroup = DoctorGroup::Link;
const CHECK: &str = "NUMA node";

pub(super) fn node(gpu: &Gpu, host: &Host) -> Finding {
    if host.nodes.len() == 1 {
        return Finding::ok(GROUP, CHECK, "the machine has one");
    }
    let of_kernel = gpu.pci.as_ref().and_then(|pci| pci.numa_node);
    let Some(number) = of_kernel.or(gpu.info.numa_node) else {
        return Finding::skip(GROUP, CHECK, "the system does not tell the GPU's");
    };
    let (Some(node), Some(cpus)) = (host.node(number), &host.cpus) else {
        let seen = format!("the GPU is on node {number}, whose CPUs the system does not tell");
        return Finding::skip(GROUP, CHECK, seen);
    };
    let remedy = remedies::bind_to_node(number, &node.cpus.to_string());
    let (near, all) = (cpus.count_common(&node.cpus), cpus.count());
    if near == 0 {
        let seen =
            format!("the GPU is on node {number}, and this process runs elsewhere (CPUs {cpus})");
        return Finding::warn(GROUP, CHECK, seen).remedy(remedy, 88);
    }
    if host
        .memory_nodes
        .as_ref()
        .is_some_and(|nodes| !nodes.has(number))
    {
        let seen = format!("the GPU is on node {number}, whose memory this process may not use");
        return Finding::warn(GROUP, CHECK, seen).remedy(remedy, 87);
    }
    if near < all {
        let seen = format!(
            "the GPU is on node {number} with {near} of the {all} CPUs that this process may use"
        );
        return Finding::warn(GROUP, CHECK, seen).remedy(remedy, 30);
    }
    Finding::ok(
        GROUP,
        CHECK,
        format!("the process is on the GPU's, {number}"),
    )
}
