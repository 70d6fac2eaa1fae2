//! `pinlane plan`, as a user sees it.

#[path = "support/scratch.rs"]
mod scratch;
mod support;

use pinlane_cuda::Cuda;
use pinlane_driver::Platform;
use pinlane_model::Profile;
use scratch::Scratch;
use serde_json::Value;
use support::{pinlane, run, stderr, stdout};

const JOB: [&str; 7] = ["plan", "--in", "1GiB", "--out", "1GiB", "--kernel", "4ms"];

/// The job with more arguments.
fn job_with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    JOB.iter().chain(more).copied().collect()
}

/// The output for these valid arguments.
#[track_caller]
fn said(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    stdout(&output).to_owned()
}

#[track_caller]
fn json(args: &[&str]) -> Value {
    let args: Vec<_> = args.iter().copied().chain(["--json"]).collect();
    serde_json::from_str(&said(&args)).expect("valid JSON")
}

#[track_caller]
fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn a_pinned_job_gives_the_golden_text() {
    let text = said(&job_with(&["--device", "sim:pcie3-x16"]));
    assert_eq!(text, include_str!("golden/plan-pinned.txt"));
}

#[test]
fn an_express_job_gives_the_golden_text() {
    let text = said(&[
        "--device",
        "sim:pcie3-x16",
        "plan",
        "--in",
        "256MiB",
        "--out",
        "64MiB",
        "--kernel-rate",
        "20GB/s",
        "--input",
        "express",
        "--output",
        "express",
    ]);
    assert_eq!(text, include_str!("golden/plan-express.txt"));
}

#[test]
fn every_profile_with_costs_has_a_plan() {
    for name in Profile::builtin_names() {
        let output = run(&job_with(&["--profile", name]));
        if name == "null" {
            assert_eq!(output.status.code(), Some(2));
            assert!(stderr(&output).contains("--profile null: copies take no time"));
            continue;
        }
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        let line = format!("Computed by the model from profile {name}, not measured\n");
        // Above the plan and above its timeline.
        assert_eq!(stdout(&output).matches(&line).count(), 2, "{name}");
    }
}

#[test]
fn json_has_the_plan_and_its_timeline() {
    let plan = json(&job_with(&["--device", "sim:pcie4-x16"]));
    assert_eq!(plan["schema"], 1);
    assert_eq!(plan["origin"], "COMPUTED");
    assert_eq!(plan["profile"], "pcie4-x16");
    assert_eq!(plan["simulated"], true);
    assert_eq!(plan["profile_file"], Value::Null);
    assert_eq!(plan["given"], Value::Null);
    assert_eq!(plan["job"]["bytes_in"], 1 << 30);
    assert_eq!(plan["job"]["kernel_ns"], 4_000_000);
    assert_eq!(plan["job"]["input"], "pinned");
    let best = &plan["best"];
    let (ns, chunks) = (number(&best["predicted_ns"]), number(&best["chunks"]));
    let chunk_bytes = number(&best["chunk_bytes"]);
    assert_eq!(chunks, (1u64 << 30).div_ceil(chunk_bytes));
    let device_bytes = number(&best["device_bytes"]);
    assert_eq!(
        device_bytes,
        2 * chunk_bytes * number(&best["ring_slots"]).min(chunks)
    );
    assert_eq!(
        (&best["pinned_bytes"], &best["lanes"]),
        (&0.into(), &Value::Null)
    );
    let speedup = best["speedup"].as_f64().expect("a number");
    let serial_ns = number(&plan["serial_ns"]);
    assert!((speedup - serial_ns as f64 / ns as f64).abs() < 1e-9);
    assert!(speedup > 1.8, "{speedup}");
    assert_eq!(plan["bottleneck"]["part"], "host_to_device");
    assert_eq!(plan["advice"]["kind"], "link_is_full");
    for other in plan["alternatives"].as_array().expect("a list") {
        let times = other["times_best"].as_f64().expect("a number");
        // Stage streams win unless another order is clearly better.
        assert!(times >= 0.995, "{other}");
        let times_ns = number(&other["predicted_ns"]) as f64 / ns as f64;
        assert!((times - times_ns).abs() < 1e-9);
    }
    let timelines = plan["timeline"]["timelines"].as_array().expect("a list");
    let totals: Vec<_> = timelines
        .iter()
        .map(|run| number(&run["total_ns"]))
        .collect();
    assert_eq!(totals, [serial_ns, ns]);
    assert_eq!(plan["timeline"]["origin"], "COMPUTED");
    // Every byte is copied to the device and back once.
    let spans = timelines[1]["spans"].as_array().expect("a list");
    for kind in ["host_to_device", "device_to_host"] {
        let spans = spans.iter().filter(|span| span["kind"] == kind);
        let bytes: u64 = spans.map(|span| number(&span["bytes"])).sum();
        assert_eq!(bytes, 1 << 30, "{kind}");
    }
    let kernels = spans.iter().filter(|span| span["kind"] == "kernel");
    assert_eq!(kernels.count() as u64, chunks);
}

