//! Source, PTX and twins of the kernels match.

use pinlane_driver::ParamKind;

/// In the order in which they are compiled as one.
const SOURCES: [(&str, &str); 5] = [
    ("builtin.cu", include_str!("../src/cuda/builtin.cu")),
    ("convert.cu", include_str!("../src/cuda/convert.cu")),
    ("dot.cu", include_str!("../src/cuda/dot.cu")),
    ("normalize.cu", include_str!("../src/cuda/normalize.cu")),
    ("pieces.cu", include_str!("../src/cuda/pieces.cu")),
];

/// The hash that `compile.py` writes into the PTX.
fn fnv1a64(data: &[u8]) -> u64 {
    data.iter().fold(0xcbf2_9ce4_8422_2325, |value, byte| {
        (value ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Names and parameter types of the entries of a PTX module.
fn entries(ptx: &str) -> Vec<(&str, Vec<&str>)> {
    ptx.split(".visible .entry ")
        .skip(1)
        .map(|text| {
            let (name, rest) = text.split_once('(').expect("a parameter list");
            let (list, _) = rest.split_once(')').expect("its end");
            let types = list
                .split(',')
                .filter(|param| !param.trim().is_empty())
                .map(|param| param.split_whitespace().nth(1).expect("a type"))
                .collect();
            (name.trim(), types)
        })
        .collect()
}

/// How NVRTC writes a parameter of this type.
fn ptx_type(kind: &ParamKind) -> &'static str {
    match kind {
        ParamKind::Ptr | ParamKind::U64 | ParamKind::I64 => ".u64",
        ParamKind::U32 | ParamKind::I32 => ".u32",
        ParamKind::F32 => ".f32",
        ParamKind::F64 => ".f64",
    }
}

#[test]
fn the_hash_is_fnv1a() {
    assert_eq!(fnv1a64(b""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(fnv1a64(b"foobar"), 0x8594_4171_f739_67e8);
}

#[test]
fn the_ptx_was_compiled_from_the_source() {
    let first = pinlane_kernels::PTX.lines().next().expect("a first line");
    let names = SOURCES.map(|(name, _)| name).join(" ");
    let texts = SOURCES.map(|(_, text)| text).concat();
    assert_eq!(
        first,
        format!("// {names} fnv1a64 {:016x}", fnv1a64(texts.as_bytes())),
        "a source has changed: run `cargo xtask kernels`"
    );
}

#[test]
fn twins_and_ptx_entries_have_the_same_parameters() {
    let mut in_ptx = entries(pinlane_kernels::PTX);
    let mut twins: Vec<(&str, Vec<&str>)> = pinlane_kernels::builtin()
        .iter()
        .map(|kernel| (kernel.name, kernel.params.iter().map(ptx_type).collect()))
        .collect();
    in_ptx.sort();
    twins.sort();
    assert_eq!(in_ptx, twins);
}

#[test]
fn every_supported_gpu_and_driver_can_load_the_ptx() {
    let has = |line: &str| pinlane_kernels::PTX.lines().any(|found| found == line);
    assert!(has(".version 8.0"), "a 12.0 driver takes PTX 8.0 at most");
    assert!(has(".target sm_52"));
    assert!(has(".address_size 64"));
}
