//! Files written by the real Python packages arrive on the device.

use std::collections::{BTreeMap, BTreeSet};

use pinlane::load::{Dtype, Io, LoadConfig, Weights};

use super::expected::expected;
use super::rig::{Rig, config};
use super::support::data;

#[test]
fn every_dtype_of_every_package() {
    let rig = Rig::new();
    let mut by_file = BTreeMap::new();
    for line in expected() {
        let lines: &mut Vec<_> = by_file.entry(line.file.clone()).or_default();
        lines.push(line);
    }
    let mut seen = BTreeSet::new();
    for (file, lines) in by_file {
        let weights = Weights::open(data().join(&file)).expect("a good file");
        for config in [LoadConfig::default(), config(3), config(1).io(Io::Buffered)] {
            let tensors = rig.load(&weights, &config);
            assert_eq!(tensors.len(), lines.len(), "{file}");
            for line in &lines {
                let tensor = &tensors[&line.tensor];
                let found = rig.stream.copy_to_vec(tensor.bytes()).expect("alive");
                assert_eq!(found, line.bytes, "{file} {}", line.tensor);
                assert_eq!(tensor.dtype().name(), line.dtype);
                assert_eq!(tensor.shape(), line.shape);
                seen.insert(line.dtype.clone());
                weights.verify(&rig.device, tensor).expect("the same");
            }
        }
    }
    assert!(Dtype::ALL.iter().all(|dtype| seen.contains(dtype.name())));
    rig.assert_clean();
}

#[test]
fn folders_indexes_and_several_files() {
    let rig = Rig::new();
    let sharded = data().join("sharded");
    let weights = [
        Weights::open(sharded.join("model.safetensors.index.json")),
        Weights::open(&sharded),
        Weights::open_all([
            sharded.join("model-00002-of-00002.safetensors"),
            sharded.join("model-00001-of-00002.safetensors"),
        ]),
    ];
    for weights in weights {
        let tensors = rig.load(&weights.expect("good files"), &config(2));
        let names: Vec<_> = tensors.iter().map(|tensor| tensor.name()).collect();
        let layers = ["model.layers.0.weight", "model.layers.1.weight"];
        assert_eq!(names, ["lm_head.weight", layers[0], layers[1]]);
    }
    let arrays = Weights::open(data().join("npy")).expect("a good folder");
    assert_eq!(arrays.catalog().files().len(), 18);
    assert_eq!(rig.load(&arrays, &config(3)).len(), 18);
    let all = ["npy/vector.npy", "dtypes.safetensors", "odd.safetensors"];
    let all = Weights::open_all(all.map(|file| data().join(file))).expect("good files");
    let tensors = rig.load(&all, &config(2));
    assert_eq!(tensors.len(), 1 + 20 + 3);
    let vector = tensors["vector"].elements::<i32>().expect("they are i32");
    assert_eq!(vector.len(), 7);
    assert!(tensors["vector"].elements::<u64>().is_none());
    drop(tensors);
    rig.assert_clean();
}
