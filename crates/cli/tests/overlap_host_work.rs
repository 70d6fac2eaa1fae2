//! `pinlane overlap` with work for the CPU, which pipelines do beside the rest.

mod support;

use pinlane_model::Profile;
use serde_json::Value;
use support::{run, stderr, stdout};

/// The times of the five variants.
fn totals(device: &str, size: &str, host: &[&str]) -> Vec<u64> {
    let args = [
        &["--device", device, "overlap", "--json", "--size", size],
        host,
    ]
    .concat();
    let output = run(&args);
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_str(stdout(&output)).expect("valid JSON");
    let variants = report["chart"]["timelines"]
        .as_array()
        .expect("the variants");
    let total_ns = |variant: &Value| variant["total_ns"].as_u64().expect("a time");
    variants.iter().map(total_ns).collect()
}

#[test]
fn work_for_the_host_is_done_beside_every_pipeline() {
    for name in Profile::builtin_names() {
        for size in ["4MiB", "24MiB"] {
            let device = format!("sim:{name}");
            let [with, without] =
                [&[][..], &["--host", "0s"]].map(|host| totals(&device, size, host));
            assert_eq!(
                with[2..],
                without[2..],
                "{name}, {size}: it takes no longer"
            );
        }
    }
}

#[test]
fn a_pipeline_is_done_beside_longer_work_for_the_host() {
    let host = ["--kernel", "1ms", "--host", "9ms"];
    for total_ns in &totals("sim:pcie3-x16", "12MiB", &host)[2..] {
        // And the calls that record the work.
        assert!((9_000_000..9_010_000).contains(total_ns), "{total_ns}");
    }
}
