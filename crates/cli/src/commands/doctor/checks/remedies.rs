//! Remedies that several checks share. Each is a command or a setting; the tool never applies it.

use crate::commands::doctor::facts::host::HostFacts;

/// What to do if the process finds no GPU.
pub(super) fn find_gpu(host: &HostFacts) -> String {
    let is_present = !host.pci.is_empty() || host.kernel_module.is_some();
    if host.wsl {
        "install NVIDIA's driver on Windows (not in Linux), then run `wsl --update`".to_owned()
    } else if host.container && !host.device_files.control {
        let start = "`docker run --gpus all …` (needs the NVIDIA Container Toolkit)";
        match is_present {
            true => format!("start the container with its GPUs: {start}"),
            false => format!("if the machine has a GPU, start the container with it: {start}"),
        }
    } else if !is_present {
        "nothing to do on a machine without an NVIDIA GPU; `--device sim` simulates one".to_owned()
    } else if host.kernel_module.is_none() {
        "install NVIDIA's driver (`sudo ubuntu-drivers install` on Ubuntu, or \
         https://www.nvidia.com/drivers), or load it with `sudo modprobe nvidia`"
            .to_owned()
    } else {
        "check `nvidia-smi`; libcuda.so.1 is part of the driver's package (libnvidia-compute on Ubuntu)"
            .to_owned()
    }
}

/// How to run a process on a NUMA node.
pub(super) fn bind_to_node(node: u32, cpus: &str) -> String {
    format!(
        "numactl --cpunodebind={node} --membind={node} pinlane …; for a container: `docker run \
         --cpuset-cpus={cpus} --cpuset-mems={node} …`"
    )
}
