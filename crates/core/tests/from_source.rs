//! CUDA C compiled at run time and loaded, on a simulated GPU with a twin of the kernel.

use pinlane::driver::{KernelArg, ParamKind};
use pinlane::kernel::{CompileOptions, Compiler, NvrtcError, Out};
use pinlane::{Device, Error, ErrorKind, LaunchShape, Module};
use pinlane_sim::{Kernel, Sim};

const FILL: Kernel = Kernel {
    name: "fill",
    params: &[ParamKind::Ptr, ParamKind::U32],
    run: |memory, _shape, args| {
        let [KernelArg::Ptr(target), KernelArg::U32(value)] = *args else {
            unreachable!("the arguments match `params`");
        };
        memory.write(target, &value.to_le_bytes())
    },
    bytes_touched: |_| 4,
    fixed_ns: |_| 0,
    tail_ns: |_| 0,
};

fn device() -> Device {
    Device::open(&Sim::builder().kernel(FILL).build(), 0).unwrap()
}

/// Whether the compiler is there. It must be if the environment names it, as in a full run.
fn has_compiler() -> bool {
    match Compiler::load() {
        Ok(_) => true,
        Err(error) if std::env::var_os("PINLANE_NVRTC").is_some() => panic!("{error}"),
        Err(error) => {
            eprintln!("skipped: {error}");
            false
        }
    }
}

#[test]
fn a_kernel_of_source_runs() {
    if !has_compiler() {
        return;
    }
    let device = device();
    let source =
        r#"extern "C" __global__ void fill(unsigned* out, unsigned value) { out[0] = value; }"#;
    let module = Module::from_source(&device, source).unwrap();
    let fill = module.kernel::<(Out<u32>, u32)>("fill").unwrap();
    let stream = device.stream().unwrap();
    let mut target = device.alloc::<u32>(1).unwrap();
    // SAFETY: these are the kernel's parameters, and it writes one element.
    unsafe {
        let values = (target.whole_mut(), 42);
        stream
            .launch(&fill, LaunchShape::for_items(1), values)
            .unwrap();
    }
    assert_eq!(stream.copy_to_vec(&target).unwrap(), [42]);
}

#[test]
fn a_kernel_is_found_by_its_name_in_the_source() {
    if !has_compiler() {
        return;
    }
    let device = device();
    let source = "namespace math { __global__ void fill(unsigned* out) { out[0] = 1; } }";
    let module = Module::from_source(&device, source).unwrap();
    let missing = module.kernel::<(Out<u32>,)>("fill").unwrap_err();
    assert!(
        missing.to_string().contains("no kernel `fill`"),
        "{missing}"
    );
    // It is found; only the simulated GPU has no twin of it.
    let found = module.kernel::<(Out<u32>,)>("math::fill").unwrap_err();
    assert!(found.to_string().contains("_ZN4math4fillEPj"), "{found}");
}

#[test]
fn a_source_that_does_not_compile_is_refused_with_the_compilers_log() {
    if !has_compiler() {
        return;
    }
    let device = device();
    let options = CompileOptions::default().name("broken.cu");
    let source = "__global__ void fill(unsigned* out) {\n  out[0] = undeclared;\n}";
    let error = Module::from_source_with(&device, source, &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let Error::Compile(NvrtcError::Source { log }) = &error else {
        panic!("{error:?}");
    };
    assert!(
        log.contains("broken.cu(2)") && log.contains("undeclared"),
        "{log}"
    );
}

#[test]
fn flags_reach_the_compiler_and_bad_ones_are_refused() {
    if !has_compiler() {
        return;
    }
    let device = device();
    let source = "#if SIZE != 32\n#error wrong size\n#endif\n__global__ void fill() {}";
    let compile = |flag: &str| {
        let options = CompileOptions::default().flag(flag);
        Module::from_source_with(&device, source, &options).map(drop)
    };
    compile("-DSIZE=32").unwrap();
    let error = compile("-DSIZE=16").unwrap_err();
    assert!(error.to_string().contains("wrong size"), "{error}");
    let error = compile("--no-such-option").unwrap_err();
    assert!(error.to_string().contains("--no-such-option"), "{error}");
    let error = compile("-DSIZE=\0").unwrap_err();
    assert_eq!(error, Error::Compile(NvrtcError::Nul { what: "an option" }));
}
