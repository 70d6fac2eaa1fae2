//! Remedies that several checks give. Each is a command or a setting; none is carried out here.

use crate::doctor::facts::host::Host;

/// How a process that sees no GPU comes to see one.
pub(super) fn see_a_gpu(host: &Host) -> String {
    let is_there = !host.pci.is_empty() || host.module.is_some();
    if host.wsl {
        "install NVIDIA's driver on Windows (not in Linux), then run `wsl --update`".to_owned()
    } else if host.container && !host.device_files.control {
        let start = "`docker run --gpus all …` (needs the NVIDIA Container Toolkit)";
        match is_there {
            true => format!("start the container with its GPUs: {start}"),
            false => format!("if the machine has a GPU, start the container with it: {start}"),
        }
    } else if !is_there {
        "nothing to do on a machine without an NVIDIA GPU; `--device sim` simulates one".to_owned()
    } else if host.module.is_none() {
        "install NVIDIA's driver (`sudo ubuntu-drivers install` on Ubuntu, or \
         https://www.nvidia.com/drivers), or load it with `sudo modprobe nvidia`"
            .to_owned()
    } else {
        "see what `nvidia-smi` says; libcuda.so.1 comes with the driver's package (libnvidia-compute \
         on Ubuntu)"
            .to_owned()
    }
}

/// How a process is put onto a NUMA node.
pub(super) fn bind_to_node(node: u32, cpus: &str) -> String {
    format!(
        "numactl --cpunodebind={node} --membind={node} pinlane …; for a container: `docker run \
         --cpuset-cpus={cpus} --cpuset-mems={node} …`"
    )
}
