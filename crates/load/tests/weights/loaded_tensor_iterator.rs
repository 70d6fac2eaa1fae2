//! The stream of tensors: each comes once, complete; progress and statistics.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use pinlane::load::{Dtype, LoadConfig, LoadProgress, Weights};

use super::rig::{MODEL, Rig, config, file, model};
use super::support::{Scratch, data};
use pinlane_testing::must_return;

#[test]
fn each_tensor_comes_once_and_complete() {
    let scratch = Scratch::new();
    let rig = Rig::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    for threads in [1, 2, 5] {
        let mut names = BTreeSet::new();
        let config = config(threads);
        let mut landing = weights.start(&rig.device, &config).expect("it starts");
        for tensor in landing.by_ref() {
            let tensor = tensor.expect("no fault");
            rig.check(&weights, &tensor, &config);
            assert!(names.insert(tensor.name().to_owned()), "twice: {tensor:?}");
        }
        assert_eq!(names.len(), MODEL.len());
        assert!(landing.next().is_none(), "it has ended");
        let stats = landing.stats();
        let total: u64 = weights.tensors().iter().map(|info| info.len_bytes()).sum();
        assert_eq!((stats.bytes(), stats.threads), (total, threads));
        assert!(stats.gb_per_s() > 0.0);
        assert_eq!(landing.stats(), stats, "no time passes any more");
    }
    rig.assert_clean();
}

#[test]
fn tensors_outlive_the_load() {
    let scratch = Scratch::new();
    let rig = Rig::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let tensors = rig.load(&weights, &LoadConfig::default());
    assert!(tensors.get("no such").is_none() && !tensors.is_empty());
    let kept = tensors["deep"].clone();
    let names: Vec<String> = tensors.into_iter().map(|t| t.name().to_owned()).collect();
    let mut expected = MODEL.map(|(name, ..)| name);
    expected.sort_unstable();
    assert_eq!(names, expected);
    assert!(rig.device.stats().device_bytes > 0, "one of them is left");
    rig.check(&weights, &kept, &LoadConfig::default());
    drop(kept);
    assert_eq!(rig.device.stats().device_bytes, 0);
    rig.assert_clean();
}

/// The progress reported by a load.
fn progress_of(rig: &Rig, weights: &Weights, config: LoadConfig) -> Vec<LoadProgress> {
    let told: Arc<Mutex<Vec<LoadProgress>>> = Arc::default();
    let here = Arc::clone(&told);
    let config = config.on_progress(move |progress| here.lock().expect("whole").push(progress));
    let mut landing = weights.start(&rig.device, &config).expect("it starts");
    let mut tensors = 0;
    while let Some(tensor) = landing.next() {
        tensor.expect("no fault");
        tensors += 1;
        assert!(landing.progress().tensors >= tensors);
    }
    let end = landing.progress();
    assert_eq!((end.tensors, end.bytes), (tensors, end.total_bytes));
    assert_eq!(end.total_tensors, weights.tensors().len());
    let told = told.lock().expect("whole");
    assert!(told.last().is_none_or(|last| *last == end));
    told.clone()
}

#[test]
fn progress_rises_to_the_total() {
    let scratch = Scratch::new();
    let rig = Rig::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    for (threads, to) in [(1, None), (3, None), (2, Some(Dtype::F64))] {
        let mut config = config(threads);
        config.convert = to;
        let told = progress_of(&rig, &weights, config);
        assert!(told.len() >= 5, "one a piece");
        for pair in told.windows(2) {
            assert!(pair[0].bytes < pair[1].bytes && pair[0].tensors <= pair[1].tensors);
        }
        let total: u64 = weights.tensors().iter().map(|info| info.len_bytes()).sum();
        assert!(told.iter().all(|progress| progress.total_bytes == total));
    }
    rig.assert_clean();
}

#[test]
fn nothing_to_read() {
    let scratch = Scratch::new();
    let rig = Rig::new();
    let nothing = Weights::open(data().join("nothing.safetensors")).expect("a good file");
    assert!(rig.load(&nothing, &config(2)).is_empty());
    let tensors: &[(&str, Dtype, &[u64])] =
        &[("a", Dtype::F32, &[0, 7]), ("b", Dtype::U8, &[5, 0, 2])];
    let empty = file(&scratch, "empty.safetensors", tensors, 1);
    let empty = Weights::open(empty).expect("a good file");
    let mut converting = config(2);
    converting.convert = Some(Dtype::F16);
    let tensors = rig.load(&empty, &converting);
    assert_eq!(tensors["a"].elements::<u16>().expect("F16").len(), 0);
    assert_eq!(tensors["b"].shape(), [5, 0, 2]);
    assert_eq!(progress_of(&rig, &empty, config(1)), []);
    drop(tensors);
    rig.assert_clean();
}

/// A panicking callback ends the load and leaks nothing.
#[test]
fn a_panicking_callback_ends_the_load() {
    must_return(|| {
        let scratch = Scratch::new();
        let rig = Rig::new();
        let weights = Weights::open(model(&scratch)).expect("a good file");
        let config = config(2).on_progress(|progress| {
            assert!(progress.bytes < 40_000, "on purpose");
        });
        let loaded = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            weights.load(&rig.device, &config)
        }));
        assert!(loaded.is_err());
        rig.assert_clean();
    });
}
