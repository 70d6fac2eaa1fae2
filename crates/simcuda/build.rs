//! Gives the shared library the name that programs link against, and keeps it loaded: its report is
//! written when the process ends, even if the program closed the library before.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
