//! README's snippets, in the order in which they stand there, are one program with `pinlane` as its only
//! dependency.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the library once more, so it runs with the full tests only.
#[test]
fn the_snippets_are_one_program_with_one_dependency() {
    if pinlane_testing::skip_slow_test() {
        return;
    }
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(crate_dir.join("../../README.md")).expect("README.md");
    let project = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("readme");
    write_project(&project, crate_dir, &snippets(&readme));
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--offline"])
        .current_dir(&project)
        .env("CARGO_TARGET_DIR", project.join("target"))
        .output()
        .expect("cargo runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
}

/// The Rust code of the page, except what must not compile.
fn snippets(readme: &str) -> String {
    let mut code = String::new();
    let mut inside = false;
    for line in readme.lines() {
        match line {
            "```rust" => inside = true,
            "```" => inside = false,
            line if inside => code = code + "    " + line + "\n",
            _ => (),
        }
    }
    assert!(code.contains("Device::cuda(0)"), "README opens a GPU");
    // The same program on a machine without a GPU.
    code.replace("Device::cuda(0)", "Device::sim(\"h200\")")
}

fn write_project(project: &Path, crate_dir: &Path, code: &str) {
    fs::create_dir_all(project.join("src")).expect("a folder");
    let manifest = format!(
        "[package]\nname = \"readme\"\nedition = \"2024\"\n\n[dependencies]\n\
         pinlane = {{ path = {crate_dir:?}, features = [\"record\", \"sim\"] }}\n\n[workspace]\n"
    );
    fs::write(project.join("Cargo.toml"), manifest).expect("a manifest");
    // The versions that the workspace was tested with, which are there offline.
    let lock = crate_dir.join("../../Cargo.lock");
    fs::copy(lock, project.join("Cargo.lock")).expect("a lock file");
    let program = format!(
        "#![allow(unused_variables)]\n\nfn main() -> pinlane::Result<()> {{\n{code}    Ok(())\n}}\n"
    );
    fs::write(project.join("src/main.rs"), program).expect("a program");
    write_files(project);
}

/// The files that the program loads.
fn write_files(project: &Path) {
    let header = r#"{"lm_head.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}"#;
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend([0; 16]);
    fs::write(project.join("model.safetensors"), file).expect("weights");

    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (600, 3, 32, 32), }";
    let header = format!("{header:<117}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.resize(file.len() + 600 * 3 * 32 * 32, 7);
    fs::write(project.join("images.npy"), file).expect("images");
}
