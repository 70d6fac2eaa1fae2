//! Every command on every built-in profile. Plain `cargo test` takes only two of the profiles.

mod support;

use pinlane_model::Profile;
use serde_json::Value;
use support::{run, stderr, stdout};
use unicode_width::UnicodeWidthStr;

/// Test files of the library.
const WEIGHTS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../load/tests/data/load/sharded"
);

/// Arguments of each command, small enough for all profiles.
const COMMANDS: [&[&str]; 10] = [
    &["compare", "--size", "1MiB"],
    &["bench", "--sizes", "64KiB,1MiB"],
    &["overlap", "--size", "4MiB", "--kernel", "500us"],
    &["dot", "-n", "100003"],
    &["feed", "synthetic", "--samples", "300", "--kernel", "1ms"],
    &["plan", "--in", "4MiB", "--out", "1MiB", "--kernel", "1ms"],
    &["calibrate"],
    &["load", WEIGHTS, "--dtype", "f32", "--verify"],
    &["doctor"],
    &["selftest", "--filter", "events/"],
];

/// On the device without costs, copies take no time and have no rate.
fn is_without_time(profile: &str, command: &str) -> bool {
    profile == "null" && ["compare", "bench", "overlap", "plan", "calibrate"].contains(&command)
}

/// Nothing is wider than a terminal of 80 columns.
#[track_caller]
fn assert_narrow(text: &str) {
    for line in text.lines() {
        assert!(line.width() <= 80, "{} columns: {line}", line.width());
    }
}

#[test]
fn long_sentences_fit_80_columns() {
    let against = concat!(env!("CARGO_TARGET_TMPDIR"), "/narrow.json");
    let before = run(&["--device", "sim:h200", "--json", "bench", "--sizes", "4KiB"]);
    std::fs::write(against, stdout(&before)).expect("written");
    for args in [
        &["compare", "--size", "1"][..],
        &["bench", "--sizes", "4KiB", "--against", against],
        &[
            "overlap", "--size", "1020KiB", "--kernel", "2.345ms", "--host", "1.234ms",
        ],
        &["feed", "synthetic", "--samples", "3", "--time", "1ms"],
        &["feed", "synthetic", "--batch", "1", "--samples", "9"],
        &["load", WEIGHTS, "--repeat", "3"],
        &["dot", "-n", "1000", "--kernel", "atomic"],
        &["calibrate", "--output", against],
        &[
            "plan", "--in", "4GiB", "--out", "0", "--kernel", "1ms", "--input", "express",
        ],
    ] {
        let output = run(&[&["--device", "sim:pcie3-x16"], args].concat());
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        assert_narrow(stdout(&output).split("Written to").next().expect("text"));
        assert!(!stdout(&output).contains('…'), "{}", stdout(&output));
    }
}

#[test]
fn every_command_runs_on_every_profile_as_text_and_as_json() {
    let reduced = ["pcie3-x16", "null"];
    for profile in Profile::builtin_names() {
        if !pinlane_testing::full() && !reduced.contains(&profile) {
            continue;
        }
        let device = format!("sim:{profile}");
        for args in COMMANDS {
            let mut all = vec!["--device", device.as_str()];
            all.extend(args);
            let output = run(&all);
            let which = format!("{all:?}: {}{}", stdout(&output), stderr(&output));
            if is_without_time(profile, args[0]) && !output.status.success() {
                // An error message, not a meaningless table.
                assert_ne!(output.status.code(), None, "{which}");
                assert!(stderr(&output).starts_with("pinlane: error: "), "{which}");
                continue;
            }
            assert!(output.status.success(), "{which}");
            let says = format!("SIMULATED: sim:{profile}");
            assert!(stdout(&output).contains(&says), "{which}");
            for nonsense in ["NaN", "inf ", "-0.0"] {
                assert!(!stdout(&output).contains(nonsense), "{nonsense} in {which}");
            }

            assert_narrow(stdout(&output));

            all.insert(0, "--json");
            let output = run(&all);
            assert!(output.status.success(), "{all:?}: {}", stderr(&output));
            let report: Value = serde_json::from_slice(&output.stdout)
                .unwrap_or_else(|error| panic!("{all:?}: {error}"));
            assert_eq!(report["schema"], 1, "{all:?}");
            let origin = &report["origin"];
            let computed = origin == "COMPUTED" && report["simulated"] == true;
            assert!(origin == "SIMULATED" || computed, "{all:?}: {origin}");
        }
    }
}
