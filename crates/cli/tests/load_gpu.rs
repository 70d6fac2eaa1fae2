//! `pinlane load` as on a GPU, with the host's clock. The GPU is the simulated libcuda, made to look real.

mod support;

use std::process::Output;

use pinlane_simcuda::testing::Stage;
use serde_json::Value;
use support::{stderr, stdout};

/// Files written by the real packages.
const WEIGHTS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../load/tests/data/load/sharded"
);

fn load(args: &[&str]) -> Output {
    let stage = Stage::without(&["pinlane_simcuda_profile"]);
    let stage = stage.expect("the stand-in is built beside the test");
    let mut command = stage.command(env!("CARGO_BIN_EXE_pinlane"));
    command.args(["--device", "cuda", "load", WEIGHTS]);
    let output = command.args(args).output().expect("pinlane starts");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    output
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

#[test]
fn each_run_has_its_times_and_the_later_ones_a_median() {
    let args = ["--json", "--repeat", "4", "--threads", "2", "--verify"];
    let output = load(&args);
    let report: Value = serde_json::from_str(stdout(&output)).expect("valid JSON");
    assert_eq!(report["origin"], "MEASURED");
    assert_eq!(report["complete"], true);
    assert_eq!(report["verify"]["tensors"], 3);
    let runs = report["runs"].as_array().expect("a list");
    assert_eq!(runs.len(), 4);
    let mut later = Vec::new();
    for run in runs {
        let times = &run["times"];
        let of = |name: &str| number(&times[name]);
        let parts = ["headers_ns", "context_ns", "load_ns"].map(of);
        assert_eq!(of("total_ns"), parts.iter().sum::<u64>());
        // Only the first run creates the context.
        assert_eq!(of("context_ns") > 0, later.is_empty());
        assert_eq!(of("page_cache_bytes") + of("direct_bytes"), 94);
        assert_eq!(of("threads"), 2);
        assert!(run["simulated_copies"].is_null());
        let rate = 94.0 / of("total_ns") as f64;
        let told = times["gb_per_s"].as_f64().expect("a rate");
        assert!((told / rate - 1.0).abs() < 1e-9, "{told} against {rate}");
        later.push(of("total_ns"));
    }
    later.remove(0);
    later.sort_unstable();
    assert_eq!(number(&report["median_of_later"]["total_ns"]), later[1]);
    let memory = &report["memory"];
    assert_eq!(number(&memory["device_bytes"]), 542);
    // A small load takes little time.
    assert!(
        (1..=64 << 10).contains(&number(&memory["pinned_bytes"])),
        "{memory}"
    );
}

#[test]
fn the_text_has_a_line_for_each_run_and_the_limit() {
    let output = load(&["--repeat", "3", "--io", "buffered"]);
    let text = stdout(&output);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("Weights to the GPU"));
    assert!(
        lines
            .next()
            .is_some_and(|it| it.starts_with("Measured on "))
    );
    assert_eq!(
        lines.next(),
        Some("3 tensors in 2 files: 94 B; loaded 3 times")
    );
    let begins = |start: &str| text.lines().any(|line| line.starts_with(start));
    for start in [
        "run ",
        "1 ",
        "2 ",
        "3 ",
        "2 to 3, median ",
        "Memory: 542 B on",
    ] {
        assert!(begins(start), "{start}: {text}");
    }
    let limit = text.lines().find(|line| line.starts_with("Limit: the "));
    let limit = limit.unwrap_or_else(|| panic!("{text}"));
    assert!(limit.contains("% of "), "{limit}");
    // Everything was read through the page cache.
    let first = text.lines().find(|line| line.starts_with("1 "));
    assert!(
        first.is_some_and(|line| line.ends_with("94 B           0 B")),
        "{text}"
    );
}
