//! `pinlane overlap` with work for the CPU, which pipelines do beside the rest.

mod support;

use pinlane_model::{Profile, SplitMix64};
use pinlane_testing::full_or;
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

/// Random jobs of 4 to 128 MiB with kernels and host work of 50 µs to 30 ms. Reduced unless `PINLANE_TEST=full`.
#[test]
fn no_way_beats_the_plan_beside_work_for_the_host() {
    for name in Profile::builtin_names().filter(|name| *name != "null") {
        for seed in 0..full_or(8, 1) {
            let mut random = SplitMix64::new(seed);
            let mut log_uniform = |least: f64, most: f64| {
                let share = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
                least * (most / least).powf(share)
            };
            let size = format!("{}KiB", log_uniform(4096.0, 131_072.0) as u64);
            let [kernel, host] =
                [(); 2].map(|()| format!("{}us", log_uniform(50.0, 30_000.0) as u64));
            let args = ["--kernel", &kernel, "--host", &host];
            let totals = totals(&format!("sim:{name}"), &size, &args);
            let (planned, others) = totals.split_last().expect("five ways");
            let best = others.iter().min().expect("four ways");
            assert!(
                planned * 50 <= best * 51,
                "{name}, {size}, kernel {kernel}, host work {host}: {totals:?}"
            );
        }
    }
}