#[test]
fn an_express_plan_shows_the_size_of_its_ring() {
    let args = job_with(&["--profile", "h200", "--input", "express"]);
    let best = &json(&args)["best"];
    let pinned = number(&best["pinned_bytes"]);
    assert_eq!(pinned, number(&best["chunk_bytes"]).min(96 << 20));
    assert_eq!(best["lanes"], 14);
    let limit = (pinned / 2).to_string();
    let args = [&args[..], &["--pinned-memory", &limit]].concat();
    let smaller = &json(&args)["best"];
    assert!(number(&smaller["pinned_bytes"]) <= pinned / 2);
}

#[test]
fn a_given_shape_is_used_and_compared_with_the_best() {
    let args = job_with(&["--profile", "h200", "--chunk", "256MiB", "--streams", "2"]);
    let plan = json(&args);
    let (given, best) = (&plan["given"], &plan["best"]);
    assert_eq!(given["chunk_bytes"], 256 << 20);
    assert_eq!(
        (&given["chunks"], &given["streams"]),
        (&4.into(), &2.into())
    );
    let (given_ns, best_ns) = (
        number(&given["predicted_ns"]),
        number(&best["predicted_ns"]),
    );
    assert!(given_ns > best_ns);
    assert_eq!(plan["advice"]["kind"], "take_best");
    assert_eq!(plan["advice"]["saves_ns"], given_ns - best_ns);
    assert_eq!(
        plan["timeline"]["timelines"].as_array().map(Vec::len),
        Some(3)
    );
    let text = said(&args);
    assert!(
        text.contains("\nGiven       4 chunks of 256 MiB, 2 streams"),
        "{text}"
    );
    assert!(text.contains("\nBest        "), "{text}");
    assert!(text.contains("use the best shape"), "{text}");
}

/// Chunks that do not fill the GPU are no faster, so there are fewer of them.
#[test]
fn a_least_time_of_the_kernel_makes_chunks_larger() {
    let small = ["plan", "--in", "8MiB", "--out", "8MiB", "--kernel", "15ms"];
    let plan = |more: &[&str]| json(&[&small[..], &["--profile", "h200"], more].concat());
    let (plain, least) = (plan(&[]), plan(&["--kernel-least", "4ms"]));
    let chunks = |report: &Value| number(&report["best"]["chunks"]);
    assert!(chunks(&least) < chunks(&plain), "{least}");
    assert_eq!(plan(&["--kernel-least", "0s"]), plain);
}

