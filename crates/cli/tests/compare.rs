//! `pinlane compare`, as a user sees it.

#[path = "support/scratch.rs"]
mod scratch;
mod support;

use std::process::{Command, Output, Stdio};

use pinlane_cuda::Cuda;
use pinlane_driver::Platform;
use pinlane_model::Profile;
use scratch::Scratch;
use support::{run, stderr, stdout};

const BLOCK: &str = "\
=== Pinned vs Pageable Memory Transfer ===
[Pageable (malloc) Memory]
Allocation: float* h = malloc(bytes)
Copy path: CPU_RAM -> [staging buffer] -> GPU
Synchronous: YES (cudaMemcpy blocks CPU)
Transfer BW: ~6 GB/s (PCIe, pageable)
[Pinned (cudaMallocHost) Memory]
Allocation: cudaMallocHost(&h, bytes)
Copy path: CPU_RAM -> GPU (direct DMA)
Asynchronous: YES (cudaMemcpyAsync)
Transfer BW: ~12 GB/s (PCIe, pinned)
Speedup: 2.00x faster transfers!
[Important Rules]
cudaMemcpyAsync requires pinned memory
Free pinned with cudaFreeHost, NOT free()
Don't over-allocate: OS needs pageable memory too
SIMULATED: sim:pcie3-x16, not a real GPU
";

/// Whether this machine has a GPU that `auto` would use.
fn has_gpu() -> bool {
    Cuda::load()
        .and_then(|cuda| cuda.devices())
        .is_ok_and(|devices| !devices.is_empty())
}

#[test]
fn pcie3_gives_the_classic_block() {
    let output = run(&["--device", "sim:pcie3-x16", "compare"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).starts_with(BLOCK), "{}", stdout(&output));
    assert_eq!(stdout(&output), include_str!("golden/compare.txt"));
    assert_eq!(stderr(&output), "");
}

