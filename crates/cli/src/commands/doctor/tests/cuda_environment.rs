//! Variables of CUDA, and MPS.

use super::*;

#[test]
fn mps_by_its_server_its_clients_and_its_variable() {
    found(&machine(Tree::healthy()), "MPS").good(["off"]);
    let server = with_file("proc/812/comm", "nvidia-cuda-mps\n");
    found(&server, "MPS").warns(["on", "echo quit"]);
    found(&with_gpu(|gpu| gpu.state.mps = Some(true)), "MPS").warns(["on"]);
    let variable = with_variable("CUDA_MPS_PIPE_DIRECTORY", "/tmp/mps");
    found(&variable, "MPS").warns(["CUDA_MPS_PIPE_DIRECTORY"]);
}

#[test]
fn blocking_launches() {
    const NAME: &str = "CUDA_LAUNCH_BLOCKING";
    for off in ["0", ""] {
        found(&with_variable(NAME, off), NAME).good([]);
    }
    found(&with_variable(NAME, "1"), NAME).warns(["unset CUDA_LAUNCH_BLOCKING"]);
}
