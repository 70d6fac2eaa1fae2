//! Tells the program where Cargo puts the shared libraries that it embeds: see `src/embedded.rs`.

use std::fs::File;
use std::path::{Path, PathBuf};

/// The libraries, by their crates' folders and file names.
const LIBRARIES: [(&str, &str); 2] = [
    ("boost", "libpinlane_boost.so"),
    ("simcuda", "libpinlane_simcuda.so"),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(embeds_libraries)");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("Cargo sets it"));
    // Cargo builds the libraries of crates in this repository under fixed names, into the folder `deps` beside `build`.
    let deps = out.ancestors().nth(3).map(|profile| profile.join("deps"));
    let is_repository = |(folder, _): &(&str, &str)| Path::new("..").join(folder).is_dir();
    let Some(deps) = deps.filter(|_| LIBRARIES.iter().all(is_repository)) else {
        return;
    };
    for (_, name) in LIBRARIES {
        // `cargo check` builds no libraries, but compiles the lines that embed them. A build replaces the empty file.
        let _ = File::create_new(deps.join(name));
    }
    println!("cargo::rustc-cfg=embeds_libraries");
    println!("cargo::rustc-env=PINLANE_LIBRARY_FOLDER={}", deps.display());
}
