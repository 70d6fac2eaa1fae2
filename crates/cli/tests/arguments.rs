//! Invalid arguments, help, and closed pipes.

mod support;

use std::process::Stdio;

use support::{pinlane, run, stderr, stdout};

/// Expects status 2, an empty standard output, and all of `parts` in the message.
#[track_caller]
fn refused(args: &[&str], parts: &[&str]) {
    let output = run(args);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
    for part in parts {
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
}

#[test]
fn invalid_devices() {
    refused(
        &["--device", "gpu", "compare"],
        &["--device", "sim:PROFILE"],
    );
    refused(&["--device", "cuda:x", "compare"], &["--device", "cuda:0"]);
    refused(
        &["--device", "sim:pcie9", "compare"],
        &["pcie9", "pcie3-x16", "h200"],
    );
    refused(
        &["--device", "sim:/", "compare"],
        &["--device", "cannot read"],
    );
}

#[test]
fn an_invalid_profile_file_is_named_with_its_field() {
    let path = std::env::temp_dir().join(format!("pinlane-args-{}.toml", std::process::id()));
    std::fs::write(&path, "name = \"half\"\n").expect("the file is written");
    let device = format!("sim:{}", path.display());
    refused(
        &["--device", &device, "compare"],
        &[&device[4..], "is not valid"],
    );
    std::fs::remove_file(&path).expect("the file is there");
}

#[test]
fn invalid_numbers() {
    refused(&["compare", "--size", "12XB"], &["--size", "MiB"]);
    refused(&["compare", "--size", "0"], &["--size", "at least 1"]);
    refused(&["compare", "--repeat", "0"], &["--repeat"]);
    refused(&["selftest", "--seed", "x"], &["--seed"]);
}

#[test]
fn numbers_and_sizes_in_all_spellings() {
    for args in [
        &["compare", "--size", "1mb"][..],
        &["compare", "--size", "64 KiB", "--repeat", "1e0"],
        &["overlap", "--size", "0.5M"],
        &["bench", "--sizes", "1k..4K,1e4", "--seed", "1_000"],
        &["plan", "--in", "3.5GiB", "--out", "256M", "--kernel", "1ms"],
        &[
            "plan",
            "--in",
            "1g",
            "--out",
            "0",
            "--kernel-rate",
            "2.5tb/s",
        ],
        &["dot", "-n", "1e4"],
        &[
            "feed",
            "synthetic",
            "--shape",
            "8",
            "--samples",
            "1e3",
            "--batch",
            "1e2",
        ],
    ] {
        let mut command = pinlane(&[&["--device", "sim"], args].concat());
        let output = command.env("PINLANE_PINNED_LIMIT", "1.5 Gb").output();
        let output = output.expect("pinlane starts");
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn an_invalid_limit_gets_no_advice_about_sizes() {
    for args in [
        &["compare", "--size", "1MiB"][..],
        &["bench", "--sizes", "1MiB"],
        &["overlap", "--size", "1MiB"],
        &["dot", "-n", "1000"],
        &["feed", "synthetic", "--shape", "8", "--samples", "10"],
        &["calibrate"],
    ] {
        let mut command = pinlane(&[&["--device", "sim"], args].concat());
        let output = command.env("PINLANE_PINNED_LIMIT", "plenty").output();
        let output = output.expect("pinlane starts");
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let said = stderr(&output);
        let expected = "pinlane: error: invalid PINLANE_PINNED_LIMIT=\"plenty\": expected a number";
        assert!(said.contains(expected), "{args:?}: {said}");
        assert!(!said.contains("smaller"), "{args:?}: {said}");
    }
}

#[test]
fn invalid_commands() {
    refused(&[], &["Usage"]);
    refused(&["fly"], &["fly"]);
    refused(&["compare", "--fast"], &["--fast"]);
}

#[test]
fn a_filter_that_matches_nothing() {
    refused(
        &["--device", "sim", "selftest", "--filter", "no-such-case"],
        &["--filter", "no-such-case"],
    );
}

#[test]
fn output_files_are_checked_before_any_work() {
    let job = ["--in", "1MiB", "--out", "0", "--kernel", "0"];
    for (command, args, flags) in [
        ("compare", &[][..], &["--svg", "--html"][..]),
        ("bench", &[], &["--csv", "--svg", "--html"]),
        ("overlap", &[], &["--svg", "--html", "--trace"]),
        ("plan", &job, &["--svg", "--html", "--trace"]),
        ("calibrate", &[], &["--output"]),
        ("feed", &["synthetic"], &["--html"]),
    ] {
        for flag in flags {
            let args = [
                &["--device", "sim", command],
                args,
                &[flag, "/no/such/file"],
            ]
            .concat();
            refused(&args, &[flag, "/no/such/file", "name a file"]);
        }
    }
}

#[test]
fn a_report_never_overwrites_an_input() {
    let name = format!("pinlane-read-{}.toml", std::process::id());
    let path = std::env::temp_dir().join(name);
    let text = include_str!("../../model/profiles/pcie3-x16.toml");
    std::fs::write(&path, text).expect("the file is written");
    let file = path.to_str().expect("plain text");
    let device = format!("sim:{file}");
    let job = ["--in", "1MiB", "--out", "0", "--kernel", "0"];
    let plan = [&job[..], &["--profile", file]].concat();
    for (device, command, args, flag) in [
        (device.as_str(), "compare", &[][..], "--svg"),
        (&device, "bench", &[], "--csv"),
        (&device, "overlap", &[], "--trace"),
        (&device, "plan", &job, "--html"),
        (&device, "calibrate", &[], "--output"),
        (&device, "feed", &["synthetic"], "--html"),
        ("sim", "plan", &plan, "--svg"),
        ("sim", "bench", &["--against", file], "--html"),
    ] {
        let args = [&["--device", device, command], args, &[flag, file]].concat();
        refused(&args, &[flag, file, "name another file"]);
    }
    assert_eq!(std::fs::read_to_string(&path).expect("kept"), text);
    std::fs::remove_file(&path).expect("the file is there");
}

#[test]
fn help_shows_two_examples_each() {
    for args in [
        &["--help"][..],
        &["compare", "--help"],
        &["bench", "--help"],
        &["calibrate", "--help"],
        &["dot", "--help"],
        &["load", "--help"],
        &["plan", "--help"],
        &["selftest", "--help"],
    ] {
        let output = run(args);
        assert!(output.status.success());
        let (_, examples) = stdout(&output).split_once("Examples:").expect("examples");
        let count = examples
            .lines()
            .filter(|line| line.starts_with("  pinlane "))
            .count();
        assert_eq!(count, 2, "{args:?}");
    }
}

#[test]
fn flags_may_come_after_the_command() {
    let output = run(&[
        "compare", "--size", "1MiB", "--device", "sim:h200", "--json",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).starts_with('{'));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    for args in [
        &["--device", "sim", "compare", "--size", "1MiB"][..],
        &["--device", "sim", "--json", "compare", "--size", "1MiB"],
        &["--device", "sim", "bench", "--sizes", "4KiB"],
        &["--device", "sim", "selftest", "--filter", "memset/"],
        &[
            "plan",
            "--profile",
            "h200",
            "--in",
            "1MiB",
            "--out",
            "0",
            "--kernel",
            "0",
        ],
        &["--help"],
    ] {
        // The reading end is closed before the tool writes its first byte.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = pinlane(args)
            .stdout(Stdio::from(writer))
            .stderr(Stdio::piped())
            .output()
            .expect("pinlane starts");
        assert_eq!(stderr(&output), "", "{args:?}");
        assert_eq!(output.status.code(), Some(0), "{args:?}");
    }
}
