//! JSON and pages say what made them: version, date, driver and machine.

#[path = "support/scratch.rs"]
mod scratch;
mod support;

use pinlane_simcuda::testing::Stage;
use scratch::Scratch;
use serde_json::Value;
use support::{run, stderr, stdout};

/// Test files of the library.
const WEIGHTS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../load/tests/data/load/sharded"
);

const COMMANDS: [&[&str]; 10] = [
    &["compare", "--size", "1MiB"],
    &["bench", "--sizes", "64KiB", "--memory", "pinned"],
    &["overlap", "--size", "4MiB", "--kernel", "500us"],
    &["dot", "-n", "1000"],
    &["feed", "synthetic", "--samples", "300"],
    &["plan", "--in", "4MiB", "--out", "1MiB", "--kernel", "1ms"],
    &["calibrate"],
    &["load", WEIGHTS],
    &["doctor"],
    &["selftest", "--filter", "events/"],
];

fn environment(json: &[u8]) -> Value {
    let report: Value = serde_json::from_slice(json).expect("JSON");
    report["environment"].clone()
}

/// `2026-11-15T09:36:59Z`.
#[track_caller]
fn assert_iso_date(date: &str) {
    let pattern = "dddd-dd-ddTdd:dd:ddZ";
    let digits = date.replace(|c: char| c.is_ascii_digit(), "d");
    assert_eq!(digits, pattern, "{date}");
}

#[track_caller]
fn assert_has_machine(made: &Value) {
    assert_eq!(made["version"], env!("CARGO_PKG_VERSION"));
    assert_iso_date(made["date"].as_str().expect("a date"));
    assert!(made["cpus"].as_u64().is_some_and(|cpus| cpus > 0));
    for field in ["cpu", "system"] {
        let text = made[field].as_str().expect(field);
        assert!(!text.is_empty(), "{field}");
    }
}

#[test]
fn the_json_of_every_command_says_what_made_it() {
    for args in COMMANDS {
        let output = run(&[&["--json", "--device", "sim:h200"], args].concat());
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        let made = environment(&output.stdout);
        assert_has_machine(&made);
        assert_eq!(made["driver"], "simulator, profile h200", "{args:?}");
        assert!(made["gpu"].is_string(), "{args:?}");
    }
}

#[test]
fn every_page_says_what_made_it() {
    let folder = Scratch::new();
    let page = folder.file("page.html");
    let earlier = folder.file("earlier.json");
    let bench = ["bench", "--sizes", "64KiB", "--memory", "pinned"];
    let output = run(&[&["--json", "--device", "sim:h200"], &bench[..]].concat());
    std::fs::write(&earlier, &output.stdout).expect("written");
    let against = [&bench[..], &["--against", &earlier]].concat();
    let with_pages = COMMANDS[..3].iter().chain(&COMMANDS[4..6]);
    for args in with_pages.copied().chain([&against[..]]) {
        let device = ["--device", "sim:h200"];
        let output = run(&[&device, args, &["--html", &page]].concat());
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        let html = std::fs::read_to_string(&page).expect("the page");
        let (_, footer) = html.split_once("<footer>").expect("a footer");
        let version = concat!("Made by Pinlane ", env!("CARGO_PKG_VERSION"), ", ");
        let (_, date) = footer.split_once(version).expect("the version");
        assert_iso_date(date.split('<').next().expect("a date"));
        assert!(footer.contains(", simulator, profile h200<"), "{footer}");
        assert!(footer.contains("Machine: "), "{footer}");
    }
}

#[test]
fn a_gpu_has_the_version_of_its_driver() {
    let stage = Stage::without(&["pinlane_simcuda_profile"]);
    let stage = stage.expect("the stand-in is built beside the test");
    for device in ["cuda", "auto"] {
        let mut command = stage.command(env!("CARGO_BIN_EXE_pinlane"));
        command.args(["--device", device, "--json", "dot", "-n", "1000"]);
        let output = command.output().expect("pinlane starts");
        assert!(output.status.success(), "{}", stderr(&output));
        let made = environment(&output.stdout);
        let driver = made["driver"].as_str().expect("a driver");
        assert!(driver.starts_with("CUDA 1"), "{driver}");
        let report: Value = serde_json::from_str(stdout(&output)).expect("JSON");
        assert_eq!(made["gpu"], report["device"]);
    }
}

#[test]
fn reports_without_a_device_name_no_driver() {
    for args in [
        &["plan", "--profile", "h200"][..],
        &["load", WEIGHTS, "--list"],
    ] {
        let output = run(&[&["--json", "--device", "sim"], args].concat());
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        let made = environment(&output.stdout);
        assert_has_machine(&made);
        assert_eq!(made.get("driver"), None, "{args:?}");
        assert_eq!(made.get("gpu"), None, "{args:?}");
    }
}
