//! `pinlane calibrate` on simulated devices, as a user sees it.

#[path = "support/scratch.rs"]
mod scratch;
mod support;

use std::path::Path;
use std::process::Output;

use pinlane_model::Profile;
use scratch::Scratch;
use serde_json::Value;
use support::{pinlane, run, stderr, stdout};

/// The tool with a private cache folder.
fn calibrate(args: &[&str], cache: &Path) -> Output {
    pinlane(args)
        .env("XDG_CACHE_HOME", cache)
        .env_remove("HOME")
        .output()
        .expect("pinlane starts")
}

#[test]
fn a_simulated_device_is_named_and_not_cached() {
    let scratch = Scratch::new();
    let output = calibrate(
        &["--device", "sim:pcie3-x16", "calibrate"],
        scratch.folder(),
    );
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output), include_str!("golden/calibrate.txt"));
    assert_eq!(
        std::fs::read_dir(scratch.folder())
            .expect("a folder")
            .count(),
        0
    );
}

#[test]
fn the_written_profile_is_a_device_and_a_profile() {
    let scratch = Scratch::new();
    let file = scratch.file("link.toml");
    let args = ["--device", "sim:pcie4-x16", "calibrate", "--output", &file];
    let output = calibrate(&args, scratch.folder());
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains(&format!("Written to {file}\n")));
    let (_, next) = stdout(&output)
        .split_once("Next       pinlane ")
        .expect("a command");
    let next: Vec<_> = next.split_whitespace().collect();

    let text = std::fs::read_to_string(&file).expect("written");
    let head: Vec<_> = text
        .lines()
        .take_while(|line| line.starts_with('#'))
        .collect();
    assert!(
        head[0].contains(concat!("version ", env!("CARGO_PKG_VERSION"))),
        "{head:?}"
    );
    assert!(head[0].ends_with(" UTC."), "{head:?}");
    assert!(
        head[1].contains("Simulated GPU (pcie4-x16) at 0000:01:00.0"),
        "{head:?}"
    );
    assert_eq!(head[2], "# SIMULATED: sim:pcie4-x16, not a real GPU.");
    let profile = Profile::from_toml(&text).expect("a profile");
    assert_eq!(profile.name, "simulated-gpu-pcie4-x16");
    let simulated = Profile::builtin("pcie4-x16").expect("built in");
    assert!(profile.express.is_some());
    assert_eq!(profile.express, simulated.express);

    let device = format!("sim:{file}");
    let compared = run(&["--device", &device, "compare", "--size", "16MiB"]);
    assert!(compared.status.success(), "{}", stderr(&compared));
    assert!(stdout(&compared).contains("SIMULATED: sim:simulated-gpu-pcie4-x16"));

    let planned = run(&next);
    assert!(planned.status.success(), "{}", stderr(&planned));
    let line = "SIMULATED: sim:simulated-gpu-pcie4-x16, computed by the model, not measured";
    assert!(stdout(&planned).contains(line), "{}", stdout(&planned));
    assert!(stdout(&planned).contains(&format!("Profile     {file}\n")));
}

#[test]
fn json_is_complete_even_if_the_file_cannot_be_written() {
    let scratch = Scratch::new();
    // A file that opens but cannot be written.
    let file = "/dev/full";
    let args = [
        "--device",
        "sim:pcie3-x16",
        "--json",
        "calibrate",
        "--output",
        file,
    ];
    let plain: Vec<&str> = args.into_iter().filter(|word| *word != "--json").collect();
    let output = calibrate(&plain, scratch.folder());
    // It is neither suggested as a next step nor asked for again.
    let text = stdout(&output);
    assert!(text.contains("Written to no file\n"), "{text}");
    assert!(!text.contains(file), "{text}");
    let output = calibrate(&args, scratch.folder());
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(file), "{}", stderr(&output));
    assert_eq!(
        std::fs::read_dir(scratch.folder())
            .expect("a folder")
            .count(),
        0
    );

    let json: Value = serde_json::from_str(stdout(&output)).expect("valid JSON");
    assert_eq!(json["schema"], 1);
    assert_eq!(json["origin"], "SIMULATED");
    assert_eq!(json["profile"], "pcie3-x16");
    assert_eq!(json["written"], serde_json::json!([]));
    let figures = &json["figures"];
    for (rate, must) in [
        (&figures["pinned"]["h2d_gb_per_s"], 12.0),
        (&figures["pinned"]["d2h_gb_per_s"], 12.0),
        (&figures["pageable"]["h2d_gb_per_s"], 6.0),
        (&figures["both_ways_gb_per_s"], 24.0),
    ] {
        let rate = rate.as_f64().expect("a number");
        assert!((rate / must - 1.0).abs() < 0.01, "{rate} for {must}");
    }
    assert_eq!(figures["both_ways_percent"], 100);
    assert_eq!(figures["express"]["lanes"], 8);
    assert_eq!(figures["launch_ns"], 2_000);
    let profile = &json["calibrated_profile"];
    assert_eq!(profile["name"], "simulated-gpu-pcie3-x16");
    assert_eq!(profile["kernel"]["launch_ns"], 2_000);
}
