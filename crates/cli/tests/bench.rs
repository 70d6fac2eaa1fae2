//! `pinlane bench` on simulated devices, as a user sees it.

#[path = "support/scratch.rs"]
mod scratch;
#[path = "support/signals.rs"]
mod signals;
mod support;

use std::process::Output;

use pinlane_model::Profile;
use pinlane_report::{Bench, Environment, MemoryKind, Route};
use scratch::Scratch;
use signals::{Signal, started_and_listening, stop};
use support::{pinlane, run, stderr, stdout};

/// A short run with more arguments.
fn bench(args: &[&str]) -> Output {
    let start = ["--device", "sim:pcie3-x16", "bench", "--sizes", "4KiB,1MiB"];
    run(&[&start[..], args].concat())
}

fn good(output: &Output) -> &str {
    assert!(output.status.success(), "{}", stderr(output));
    assert_eq!(stderr(output), "");
    stdout(output)
}

/// Expects status 2, an empty standard output, and all of `parts` in the message.
#[track_caller]
fn refused(args: &[&str], parts: &[&str]) {
    let output = bench(args);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
    for part in parts {
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
}

#[test]
fn the_table_is_the_same_every_time() {
    let args = ["--device", "sim:pcie3-x16", "bench"];
    let output = run(&args);
    assert_eq!(good(&output), include_str!("golden/bench.txt"));
    // The order of measurements makes no difference on a simulated clock.
    let other = run(&[&args[..], &["--seed", "12345"]].concat());
    assert_eq!(good(&other), stdout(&output));
}

#[test]
fn json_holds_every_combination() {
    let output = bench(&["--json"]);
    let report = Bench::from_json(good(&output)).expect("a report");
    assert!(report.complete);
    assert_eq!(report.began, None);
    // Pageable copies in both directions need two host threads, and so do small express copies.
    assert_eq!(report.lines.len(), 6 * 3 * 2 - 2 - 2);
    assert_eq!(report.latencies.len(), 6 * 3 - 1 - 1);
    let rate = |memory, route| {
        let mut lines = report.lines.iter();
        let line = lines.find(|line| {
            line.point.memory == memory && line.point.route == route && line.point.bytes == 1 << 20
        });
        line.expect("measured").stats.gb_per_s
    };
    // 2 µs call, 2.5 µs latency and 12 GB/s; in both directions two calls and twice the bytes.
    let pinned = rate(MemoryKind::Pinned, Route::H2d);
    assert!((11.3..11.5).contains(&pinned), "{pinned}");
    let both = rate(MemoryKind::Pinned, Route::Both);
    assert!((22.0..22.3).contains(&both), "{both}");
    // Mapped memory is limited by the link, not by the kernel.
    assert!(rate(MemoryKind::Mapped, Route::D2h) < 12.0);
}

#[test]
fn every_profile_with_a_clock_works() {
    for name in Profile::builtin_names() {
        let device = format!("sim:{name}");
        let output = run(&["--device", &device, "bench", "--sizes", "64KiB..4MiB*8"]);
        if name == "null" {
            assert_eq!(output.status.code(), Some(1));
            assert!(stderr(&output).contains("took no time"));
            continue;
        }
        let marker = format!("SIMULATED: sim:{name}, ");
        assert!(good(&output).contains(&marker), "{}", stdout(&output));
    }
}

#[test]
fn csv_beside_the_table_or_instead_of_it() {
    let scratch = Scratch::new();
    let file = scratch.file("bench.csv");
    let output = bench(&["--memory", "pinned", "--routes", "h2d,d2h", "--csv", &file]);
    assert!(good(&output).starts_with("Bandwidth\nSIMULATED"));
    let csv = std::fs::read_to_string(&file).expect("written");
    let rows: Vec<Vec<_>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 1 + 2 * 2 + 2);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{csv}");
    let column = |name| rows[0].iter().position(|head| *head == name).expect(name);
    for row in &rows[1..] {
        assert_eq!(row[column("origin")], "SIMULATED");
        assert_eq!(row[column("profile")], "pcie3-x16");
        let number = |name| row[column(name)].parse::<f64>().expect(name);
        let rate = number("bytes") / number("median_ns");
        assert!((rate / number("gb_per_s") - 1.0).abs() < 1e-9, "{row:?}");
    }
    let output = bench(&["--memory", "pinned", "--routes", "h2d,d2h", "--csv", "-"]);
    assert_eq!(good(&output), csv);
}

