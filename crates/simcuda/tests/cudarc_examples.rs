//! Unmodified examples of the cudarc crate, built from its package, on the simulated driver.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use pinlane_simcuda::testing::Stage;
use support::complaints;

/// Every form of allocation, and copies in every direction with asserts on the results.
const EXAMPLES: [&str; 2] = ["01-allocate", "02-copy"];

#[test]
fn examples_of_cudarc_run_and_leave_nothing_behind() {
    let built = build_examples();
    for example in EXAMPLES {
        let stage = Stage::new().expect("the library is built beside the test");
        let output = stage
            .command(built.join(example))
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{example}: {said}");
        let report = stage.report().expect("a report");
        assert!(
            report
                .iter()
                .any(|line| line.starts_with("context: device 0")),
            "{example} did not use the simulated driver: {report:?}"
        );
        assert_eq!(complaints(&report), [""; 0], "{example}");
    }
}

/// The folder with the built examples, from the version of cudarc that this workspace uses.
fn build_examples() -> PathBuf {
    let cudarc = cudarc_folder();
    let package = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("foreign-examples");
    let bin = package.join("src/bin");
    fs::create_dir_all(&bin).expect("a folder for the examples");
    let manifest = format!(
        "[package]\nname = \"foreign-examples\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\
         [workspace]\n[profile.dev]\ndebug = false\n\
         [dependencies.cudarc]\npath = {:?}\ndefault-features = false\n\
         features = [\"std\", \"driver\", \"dynamic-loading\", \"cuda-12080\"]\n",
        cudarc.display().to_string()
    );
    fs::write(package.join("Cargo.toml"), manifest).expect("its manifest");
    for example in EXAMPLES {
        let file = format!("{example}.rs");
        fs::copy(cudarc.join("examples").join(&file), bin.join(&file))
            .unwrap_or_else(|error| panic!("cudarc has no example {example}: {error}"));
    }
    let target = package.join("target");
    let status = cargo()
        .args(["build", "--quiet", "--offline"])
        .current_dir(&package)
        .env("CARGO_TARGET_DIR", &target)
        .status()
        .expect("cargo starts");
    assert!(status.success(), "the examples do not build");
    target.join("debug")
}

/// Where cargo keeps the source of cudarc.
fn cudarc_folder() -> PathBuf {
    let platform = format!("{}-unknown-linux-gnu", env::consts::ARCH);
    let output = cargo()
        .args(["metadata", "--format-version=1", "--offline"])
        // Packages for other platforms are not available.
        .args(["--filter-platform", &platform])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo starts");
    let text = String::from_utf8(output.stdout).expect("text");
    let metadata: serde_json::Value = serde_json::from_str(&text).expect("cargo's JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let cudarc = packages.iter().find(|package| package["name"] == "cudarc");
    let manifest = cudarc.expect("a dependency")["manifest_path"].as_str();
    let manifest = Path::new(manifest.expect("a path"));
    manifest.parent().expect("a folder").to_owned()
}

fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}
