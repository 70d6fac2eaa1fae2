//! PTX modules, and finding kernels in them.

use pinlane_driver::ErrorKind;

use crate::Outcome;
use crate::case::cases;
use crate::outcome::{check, check_error};
use crate::rig::Rig;

cases! {
    "modules/load-and-unload" => load_and_unload,
    "modules/every-built-in-kernel-is-found" => all_found,
    "modules/loaded-twice" => loaded_twice,
    "modules/bad-ptx-is-refused" => bad_ptx,
    "modules/missing-kernel-is-not-found" => missing_kernel,
    "modules/works-after-a-refusal" => works_after_refusal,
}

fn load_and_unload(rig: &Rig) -> Outcome {
    for _ in 0..5 {
        rig.unload(rig.module(pinlane_kernels::PTX)?)?;
    }
    Ok(())
}

fn all_found(rig: &Rig) -> Outcome {
    let module = rig.module(pinlane_kernels::PTX)?;
    for kernel in pinlane_kernels::builtin() {
        let function = rig.module_function(module, kernel.name);
        check!(function.is_ok(), "{}: {function:?}", kernel.name);
    }
    Ok(())
}

fn loaded_twice(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let memory = rig.upload(&[0; 40])?;
    let kernels = rig.kernels()?;
    let first = rig.module(pinlane_kernels::PTX)?;
    rig.module_function(first, "pinlane_add_u32")?;
    rig.unload(first)?;
    // The other one still works.
    rig.add_u32(kernels, memory.all(), 8, stream)?;
    rig.stream_synchronize(stream)?;
    rig.check_words(memory.all(), &[8; 10], "result")
}

fn bad_ptx(rig: &Rig) -> Outcome {
    for ptx in ["this is no PTX", "// .version of nothing"] {
        check_error!(rig.module(ptx), ErrorKind::InvalidPtx);
    }
    Ok(())
}

fn missing_kernel(rig: &Rig) -> Outcome {
    let module = rig.module(pinlane_kernels::PTX)?;
    for name in [
        "pinlane_no_such_kernel",
        "pinlane_add_u3",
        "PINLANE_ADD_U32",
    ] {
        check_error!(rig.module_function(module, name), ErrorKind::NotFound);
    }
    Ok(())
}

fn works_after_refusal(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let memory = rig.upload(&[0; 40])?;
    check!(rig.module("no PTX").is_err(), "invalid PTX was loaded");
    rig.add_u32(kernels, memory.all(), 1, stream)?;
    let found = rig.function("no_such_kernel").is_ok();
    check!(!found, "a kernel that does not exist");
    rig.add_u32(kernels, memory.all(), 1, stream)?;
    rig.stream_synchronize(stream)?;
    rig.synchronize()?;
    rig.check_words(memory.all(), &[2; 10], "result")
}
