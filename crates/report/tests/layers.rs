//! Modules of the crate import only from lower layers.

use std::fs;
use std::path::Path;

/// From the lowest layer to the highest. Modules of the same layer do not import each other.
const LAYERS: [&[&str]; 7] = [
    &["colour", "format", "origin", "transfer"],
    &["stats"],
    &["markup"],
    &["page"],
    &["plot"],
    &["timeline"],
    &[
        "bench",
        "calibration",
        "compare",
        "doctor",
        "dot",
        "feed",
        "load",
        "overlap",
        "plan",
        "selftest",
    ],
];

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// The top-level module of a file or folder in `src`.
fn module(path: &Path) -> String {
    path.file_stem()
        .expect("a name")
        .to_string_lossy()
        .into_owned()
}

fn check(path: &Path, top: &str) {
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("a folder") {
            check(&entry.expect("an entry").path(), top);
        }
        return;
    }
    if path.extension().is_none_or(|extension| extension != "rs") {
        return;
    }
    let text = fs::read_to_string(path).expect("a source file");
    for import in text.split("crate::").skip(1) {
        let name: String = import
            .chars()
            .take_while(|c| c.is_ascii_lowercase() || *c == '_')
            .collect();
        if let Some(imported) = layer(&name).filter(|_| name != top) {
            assert!(
                Some(imported) < layer(top),
                "{}: {top} imports {name}",
                path.display()
            );
        }
    }
}

#[test]
fn modules_import_only_downwards() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for entry in fs::read_dir(source).expect("a folder") {
        let path = entry.expect("an entry").path();
        let top = module(&path);
        if top != "lib" {
            assert!(layer(&top).is_some(), "add {top} to the layers");
            check(&path, &top);
        }
    }
}