#[test]
fn the_rest_of_the_shape_is_chosen() {
    for (args, field, value) in [
        (
            ["--order", "breadth-first"],
            "order",
            Value::from("breadth-first"),
        ),
        (["--order", "stage-streams"], "streams", 3.into()),
        (["--streams", "1"], "streams", 1.into()),
        (["--streams", "128"], "streams", 128.into()),
    ] {
        let plan = json(&job_with(&["--profile", "h200", args[0], args[1]]));
        assert_eq!(plan["given"][field], value);
        let (given, best) = (
            &plan["given"]["predicted_ns"],
            &plan["best"]["predicted_ns"],
        );
        assert!(number(given) + number(given) / 200 >= number(best));
    }
    // The best shape cannot be improved.
    let best = json(&job_with(&["--profile", "h200"]))["best"].clone();
    let chunk = best["chunk_bytes"].to_string();
    let plan = json(&job_with(&["--profile", "h200", "--chunk", &chunk]));
    assert_eq!(plan["given"]["predicted_ns"], best["predicted_ns"]);
    assert_eq!(plan["advice"]["kind"], "given_is_good");
}

#[test]
fn only_the_first_of_many_chunks_are_shown() {
    let args = job_with(&["--profile", "h200", "--chunk", "4KiB", "--streams", "2"]);
    let plan = json(&args);
    let timelines = plan["timeline"]["timelines"].as_array().expect("a list");
    assert_eq!(timelines.len(), 1);
    assert_eq!(
        timelines[0]["name"],
        "Given, the first 512 of 262144 chunks"
    );
    assert!(number(&timelines[0]["total_ns"]) < number(&plan["given"]["predicted_ns"]) / 100);
}

#[test]
fn charts_are_written() {
    let scratch = Scratch::new();
    let [svg, html, trace] = ["plan.svg", "plan.html", "plan.json"].map(|name| scratch.file(name));
    let args = [
        "--profile",
        "h200",
        "--svg",
        &svg,
        "--html",
        &html,
        "--trace",
        &trace,
    ];
    let text = said(&job_with(&args));
    for (file, start) in [(&svg, "<svg"), (&html, "<!DOCTYPE html>"), (&trace, "{")] {
        assert!(text.contains(&format!("Written to {file}\n")), "{text}");
        let content = std::fs::read_to_string(file).expect("it is there");
        assert!(content.starts_with(start), "{file}");
        let line = "Computed by the model from profile h200, not measured";
        assert!(content.contains(line), "{file}");
    }
    let trace = std::fs::read_to_string(trace).expect("it is there");
    let trace: Value = serde_json::from_str(&trace).expect("valid JSON");
    assert_eq!(trace["otherData"]["origin"], "COMPUTED");
    assert_eq!(
        std::fs::read_dir(scratch.folder())
            .expect("a folder")
            .count(),
        3
    );
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let scratch = Scratch::new();
    let file = scratch.file("no-folder/plan.svg");
    let output = run(&job_with(&["--profile", "h200", "--svg", &file]));
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stdout(&output), "");
    assert!(stderr(&output).contains(&file), "{}", stderr(&output));
}

#[test]
fn without_a_gpu_auto_plans_for_pcie3() {
    let scratch = Scratch::new();
    let output = pinlane(&JOB)
        .env("XDG_CACHE_HOME", scratch.folder())
        .output()
        .expect("pinlane starts");
    let gpus = Cuda::load().and_then(|cuda| cuda.devices());
    if gpus.is_ok_and(|gpus| !gpus.is_empty()) {
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("pinlane calibrate"));
        return;
    }
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output), include_str!("golden/plan-pinned.txt"));
    assert_eq!(
        stderr(&output),
        "pinlane: no GPU; using sim:pcie3-x16 (-v says why)\n"
    );
}

#[test]
fn without_arguments_it_plans_a_default_job_and_names_it() {
    let output = run(&["--device", "sim:pcie3-x16", "plan"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output), include_str!("golden/plan-pinned.txt"));
    let said = "pinlane: no job given; planning --in 1GiB --out 1GiB --kernel 4ms\n";
    assert_eq!(stderr(&output), said);
}
