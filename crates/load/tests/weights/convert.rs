//! Conversion of floating-point tensors.

use pinlane::load::{Dtype, Weights};

use super::rig::{Rig, config, file, float_kind, model};
use super::support::Scratch;
use pinlane_testing::must_return;

const FLOATS: [Dtype; 4] = [Dtype::F16, Dtype::Bf16, Dtype::F32, Dtype::F64];

#[test]
fn all_pairs_at_all_offsets() {
    for to in FLOATS {
        // A piece without progress would repeat forever.
        must_return(move || {
            let rig = Rig::new();
            for before in 0..8 {
                let scratch = Scratch::new();
                let tensors: &[(&str, Dtype, &[u64])] = &[
                    ("before", Dtype::U8, &[before]),
                    ("a", Dtype::F32, &[4999]),
                    ("b", Dtype::F16, &[10_001]),
                    ("c", Dtype::U8, &[3]),
                    ("d", Dtype::F64, &[2503]),
                    ("e", Dtype::Bf16, &[9000]),
                    ("f", Dtype::F64, &[]),
                ];
                let path = file(&scratch, "w.safetensors", tensors, before);
                let weights = Weights::open(path).expect("a good file");
                let threads = 1 + before as usize % 3;
                rig.load(&weights, &config(threads).convert(to));
            }
            rig.assert_clean();
        });
    }
}

/// Elements that start in the last bytes of a page of which nothing else is read.
#[test]
fn first_elements_around_the_end_of_a_page() {
    let scratch = Scratch::new();
    for from in FLOATS {
        let starting = |before: u64| {
            let name = format!("{from}-{before}.safetensors");
            let tensors: &[(&str, Dtype, &[u64])] =
                &[("before", Dtype::U8, &[before]), ("w", from, &[5000])];
            let path = file(&scratch, &name, tensors, 1);
            let weights = Weights::open(path).expect("a good file");
            let tensor = weights.catalog().tensor("w").expect("there").clone();
            (tensor.bytes().start, weights.only(vec![tensor]))
        };
        // The header has the same length for every four-digit number.
        let header_bytes = starting(4000).0 - 4000;
        let all: Vec<_> = (4096 - 9..4096 + 3)
            .map(|place| {
                let (start, weights) = starting(4096 + place - header_bytes);
                assert_eq!(start, 4096 + place);
                weights
            })
            .collect();
        for to in FLOATS {
            let all = all.clone();
            must_return(move || {
                let rig = Rig::new();
                for weights in all {
                    rig.load(&weights, &config(1).convert(to));
                }
                rig.assert_clean();
            });
        }
    }
}

#[test]
fn other_types_and_the_target_type_stay_unchanged() {
    let scratch = Scratch::new();
    let rig = Rig::new();
    let names: Vec<String> = Dtype::ALL.iter().map(|dtype| format!("{dtype}")).collect();
    let tensors: Vec<_> = names
        .iter()
        .zip(Dtype::ALL)
        .map(|(name, dtype)| (name.as_str(), dtype, &[8_u64, 40][..]))
        .collect();
    let path = file(&scratch, "w.safetensors", &tensors, 5);
    let weights = Weights::open(path).expect("a good file");
    for to in FLOATS {
        let tensors = rig.load(&weights, &config(2).convert(to));
        for dtype in Dtype::ALL {
            let tensor = &tensors[&*format!("{dtype}")];
            let expected = float_kind(dtype).map_or(dtype, |_| to);
            assert_eq!(tensor.dtype(), expected);
            assert_eq!(tensor.info().dtype(), dtype);
            weights.verify(&rig.device, tensor).expect("the same");
        }
    }
    rig.assert_clean();
}

#[test]
fn piece_sizes_and_thread_counts() {
    let scratch = Scratch::new();
    let rig = Rig::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    for to in FLOATS {
        for piece_bytes in [16 << 10, 20 << 10, 28 << 10, 64 << 10, 1 << 20] {
            let mut config = config(2).convert(to);
            config.piece_bytes = Some(piece_bytes);
            rig.load(&weights, &config);
        }
    }
    rig.assert_clean();
}
