//! Gives the shared library the name that programs link against, and keeps it loaded: its report is
//! written when the process ends, even if the program closed the library before. Lists the functions that
//! it does not support.

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/api.txt");
    // For every target of this package. Arguments for shared libraries alone would also reach those of packages that
    // depend on this one, and two libraries of one name cannot be loaded.
    println!("cargo::rustc-link-arg=-Wl,-soname,libcuda.so.1");
    println!("cargo::rustc-link-arg=-Wl,-z,nodelete");
    // The last name counts. Tests load the library by the other one.
    println!("cargo::rustc-link-arg-tests=-Wl,-soname,pinlane-simcuda-test");

    let api = fs::read_to_string("src/api.txt").expect("src/api.txt");
    let mut unsupported = BTreeSet::new();
    for line in api.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<_> = line.split_whitespace().collect();
        if let [_, _, symbol, per_thread, "unsupported"] = words[..] {
            unsupported.extend([symbol, per_thread].into_iter().filter(|name| *name != "-"));
        }
    }
    let names = Vec::from_iter(unsupported).join("\n");
    let folder = env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR");
    let target = Path::new(&folder).join("unsupported.rs");
    fs::write(target, format!("unsupported! {{ {names} }}")).expect("OUT_DIR is writable");
}
