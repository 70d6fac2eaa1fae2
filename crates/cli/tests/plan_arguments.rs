//! Invalid arguments of `pinlane plan`: status 2, and the flag in the message.

#[path = "support/scratch.rs"]
mod scratch;
mod support;

use scratch::Scratch;
use support::{run, stderr, stdout};

/// `plan --profile h200` with these arguments.
#[track_caller]
fn refused(args: &[&str], parts: &[&str]) {
    let args = [&["plan", "--profile", "h200"], args].concat();
    refused_whole(&args, parts);
}

#[track_caller]
fn refused_whole(args: &[&str], parts: &[&str]) {
    let output = run(args);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
    for part in parts {
        assert!(
            stderr(&output).contains(part),
            "{part}: {}",
            stderr(&output)
        );
    }
}

const SIZES: [&str; 4] = ["--in", "1GiB", "--out", "1GiB"];

#[track_caller]
fn refused_kernel(args: &[&str], parts: &[&str]) {
    refused(&[&SIZES, args].concat(), parts);
}

/// A valid job with more arguments.
#[track_caller]
fn refused_more(args: &[&str], parts: &[&str]) {
    refused_kernel(&[&["--kernel", "4ms"], args].concat(), parts);
}

#[test]
fn a_least_time_of_the_kernel() {
    refused(&["--kernel-least", "1ms"], &["--kernel"]);
    refused_more(&["--kernel-least", "-1ms"], &["--kernel-least"]);
    refused_more(&["--kernel-least", "soon"], &["--kernel-least"]);
}

#[test]
fn sizes() {
    refused(
        &["--in", "0", "--out", "0", "--kernel", "1ms"],
        &["--in", "at least 1"],
    );
    refused(
        &["--in", "-1", "--out", "0", "--kernel", "1ms"],
        &["--in", "not a size"],
    );
    refused(
        &["--in", "1GiB", "--out", "x", "--kernel", "1ms"],
        &["--out", "not a size"],
    );
    for size in ["99999999999GiB", "18446744073709551616", "8388608TiB"] {
        refused(&["--in", size, "--out", "0", "--kernel", "1ms"], &["--in"]);
        refused(&["--in", "1", "--out", size, "--kernel", "1ms"], &["--out"]);
    }
    // The largest valid size: the output of a 1-byte chunk does not fit on the device.
    refused(
        &["--in", "1", "--out", "8388607TiB", "--kernel", "1ms"],
        &["--out", "leave no room"],
    );
    refused(&["--in", "1GiB", "--kernel", "1ms"], &["--out"]);
}

#[test]
fn kernels() {
    for (time, reason) in [
        ("NaNms", "not a number"),
        ("-4ms", "must not be negative"),
        ("infs", "1000 hours"),
        ("1e30s", "1000 hours"),
        ("4", "unit"),
        ("4 parsecs", "not a time"),
    ] {
        refused_kernel(&["--kernel", time], &["--kernel <TIME>", reason]);
    }
    for (rate, reason) in [
        ("0GB/s", "at least 1B/s"),
        ("-1GB/s", "not a rate"),
        ("nanGB/s", "not a rate"),
        ("1000001TB/s", "at most 1000000TB/s"),
        ("250", "not a rate"),
    ] {
        refused_kernel(&["--kernel-rate", rate], &["--kernel-rate <RATE>", reason]);
    }
    refused_kernel(&["--kernel-rate", "1B/s"], &["--kernel-rate", "1000 hours"]);
    refused(
        &["--in", "1", "--out", "1", "--kernel", "3600000s"],
        &["--kernel", "too slow"],
    );
    refused_kernel(&[], &["--kernel <TIME>", "--kernel-rate <RATE>"]);
    refused_kernel(
        &["--kernel", "4ms", "--kernel-rate", "1GB/s"],
        &[
            "--kernel <TIME>",
            "--kernel-rate <RATE>",
            "cannot be used with",
        ],
    );
}

#[test]
fn shapes() {
    refused_more(&["--chunk", "0"], &["--chunk", "at least 1"]);
    refused_more(&["--streams", "0"], &["--streams", "from 1 to 128"]);
    refused_more(&["--streams", "129"], &["--streams", "from 1 to 128"]);
    refused_more(&["--streams", "-1"], &["--streams", "from 1 to 128"]);
    refused_more(&["--order", "sideways"], &["--order", "stage-streams"]);
    refused_more(
        &["--order", "stage-streams", "--streams", "4"],
        &["--streams 4", "--order"],
    );
    refused(
        &[
            "--in",
            "8388607TiB",
            "--out",
            "0",
            "--kernel",
            "1s",
            "--chunk",
            "1",
        ],
        &["--chunk", "too long to represent"],
    );
}

#[test]
fn memory() {
    refused_more(&["--input", "paper"], &["--input", "pinned", "express"]);
    refused_more(&["--device-memory", "0"], &["--device-memory"]);
    refused_more(&["--device-memory", "1"], &["--device-memory", "no room"]);
    refused_more(
        &["--device-memory", "10MiB", "--chunk", "64MiB"],
        &["--device-memory", "--chunk", "10485760"],
    );
    refused_more(
        &["--input", "express", "--pinned-memory", "1"],
        &["--pinned-memory", "no room"],
    );
    refused_more(
        &[
            "--input",
            "express",
            "--pinned-memory",
            "4MiB",
            "--chunk",
            "64MiB",
        ],
        &["--pinned-memory", "--chunk", "4194304"],
    );
}

#[test]
fn profiles() {
    let plan = |profile: &str, parts: &[&str]| {
        let args = [
            &["plan", "--profile", profile, "--kernel", "1ms"],
            &SIZES[..],
        ]
        .concat();
        refused_whole(&args, &[&["--profile", profile], parts].concat());
    };
    plan("no-such", &["pcie3-x16, pcie4-x16"]);
    plan("/", &["cannot read"]);
    let scratch = Scratch::new();
    let good = include_str!("../../model/profiles/h200.toml");
    for (name, from, to, parts) in [
        (
            "word.toml",
            "launch_ns = 2_000",
            "launch_ns = \"x\"",
            &["launch_ns"][..],
        ),
        (
            "gone.toml",
            "launch_ns = 2_000\n",
            "",
            &["launch_ns", "missing field"],
        ),
        (
            "more.toml",
            "launch_ns",
            "lunch_ns",
            &["lunch_ns", "unknown field"],
        ),
        (
            "low.toml",
            "both_ways_percent = 109",
            "both_ways_percent = 9",
            &["both_ways_percent", "at least 100"],
        ),
        (
            "fall.toml",
            "[65_536, 22_800]",
            "[65_536, 800]",
            &["h2d.pageable.knots", "fall"],
        ),
    ] {
        let file = scratch.file(name);
        assert!(good.contains(from), "{from}");
        std::fs::write(&file, good.replacen(from, to, 1)).expect("written");
        plan(&file, &[&["is not valid"], parts].concat());
    }
    let file = scratch.file("bytes.toml");
    std::fs::write(&file, [0xff, 0xfe, 0x00]).expect("written");
    plan(&file, &["cannot read"]);
}