#[test]
fn against_an_earlier_run() {
    let scratch = Scratch::new();
    let file = scratch.file("before.json");
    let before = bench(&["--json"]);
    std::fs::write(&file, good(&before)).expect("written");

    let output = bench(&["--against", &file, "--fail-if-slower", "0"]);
    let said = good(&output);
    assert!(
        said.contains("\n0 slower, 0 faster, 48 unchanged"),
        "{said}"
    );
    assert!(!said.contains("WARNING"), "{said}");

    // A run that was twice as fast.
    let text = good(&before);
    let mut earlier = Bench::from_json(text).expect("a report");
    for line in &mut earlier.lines {
        let figure = &mut line.stats;
        for ns in [
            &mut figure.best_ns,
            &mut figure.p5_ns,
            &mut figure.median_ns,
            &mut figure.p95_ns,
        ] {
            *ns /= 2;
        }
    }
    std::fs::write(&file, earlier.to_json(&Environment::default())).expect("written");
    let output = bench(&["--against", &file]);
    assert!(good(&output).contains("\n32 slower, 0 faster, 16 unchanged"));
    let output = bench(&["--against", &file, "--fail-if-slower", "50"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--fail-if-slower 50"));
    let output = bench(&["--against", &file, "--fail-if-slower", "150"]);
    assert_eq!(output.status.code(), Some(0));

    let page = scratch.file("bench.html");
    good(&bench(&["--against", &file, "--html", &page]));
    let page = std::fs::read_to_string(&page).expect("written");
    assert!(page.contains("32 slower, 0 faster, 16 unchanged"));
    assert!(page.contains("pinned, host to device, 1 MiB"));

    let args = ["--device", "sim:h200", "--json", "bench", "--sizes", "4KiB"];
    let output = run(&[&args[..], &["--against", &file]].concat());
    let json: serde_json::Value = serde_json::from_str(good(&output)).expect("valid JSON");
    let other = json["against"]["other_origin"]
        .as_str()
        .expect("another device");
    assert!(other.contains("sim:pcie3-x16"), "{other}");
    let output = run(&[
        "--device",
        "sim:h200",
        "bench",
        "--sizes",
        "4KiB",
        "--against",
        &file,
    ]);
    assert!(good(&output).contains("WARNING: different devices."));
}

#[test]
fn invalid_arguments() {
    for (args, parts) in [
        (
            &["--memory", "fast"][..],
            &["--memory", "fast", "write-combined"][..],
        ),
        (&["--memory", ""], &["--memory"]),
        (&["--routes", "up"], &["--routes", "h2d"]),
        (&["--time", "10"], &["--time", "unit"]),
        (&["--seed", "x"], &["--seed"]),
        (&["--svg", "-"], &["--svg", "./-"]),
        (&["--html", "-"], &["--html", "./-"]),
        (&["--fail-if-slower", "5"], &["--against"]),
        (&["--csv", "-", "--json"], &["--csv", "--json"]),
        (
            &["--against", "/no/such/file"],
            &["--against", "cannot be read"],
        ),
    ] {
        refused(args, parts);
    }
    for sizes in ["", "4XB", "8KiB..4KiB", "4KiB..8KiB*1", "0"] {
        let output = run(&["--device", "sim", "bench", "--sizes", sizes]);
        assert_eq!(output.status.code(), Some(2), "{sizes}");
        assert!(stderr(&output).contains("--sizes"), "{}", stderr(&output));
    }
    let scratch = Scratch::new();
    let file = scratch.file("odd.json");
    for (text, part) in [
        ("", "not JSON"),
        ("{}", "schema"),
        ("{\"schema\": 99}", "schema 99"),
        ("\u{fffd}", "not JSON"),
    ] {
        std::fs::write(&file, text).expect("written");
        refused(&["--against", &file], &["--against", &file, part]);
    }
    std::fs::write(&file, [0xff, 0xfe]).expect("written");
    refused(&["--against", &file], &["not a text file"]);
}

#[test]
fn nothing_to_measure_is_a_failure_with_its_reason() {
    let output = bench(&["--memory", "pageable", "--routes", "both"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("Nothing was measured."));
    assert!(stdout(&output).contains("pageable, both ways: not measured: "));
    assert!(stderr(&output).contains("--routes"), "{}", stderr(&output));
}

#[test]
fn fail_if_slower_fails_without_anything_to_compare() {
    let scratch = Scratch::new();
    let file = scratch.file("before.json");
    let before = bench(&["--json", "--memory", "pinned"]);
    std::fs::write(&file, good(&before)).expect("written");
    let args = ["--memory", "pageable", "--against", &file];
    let said = bench(&args);
    assert!(good(&said).contains("Nothing to compare"));
    let output = bench(&[&args[..], &["--fail-if-slower", "5"]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--fail-if-slower"));
}

#[test]
fn results_are_printed_even_if_a_file_cannot_be_written() {
    for flag in ["--csv", "--svg", "--html"] {
        let output = bench(&["--memory", "pinned", flag, "/dev/full"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stdout(&output).contains("Host to device"));
        assert!(stderr(&output).contains("cannot write /dev/full"));
    }
}

#[test]
fn too_much_memory_names_the_flag() {
    let output = run(&["--device", "sim", "bench", "--sizes", "1TiB"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--sizes"), "{}", stderr(&output));
    assert!(stderr(&output).contains("use smaller copies"));
}

/// Resident memory of a process.
fn resident_bytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.map_or(0, |kib| kib.trim().parse::<u64>().expect("a number") << 10)
}

#[test]
fn an_interrupt_during_large_copies_keeps_the_small_ones() {
    let sizes = "4KiB,64KiB,256MiB";
    let args = ["--device", "sim", "--json", "bench", "--sizes", sizes];
    let child = started_and_listening(&mut pinlane(&args), Signal::Interrupt);
    // Only memory for the large copies is that large.
    while resident_bytes(child.id()) < 200 << 20 {
        std::thread::yield_now();
    }
    let output = stop(child, Signal::Interrupt);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(stderr(&output), "pinlane: interrupted before the end\n");
    let report = Bench::from_json(stdout(&output)).expect("a report");
    assert!(!report.complete);
    let of_size = |bytes| {
        let lines = report.lines.iter();
        lines.filter(|line| line.point.bytes == bytes).count()
    };
    assert_eq!([of_size(4 << 10), of_size(64 << 10)], [16, 16]);
    assert_eq!(report.latencies.len(), 16);
}

#[test]
fn an_interrupt_prints_the_results_so_far() {
    // Far more than it can measure before the signal.
    let sizes: Vec<String> = (0..200).map(|i| format!("{}", (16 << 20) + i)).collect();
    let args = [
        "--device",
        "sim",
        "--json",
        "bench",
        "--sizes",
        &sizes.join(","),
    ];
    let child = started_and_listening(&mut pinlane(&args), Signal::Interrupt);
    let output = stop(child, Signal::Interrupt);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(stderr(&output), "pinlane: interrupted before the end\n");
    let report = Bench::from_json(stdout(&output)).expect("a report");
    assert!(!report.complete);
    assert!(report.lines.len() < 200, "{} lines", report.lines.len());
}
