//! `pinlane dot`, on simulated devices.

mod support;

use pinlane_model::Profile;
use serde_json::Value;
use support::{pinlane, run, stderr, stdout};

/// The JSON report for these arguments.
fn report(args: &[&str]) -> Value {
    let args: Vec<_> = args.iter().copied().chain(["--json"]).collect();
    let output = run(&args);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(stdout(&output)).expect("valid JSON")
}

/// On the simulated PCIe 3 link.
fn dot(args: &[&str]) -> Value {
    let before = ["--device", "sim:pcie3-x16", "dot"];
    report(&[&before, args].concat())
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

#[test]
fn pcie3_gives_the_golden_text() {
    for (args, golden) in [
        (&[][..], include_str!("golden/dot.txt")),
        (
            &["--kernel", "atomic", "-n", "1_000_000"],
            include_str!("golden/dot-atomic.txt"),
        ),
        (&["-n", "0"], include_str!("golden/dot-nothing.txt")),
    ] {
        let output = run(&[&["--device", "sim:pcie3-x16", "dot"], args].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(stderr(&output), "");
        assert_eq!(stdout(&output), golden);
    }
}

#[test]
fn any_length_is_right_to_the_last_digits() {
    for n in [
        "1",
        "2",
        "3",
        "31",
        "1023",
        "1025",
        "99_991",
        "100000",
        "1_234_567",
    ] {
        let report = dot(&["-n", n, "--seed", "42"]);
        let items: u64 = n.replace('_', "").parse().expect("digits");
        assert_eq!(
            (&report["items"], &report["bytes"]),
            (&items.into(), &(8 * items).into())
        );
        assert_eq!(report["same_bits"], true);
        for way in ["standard", "pinned", "express"] {
            let error = number(&report[way]["relative_error"]);
            assert!(error < 1e-15, "{n}, {way}: {error}");
            let times = &report[way]["times"];
            let parts = ["copy_ns", "kernel_ns", "result_ns"].map(|part| number(&times[part]));
            assert_eq!(
                parts.iter().sum::<f64>(),
                number(&times["total_ns"]),
                "{n}, {way}"
            );
        }
        // Each product is about a quarter: the mean of the elements is a half.
        let mean = number(&report["reference"]) / items as f64;
        assert!(items < 1000 || (0.23..0.27).contains(&mean), "{n}: {mean}");
    }
}

#[test]
fn only_the_seed_decides_the_elements() {
    let bits = |args: &[&str]| dot(args)["pinned"]["bits"].clone();
    let first = bits(&["-n", "5000", "--seed", "9"]);
    assert_eq!(bits(&["-n", "5000", "--seed", "9", "--repeat", "3"]), first);
    assert_ne!(bits(&["-n", "5000", "--seed", "10"]), first);
    let on_h200 = report(&["--device", "sim:h200", "dot", "-n", "5000", "--seed", "9"]);
    assert_eq!(
        on_h200["pinned"]["bits"], first,
        "the device does not matter"
    );
}

#[test]
fn the_same_run_gives_the_same_text() {
    let args = ["--device", "sim:h200", "dot", "-n", "700_001"];
    let (first, second) = (run(&args), run(&args));
    assert!(first.status.success(), "{}", stderr(&first));
    assert_eq!(stdout(&first), stdout(&second));
}

#[test]
fn the_atomic_kernel_is_slow_and_wrong() {
    let report = dot(&["-n", "1000000", "--kernel", "atomic"]);
    let error = number(&report["pinned"]["relative_error"]);
    assert!(error > 1e-5, "{error}");
    assert!(number(&report["tree"]["relative_error"]) < 1e-15);
    let (atomic, tree) = (
        &report["pinned"]["times"]["kernel_ns"],
        &report["tree"]["kernel_ns"],
    );
    assert!(
        number(atomic) > 10.0 * number(tree),
        "{atomic} against {tree}"
    );
}

#[test]
fn every_profile_has_plausible_figures() {
    for name in Profile::builtin_names() {
        let device = format!("sim:{name}");
        let args = ["--device", &device, "dot", "-n", "2_000_000"];
        let output = run(&args);
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        let marker = format!("SIMULATED: sim:{name}, ");
        assert!(stdout(&output).contains(&marker), "{}", stdout(&output));
        let report = report(&args);
        if name == "null" {
            // Nothing takes time on this device, and its profile has no express lane.
            assert!(
                stdout(&output).contains("Speedup: none"),
                "{}",
                stdout(&output)
            );
            assert!(report["express"]["times"].is_null());
            continue;
        }
        let (pinned, express) = (&report["speedup_pinned"], &report["speedup_express"]);
        assert!(number(pinned) > 1.0, "{name}: {pinned}");
        assert!(number(express) >= 1.0, "{name}: {express}");
        assert!(number(express) <= number(pinned), "{name}: {express}");
    }
}

#[test]
fn a_profile_without_an_express_section_gives_no_figure_for_it() {
    let text = include_str!("../../model/profiles/pcie4-x16.toml");
    let (text, _) = text.split_once("[express]").expect("its last section");
    let name = format!("pinlane-dot-{}.toml", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, text).expect("the file is written");
    let device = format!("sim:{}", path.display());
    let output = run(&["--device", &device, "dot", "-n", "1000"]);
    std::fs::remove_file(&path).expect("the file is there");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output).matches("not modelled").count(), 2);
    assert_eq!(stdout(&output).matches("Speedup: ").count(), 1);
}