#[test]
fn rates_of_tiny_copies_keep_their_digits() {
    let output = run(&["--device", "sim:pcie3-x16", "compare", "--size", "1"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stdout(&output);
    for wanted in [
        "BW: ~0.14 MB/s",
        "BW: ~0.22 MB/s",
        "\npinned          2.2e-4 ",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    assert!(!said.contains(" 0.0 "), "{said}");
}

#[test]
fn one_copy_has_no_percentiles() {
    let scratch = Scratch::new();
    let page = scratch.file("page.html");
    for command in ["compare --size", "bench --sizes"] {
        let args = format!("--device sim {command} 1MiB --html {page}");
        let output = run(&args.split(' ').collect::<Vec<_>>());
        assert!(output.status.success(), "{}", stderr(&output));
        let html = std::fs::read_to_string(&page).expect("written");
        for word in ["percentile", "edian", "5% "] {
            assert!(!html.contains(word), "{command}: {word}");
        }
    }
}

/// Runs a command in a terminal.
fn in_a_terminal(line: &str) -> std::io::Result<Output> {
    Command::new("script")
        .args(["--quiet", "--return", "--command", line, "/dev/null"])
        .stdin(Stdio::null())
        .env("TERM", "xterm")
        .output()
}

#[test]
fn a_terminal_shows_progress() {
    if !in_a_terminal("true").is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: script, of util-linux, makes no terminal here");
        return;
    }
    let tool = env!("CARGO_BIN_EXE_pinlane");
    let line = format!("{tool} --device sim:pcie3-x16 compare --size 1MiB");
    let output = in_a_terminal(&line).expect("it did a moment ago");
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("   0%  pageable"), "{said:?}");
    let (_, block) = said.split_once("=== Pinned").expect("the block");
    assert!(!block.contains('░'), "{said:?}");
}

#[test]
fn a_profile_without_express_says_so() {
    let text = include_str!("../../model/profiles/pcie4-x16.toml");
    let (text, _) = text.split_once("[express]").expect("a section");
    let path = std::env::temp_dir().join(format!("pinlane-no-lane-{}.toml", std::process::id()));
    std::fs::write(&path, text).expect("the file is written");
    let device = format!("sim:{}", path.display());
    let output = run(&["--device", &device, "compare", "--size", "1MiB"]);
    std::fs::remove_file(&path).expect("the file is there");
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(
        said.contains("express: not measured: the profile has no [express]"),
        "{said}"
    );
    assert!(!said.contains("The express lane reaches"), "{said}");
}

#[test]
fn auto_without_a_gpu_says_why_and_simulates() {
    let output = run(&["compare", "--repeat", "1", "--size", "64MiB"]);
    assert!(output.status.success(), "{}", stderr(&output));
    if has_gpu() {
        assert!(!stdout(&output).contains("SIMULATED"));
        return;
    }
    assert!(stdout(&output).starts_with(BLOCK), "{}", stdout(&output));
    let said = stderr(&output);
    assert_eq!(said, "pinlane: no GPU; using sim:pcie3-x16 (-v says why)\n");
    let output = run(&["compare", "-v", "--repeat", "1", "--size", "1MiB"]);
    let said = stderr(&output);
    assert!(said.starts_with("pinlane: no GPU: "), "{said}");
    assert!(said.ends_with("; using sim:pcie3-x16\n"), "{said}");
}

#[test]
fn cuda_without_a_gpu_fails() {
    if has_gpu() {
        return;
    }
    let output = run(&["--device", "cuda", "compare", "--size", "1MiB"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    assert!(
        stderr(&output).contains("--device sim"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn too_much_memory_names_the_flag() {
    let too_large = run(&["--device", "sim", "compare", "--size", "1TiB"]);
    let over_budget = support::pinlane(&["--device", "sim", "compare", "--size", "4MiB"])
        .env("PINLANE_PINNED_LIMIT", "1MiB")
        .output()
        .expect("pinlane starts");
    for output in [too_large, over_budget] {
        assert_eq!(output.status.code(), Some(1));
        let said = stderr(&output);
        assert!(
            said.contains("--size: ") && said.contains("use smaller copies"),
            "{said}"
        );
    }
}

#[test]
fn results_are_printed_even_if_a_file_cannot_be_written() {
    // A file that opens but cannot be written.
    let file = "/dev/full";
    let output = run(&[
        "--device", "sim", "compare", "--size", "1MiB", "--html", file,
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("=== Pinned vs Pageable"));
    assert!(stderr(&output).contains("cannot write /dev/full"));
}

#[test]
fn every_profile_with_a_clock_works() {
    for name in Profile::builtin_names() {
        let device = format!("sim:{name}");
        let output = run(&[
            "--device", &device, "compare", "--size", "16MiB", "--repeat", "2",
        ]);
        if name == "null" {
            // Nothing takes time on this device, so there is nothing to compare.
            assert_eq!(output.status.code(), Some(1));
            assert!(
                stderr(&output).contains("took no time"),
                "{}",
                stderr(&output)
            );
            continue;
        }
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        let marker = format!("SIMULATED: sim:{name}, ");
        assert!(stdout(&output).contains(&marker), "{}", stdout(&output));
    }
}

#[test]
fn the_same_run_gives_the_same_figures() {
    let args = [
        "--device", "sim:h200", "--json", "compare", "--size", "4MiB",
    ];
    let (first, second) = (run(&args), run(&args));
    assert!(first.status.success(), "{}", stderr(&first));
    assert_eq!(stdout(&first), stdout(&second));
}

#[test]
fn json_holds_the_same_figures() {
    let output = run(&[
        "--device",
        "sim:pcie3-x16",
        "--json",
        "compare",
        "--size",
        "64MiB",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let json: serde_json::Value = serde_json::from_str(stdout(&output)).expect("valid JSON");
    assert_eq!(json["origin"], "SIMULATED");
    assert_eq!(json["profile"], "pcie3-x16");
    assert_eq!(json["bytes"], 64 << 20);
    assert_eq!(json["rows"].as_array().map(Vec::len), Some(6));
    let pinned = json["rows"][1]["h2d"]["gb_per_s"]
        .as_f64()
        .expect("a number");
    assert!((11.9..12.0).contains(&pinned), "{pinned}");
}

#[test]
fn a_profile_file_is_a_device() {
    let text = include_str!("../../model/profiles/pcie4-x16.toml")
        .replace("name = \"pcie4-x16\"", "name = \"my-link\"");
    let path = std::env::temp_dir().join(format!("pinlane-profile-{}.toml", std::process::id()));
    std::fs::write(&path, text).expect("the file is written");
    let device = format!("sim:{}", path.display());
    let output = run(&["--device", &device, "compare", "--size", "1MiB"]);
    std::fs::remove_file(&path).expect("the file is there");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("SIMULATED: sim:my-link"));
}

#[test]
fn images_and_pages_are_written_and_named() {
    let scratch = Scratch::new();
    let (svg, html) = (scratch.file("compare.svg"), scratch.file("compare.html"));
    let args = ["--device", "sim:h200", "compare", "--size", "1MiB"];
    let output = run(&[&args[..], &["--svg", &svg, "--html", &html]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let said = format!("Written to {svg}\nWritten to {html}\n");
    assert!(stdout(&output).ends_with(&said), "{}", stdout(&output));
    for file in [svg, html] {
        let text = std::fs::read_to_string(&file).expect("written");
        assert!(text.contains("SIMULATED: sim:h200"), "{file}");
    }
    let nowhere = run(&[&args[..], &["--html", "/no/such/folder/x.html"]].concat());
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(stderr(&nowhere).contains("cannot write /no/such/folder/x.html"));
}
