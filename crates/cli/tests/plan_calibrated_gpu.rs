//! Plans for a calibrated GPU. The GPU is the simulated libcuda, made to look real.

#[path = "support/scratch.rs"]
mod scratch;
mod support;

use std::process::Output;

use pinlane_simcuda::testing::Stage;
use scratch::Scratch;
use support::{stderr, stdout, unwrapped};

/// The call by which the simulated libcuda identifies itself.
const CONFESSION: &str = "pinlane_simcuda_profile";
const JOB: [&str; 7] = ["plan", "--in", "1GiB", "--out", "1GiB", "--kernel", "4ms"];
const FILE: &str = "pinlane/profiles/simulated-gpu-h200-0000-01-00.0.toml";

fn as_real() -> Stage {
    Stage::without(&[CONFESSION]).expect("the stand-in is built beside the test")
}

fn run_on(stage: &Stage, cache: &Scratch, args: &[&str]) -> Output {
    stage
        .command(env!("CARGO_BIN_EXE_pinlane"))
        .args(args)
        .env("XDG_CACHE_HOME", cache.folder())
        .env_remove("HOME")
        .output()
        .expect("pinlane starts")
}

/// A calibration of the GPU, renamed, with one text replaced.
fn keep(cache: &Scratch, from: &str, to: &str) -> String {
    let text = include_str!("../../model/profiles/h200.toml");
    let text = text.replace("name = \"h200\"", "name = \"my-h200\"");
    assert!(text.contains(from), "{from}");
    let file = cache.file(FILE);
    let folder = cache.folder().join("pinlane/profiles");
    std::fs::create_dir_all(folder).expect("a folder");
    std::fs::write(&file, text.replacen(from, to, 1)).expect("written");
    file
}

#[test]
fn a_gpu_without_calibration_names_the_remedy() {
    let (stage, cache) = (as_real(), Scratch::new());
    for device in ["auto", "cuda"] {
        let args = [&["--device", device], &JOB[..]].concat();
        let output = run_on(&stage, &cache, &args);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert_eq!(stdout(&output), "");
        for part in ["`pinlane calibrate`", "--profile", FILE] {
            assert!(
                stderr(&output).contains(part),
                "{part}: {}",
                stderr(&output)
            );
        }
    }
}

#[test]
fn a_plan_uses_the_calibration() {
    let (stage, cache) = (as_real(), Scratch::new());
    let file = keep(&cache, "", "");
    let output = run_on(&stage, &cache, &JOB);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    let line = "Computed by the model from profile my-h200, not measured\n";
    assert!(stdout(&output).contains(line), "{}", stdout(&output));
    let profile = format!("Profile {file} ");
    assert!(unwrapped(&output).contains(&profile), "{}", stdout(&output));
    // --profile takes precedence.
    let args = [&JOB[..], &["--profile", "pcie3-x16"]].concat();
    let output = run_on(&stage, &cache, &args);
    assert!(stdout(&output).contains("from profile pcie3-x16, not measured"));
}

#[test]
fn a_broken_calibration_is_named_with_its_field_and_the_remedy() {
    let (stage, cache) = (as_real(), Scratch::new());
    for (from, to, field) in [
        ("launch_ns = 2_000", "launch_ns = true", "launch_ns"),
        ("h2d_engines = 1", "h2d_engines = 0", "device.h2d_engines"),
        ("[calls]", "[calls", "parse error"),
    ] {
        let file = keep(&cache, from, to);
        let output = run_on(&stage, &cache, &JOB);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert_eq!(stdout(&output), "");
        for part in [&file, field, "`pinlane calibrate`"] {
            assert!(
                stderr(&output).contains(part),
                "{part}: {}",
                stderr(&output)
            );
        }
    }
}

#[test]
fn a_plan_for_a_simulated_libcuda_uses_its_profile() {
    let stage = Stage::new().expect("the stand-in is built beside the test");
    let cache = Scratch::new();
    let output = run_on(&stage, &cache, &JOB);
    assert!(output.status.success(), "{}", stderr(&output));
    let line = "SIMULATED: sim:h200, computed by the model, not measured\n";
    assert!(stdout(&output).contains(line), "{}", stdout(&output));
    // Its clock cannot be read.
    let output = run_on(&stage, &cache, &["calibrate"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("--device sim:h200"),
        "{}",
        stderr(&output)
    );
    assert_eq!(
        std::fs::read_dir(cache.folder()).expect("a folder").count(),
        0
    );
}