#[test]
fn copies_left_to_the_driver_take_as_long_as_the_drivers() {
    let report = dot(&["-n", "1"]);
    let copy_ns = |way: &str| number(&report[way]["times"]["copy_ns"]);
    assert_eq!(copy_ns("express"), copy_ns("standard"));
}

#[test]
fn vectors_that_do_not_fit_are_rejected_with_a_length_that_does() {
    // 16 GiB of simulated device memory.
    let output = pinlane(&["--device", "sim:pcie3-x16", "dot", "-n", "3_000_000_000"])
        .env("PINLANE_PINNED_LIMIT", "6MiB")
        .output()
        .expect("pinlane starts");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    let said = stderr(&output);
    assert!(
        said.contains("-n 3000000000 needs 24.00 GB of device memory"),
        "{said}"
    );
    // The budget, not the device, is the limit.
    assert!(said.contains("use -n 524288 or less"), "{said}");
    let output = pinlane(&["--device", "sim:pcie3-x16", "dot", "-n", "1_000_000"])
        .env("PINLANE_PINNED_LIMIT", "6MiB")
        .output()
        .expect("pinlane starts");
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains("-n 1000000 needs"), "{said}");
    assert!(said.contains("use -n 524288 or less"), "{said}");
    assert!(said.contains("PINLANE_PINNED_LIMIT"), "{said}");
}

#[test]
fn the_suggested_length_fits() {
    let output = pinlane(&["--device", "sim:pcie3-x16", "dot", "-n", "524288"])
        .env("PINLANE_PINNED_LIMIT", "6MiB")
        .output()
        .expect("pinlane starts");
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn invalid_arguments_name_the_flag_and_the_remedy() {
    for (args, parts) in [
        (&["-n", "10M"][..], &["-n <N>", "10_000_000"][..]),
        (&["-n", "-1"], &["-n <N>", "10_000_000"]),
        (&["-n", "99999999999999999999"], &["-n <N>", "too large"]),
        (&["--kernel", "fast"], &["--kernel", "tree", "atomic"]),
        (&["--repeat", "0"], &["--repeat"]),
        (&["--seed", "x"], &["--seed"]),
    ] {
        let output = run(&[&["--device", "sim", "dot"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(stdout(&output), "");
        for part in parts {
            assert!(stderr(&output).contains(part), "{}", stderr(&output));
        }
    }
}
