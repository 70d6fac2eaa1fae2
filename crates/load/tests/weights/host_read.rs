//! Reads into host memory.

use std::fs;

use pinlane::load::{Dtype, LoadConfig, LoadError, LoadErrorKind, TensorInfo, Weights};

use super::rig::{expected, file, model};
use super::support::Scratch;

/// Reads everything into memory of the expected sizes.
fn read(weights: &Weights, config: &LoadConfig) -> Result<Vec<Vec<u8>>, LoadError> {
    let convert = config.convert;
    let bytes = |tensor: &TensorInfo| vec![0xee; expected(weights, tensor, convert).1.len()];
    let mut memory: Vec<Vec<u8>> = weights.tensors().iter().map(bytes).collect();
    let mut targets: Vec<&mut [u8]> = memory.iter_mut().map(Vec::as_mut_slice).collect();
    weights.read_into(config, &mut targets)?;
    Ok(memory)
}

fn check(weights: &Weights, config: &LoadConfig) {
    let memory = read(weights, config).expect("good files");
    for (tensor, found) in weights.tensors().iter().zip(memory) {
        let (_, expected) = expected(weights, tensor, config.convert);
        assert!(found == expected, "{}", tensor.name());
    }
}

#[test]
fn every_byte_arrives() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    for convert in [None, Some(Dtype::F16), Some(Dtype::F64)] {
        for threads in [1, 3] {
            let mut config = LoadConfig::default().threads(threads);
            config.convert = convert;
            check(&weights, &config);
        }
    }
}

#[test]
fn large_tensors_are_read_in_parts_by_several_threads() {
    let scratch = Scratch::new();
    let tensors: &[(&str, Dtype, &[u64])] = &[
        ("small", Dtype::U8, &[3]),
        ("large", Dtype::F32, &[1025, 2049]), // just over two parts
        ("rest", Dtype::Bf16, &[5, 1 << 20]),
    ];
    let weights = Weights::open(file(&scratch, "w.safetensors", tensors, 7)).expect("a good file");
    check(&weights, &LoadConfig::default().threads(4));
    check(
        &weights,
        &LoadConfig::default().threads(4).convert(Dtype::Bf16),
    );
    let rows = weights.tensors()[1].rows(5..1000).expect("there");
    check(&weights.only(vec![rows]), &LoadConfig::default());
}

#[test]
fn targets_of_another_size_are_refused() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let tensor = weights.tensors()[0].clone();
    let mut memory = vec![0; tensor.len_bytes() as usize + 1];
    let error = weights
        .only(vec![tensor.clone()])
        .read_into(&LoadConfig::default(), &mut [&mut memory])
        .expect_err("too large");
    let (found, expected) = (memory.len(), memory.len() - 1);
    assert_eq!(error.kind(), &LoadErrorKind::TargetSize { found, expected });
    assert_eq!(error.tensor(), Some(tensor.name()));
}

#[test]
fn invalid_conversions_and_other_catalogs_are_refused() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let to_integers = LoadConfig::default().convert(Dtype::I64);
    let error = weights
        .clone()
        .only(vec![])
        .read_into(&to_integers, &mut []);
    let kind = LoadErrorKind::NotAFloat { to: Dtype::I64 };
    assert_eq!(error.expect_err("not a float").kind(), &kind);

    let tensors: &[(&str, Dtype, &[u64])] = &[("other", Dtype::U8, &[3])];
    let other = Weights::open(file(&scratch, "other.safetensors", tensors, 1)).expect("good");
    let error = weights
        .only(other.tensors().to_vec())
        .read_into(&LoadConfig::default(), &mut [&mut [0; 3]])
        .expect_err("of another file");
    assert_eq!(error.kind(), &LoadErrorKind::OtherCatalog);
}

#[test]
fn changed_and_missing_files_are_reported() {
    let scratch = Scratch::new();
    let path = model(&scratch);
    let weights = Weights::open(&path).expect("a good file");
    let shorter = fs::read(&path).expect("ours");
    fs::write(&path, &shorter[..shorter.len() - 1]).expect("ours");
    let mut memory: Vec<Vec<u8>> = weights
        .tensors()
        .iter()
        .map(|tensor| vec![0; tensor.len_bytes() as usize])
        .collect();
    let mut read = || {
        let mut targets: Vec<&mut [u8]> = memory.iter_mut().map(Vec::as_mut_slice).collect();
        weights
            .read_into(&LoadConfig::default(), &mut targets)
            .expect_err("not what it was")
    };
    let error = read();
    assert_eq!(error.kind(), &LoadErrorKind::FileChanged);
    assert_eq!(error.file(), Some(path.as_path()));
    fs::remove_file(&path).expect("ours");
    let error = read();
    let LoadErrorKind::Io { code, .. } = error.kind() else {
        panic!("{error}");
    };
    assert_eq!(*code, Some(2)); // ENOENT
}
