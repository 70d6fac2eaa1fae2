//! Whether the process runs on the GPU's NUMA node.

use pinlane_report::{DoctorFinding as Finding, DoctorGroup};

use super::{Check, remedies};
use crate::commands::doctor::facts::gpu::Gpu;
use crate::commands::doctor::facts::host::HostFacts;

const NUMA_NODE: Check = Check(DoctorGroup::Link, "NUMA node");

pub(super) fn node(gpu: &Gpu, host: &HostFacts) -> Finding {
    if host.nodes.len() == 1 {
        return NUMA_NODE.ok("the machine has only one");
    }
    let by_kernel = gpu.pci.as_ref().and_then(|pci| pci.numa_node);
    let Some(number) = by_kernel.or(gpu.info.numa_node) else {
        return NUMA_NODE.unknown();
    };
    let (Some(node), Some(cpus)) = (host.node(number), &host.cpus) else {
        return NUMA_NODE.skip(format!(
            "the GPU is on node {number}, whose CPUs are unknown"
        ));
    };
    let remedy = remedies::bind_to_node(number, &node.cpus.to_string());
    let (near, all) = (cpus.count_common(&node.cpus), cpus.count());
    if near == 0 {
        let seen =
            format!("the GPU is on node {number}, but this process runs elsewhere (CPUs {cpus})");
        return NUMA_NODE.warn(seen).remedy(remedy, 88);
    }
    let memory_nodes = host.memory_nodes.as_ref();
    if memory_nodes.is_some_and(|nodes| !nodes.contains(number)) {
        let seen = format!("the GPU is on node {number}, whose memory this process may not use");
        return NUMA_NODE.warn(seen).remedy(remedy, 87);
    }
    if near < all {
        let seen = format!(
            "the GPU is on node {number}, as are {near} of the {all} CPUs that this process may use"
        );
        return NUMA_NODE.warn(seen).remedy(remedy, 30);
    }
    NUMA_NODE.ok(format!("the process runs on the GPU's node {number}"))
}
