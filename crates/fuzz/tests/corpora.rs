//! Replays the corpora of the fuzz targets.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use pinlane_fuzz::TARGETS;

/// The files in a folder of `fuzz/`, by name.
fn entries(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let list = fs::read_dir(root.join(folder)).expect("the folder");
    let mut paths: Vec<PathBuf> = list.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

fn stems(folder: &str) -> BTreeSet<String> {
    let stem = |path: &PathBuf| {
        let stem = path.file_stem().expect("a name");
        stem.to_string_lossy().into_owned()
    };
    entries(folder).iter().map(stem).collect()
}

#[test]
fn every_target_is_fuzzed_and_has_a_corpus() {
    let names: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(stems("fuzz_targets"), names);
    assert_eq!(stems("corpus"), names);
}

#[test]
fn every_input_of_the_corpora() {
    for (name, target) in TARGETS {
        let inputs = entries(&format!("corpus/{name}"));
        assert!(inputs.len() >= 3, "{name} has {} inputs", inputs.len());
        for path in inputs {
            let bytes = fs::read(&path).expect("an input");
            let run = panic::catch_unwind(AssertUnwindSafe(|| target(&bytes)));
            assert!(run.is_ok(), "{name} fails for {}", path.display());
        }
    }
}
