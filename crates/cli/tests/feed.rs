//! `pinlane feed` on simulated devices, as a user sees it.

#[path = "support/feed.rs"]
mod feed;
#[path = "support/scratch.rs"]
mod scratch;
#[path = "support/signals.rs"]
mod signals;
mod support;

use feed::{data, feed, refused, report};
use scratch::Scratch;
use serde_json::Value;
use signals::{Signal, started_and_listening, stop};
use support::{pinlane, run, stderr, stdout};

/// A few bytes per sample.
const SMALL: [&str; 5] = ["synthetic", "--shape", "3x8x8", "--samples", "100"];

/// Everything but the line with real times, which differ from run to run.
fn without_real_time(text: &str) -> String {
    let (real, rest): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("Host: "));
    assert_eq!(real.len(), 1, "{text}");
    assert!(
        real[0].starts_with("Host: reading took ") && real[0].contains("of real time"),
        "{text}"
    );
    rest.join("\n") + "\n"
}

#[test]
fn pcie3_gives_the_golden_text() {
    for (args, golden) in [
        (
            &["synthetic", "--samples", "1024"][..],
            include_str!("golden/feed.txt"),
        ),
        (
            &[
                "synthetic",
                "--shape",
                "64x64x3",
                "--samples",
                "1000",
                "--batch",
                "64",
                "--kernel",
                "2ms",
                "--epochs",
                "3",
                "--normalize",
                "0.485,0.456,0.406/0.229,0.224,0.225",
                "--to",
                "bf16",
            ],
            include_str!("golden/feed-kernel.txt"),
        ),
    ] {
        let output = feed(args);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(stderr(&output), "");
        assert_eq!(without_real_time(stdout(&output)), golden);
    }
}

#[test]
fn every_sample_of_every_epoch_is_counted() {
    let found = report(&[&SMALL[..], &["--batch", "32", "--epochs", "3"]].concat());
    assert_eq!(found["epochs"], 3);
    assert_eq!(
        (&found["samples"], &found["batches"]),
        (&300.into(), &12.into())
    );
    assert_eq!(found["sample_bytes"], 300 * 192);
    assert_eq!(found["moved_bytes"], 300 * 192);
    assert_eq!(found["sample_gb_per_s"], found["moved_gb_per_s"]);
    assert_eq!(found["link"]["copy_bytes"], 300 * 192);
    assert_eq!(
        (&found["skipped"], &found["complete"]),
        (&0.into(), &true.into())
    );
    assert_eq!(found["pinned_bytes"], 4 * 32 * 192);
    assert_eq!(found["workers"], 0);
}

#[test]
fn the_last_shuffle_flag_wins() {
    for (more, shuffle) in [
        (&[][..], true),
        (&["--no-shuffle"], false),
        (&["--no-shuffle", "--shuffle"], true),
        (&["--shuffle", "--no-shuffle"], false),
    ] {
        let found = report(&[&SMALL[..], more].concat());
        assert_eq!(found["shuffle"], shuffle, "{more:?}");
    }
}

#[test]
fn array_files_are_read() {
    let (image, label) = (data("npy/image.npy"), data("npy/label.npy"));
    let found = report(&[&image, &label]);
    assert_eq!(found["dataset_samples"], 7);
    assert_eq!(found["fields"][0]["name"], "image");
    assert_eq!(found["fields"][1]["dtype"], "I64");
    assert_eq!(found["samples"], 7);
    let found = report(&[&data("npy")]);
    assert_eq!(found["fields"].as_array().map(Vec::len), Some(3));
    let found = report(&[&data("one.safetensors"), "--epochs", "2"]);
    assert_eq!(found["samples"], 10);
    // Channels are the last dimension.
    let found = report(&[&image, &label, "--normalize", "image=0.5,0.5,0.5/1,1,1"]);
    let inner = serde_json::json!({
        "field": "image", "to": "F32", "mean": [0.5, 0.5, 0.5], "std": [1.0, 1.0, 1.0], "inner": 1
    });
    assert_eq!(found["normalize"], inner);
}

#[test]
fn archives_are_read_as_declared() {
    let archive = data("tar/gnu-ustar.tar");
    let found = report(&[&archive, "--field", "jpg=u8:..1000"]);
    let samples = found["samples"].as_u64().expect("a number");
    assert!(samples > 3, "{found}");
    assert!(found["fields"][0]["shape"].is_null());
    let scratch = Scratch::new();
    for name in ["a.tar", "b.tar"] {
        std::fs::copy(&archive, scratch.file(name)).expect("copied");
    }
    let folder = scratch.folder().to_str().expect("plain text");
    let found = report(&[folder, "--field", "jpg=u8:..1000"]);
    assert_eq!(found["samples"], 2 * samples);
}

#[test]
fn small_copies_are_limited_by_latency_and_large_ones_by_the_link() {
    let args = |shape, batch| {
        let sizes = ["--shape", shape, "--batch", batch];
        report(&[&["synthetic", "--samples", "1000"], &sizes[..]].concat())
    };
    let small = args("4", "1");
    assert_eq!(small["limit"], "latency");
    let (count, ns) = (&small["batches"], &small["link"]["copy_ns"]);
    let one_byte_ns = small["link"]["one_byte_ns"].as_u64().expect("measured");
    let mean_ns = ns.as_u64().expect("a number") / count.as_u64().expect("a number");
    assert!(one_byte_ns <= mean_ns && mean_ns < 2 * one_byte_ns);
    assert_eq!(args("100x1000", "50")["limit"], "link");
    // Kernels wait for the host's work on each batch.
    let more = ["--shape", "4", "--batch", "1", "--kernel", "1us"];
    let found = report(&[&["synthetic", "--samples", "1000"], &more[..]].concat());
    assert_eq!(found["limit"], "batches");
    let text = feed(&[
        "synthetic",
        "--samples",
        "1000",
        "--shape",
        "4",
        "--batch",
        "1",
    ]);
    let said = stdout(&text).replace('\n', " ");
    assert!(said.contains("a copy of 4 B takes"));
    assert!(stdout(&text).contains("A larger --batch"));
}

#[test]
fn the_same_arguments_give_the_same_times() {
    let args = [&SMALL[..], &["--kernel", "100us", "--batch", "8"]].concat();
    let (first, second) = (report(&args), report(&args));
    for field in ["elapsed_ns", "first_batch_ns", "kernel", "link", "limit"] {
        assert_eq!(first[field], second[field], "{field}");
        assert!(!first[field].is_null(), "{field}");
    }
}

#[test]
fn the_gpu_stays_busy_if_batches_come_fast_enough() {
    let args = [&SMALL[..], &["--batch", "4", "--kernel", "1ms"]].concat();
    let found = report(&args);
    assert_eq!(found["kernel"]["count"], 25);
    let idle = found["gpu_idle_share"].as_f64().expect("a number");
    assert!((0.0..0.02).contains(&idle), "{idle}");
    assert_eq!(found["limit"], "kernel");
    // Copies of more than a millisecond cannot keep up with kernels of 0.1 ms.
    let large = ["synthetic", "--shape", "1000x1000", "--samples", "200"];
    let found = report(&[&large[..], &["--batch", "20", "--kernel", "100us"]].concat());
    let idle = found["gpu_idle_share"].as_f64().expect("a number");
    assert!(idle > 0.5, "{idle}");
    assert_eq!(found["limit"], "link");
}

#[test]
fn simulated_time_ends_the_run() {
    let args = [&SMALL[..], &["--batch", "10", "--kernel", "1ms"]].concat();
    let found = report(&[&args[..], &["--time", "95ms"]].concat());
    let elapsed_ns = found["elapsed_ns"].as_u64().expect("a number");
    assert!(
        (95_000_000..110_000_000).contains(&elapsed_ns),
        "{elapsed_ns}"
    );
    assert_eq!(found["complete"], true);
    // Whichever comes first.
    let found = report(&[&args[..], &["--time", "95ms", "--epochs", "2"]].concat());
    assert_eq!(
        (&found["epochs"], &found["samples"]),
        (&2.into(), &200.into())
    );
}

#[test]
fn one_epoch_runs_if_nothing_takes_time() {
    let args = [
        &["--device", "sim:null", "feed"],
        &SMALL[..],
        &["--time", "5s"],
    ]
    .concat();
    let output = run(&args);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("100 samples in 1 batch"));
    assert!(stdout(&output).contains("No rate: nothing takes time on this device"));
    assert!(stdout(&output).contains("pass --epochs for more"));
}

#[test]
fn threads_beside_a_simulated_clock_give_no_rates() {
    for workers in ["1", "3"] {
        let found = report(&[&SMALL[..], &["--workers", workers]].concat());
        assert!(found["samples_per_s"].is_null() && found["elapsed_ns"].is_null());
        assert_eq!(found["samples"], 100);
        let note = found["notes"][0].as_str().expect("a note");
        assert!(note.contains("--workers"), "{note}");
    }
}

#[test]
fn a_run_is_recorded_and_drawn_over_time() {
    let scratch = Scratch::new();
    let file = scratch.file("feed.html");
    let args = [
        &SMALL[..],
        &["--batch", "1", "--epochs", "3", "--html", &file],
    ]
    .concat();
    let report = report(&args);
    let intervals = report["intervals"].as_array().expect("a list");
    assert!((32..=64).contains(&intervals.len()), "{}", intervals.len());
    let sum = |field: &str| -> u64 {
        let numbers = intervals.iter().map(|interval| interval[field].as_u64());
        numbers.map(|number| number.expect("a number")).sum()
    };
    // All but the first batch, which is the start.
    assert_eq!((sum("batches"), sum("samples")), (299, 299));
    assert!(sum("wait_ns") <= report["elapsed_ns"].as_u64().expect("a time"));
    assert_eq!(intervals[0]["start_ns"], report["first_batch_ns"]);
    let page = std::fs::read_to_string(&file).expect("written");
    for heading in [
        "Rate over time",
        "Wait for a batch",
        "Each part alone",
        "Time by stage",
    ] {
        assert!(page.contains(&format!("<h2>{heading} ")), "{heading}");
    }
    // No clock times real threads beside a simulated device.
    let report = self::report(&[&SMALL[..], &["--workers", "2"]].concat());
    assert_eq!(report["intervals"], serde_json::json!([]));
}

#[test]
fn the_page_is_written_in_addition_to_the_text() {
    let scratch = Scratch::new();
    let file = scratch.file("feed.html");
    let output = feed(&[&SMALL[..], &["--html", &file]].concat());
    assert!(stdout(&output).ends_with(&format!("Written to {file}\n")));
    let page = std::fs::read_to_string(&file).expect("written");
    assert!(page.contains("SIMULATED: sim:pcie3-x16"));
    // An earlier page may be replaced, an input may not.
    let again = feed(&[&SMALL[..], &["--html", &file]].concat());
    assert!(again.status.success(), "{}", stderr(&again));
    let array = scratch.file("image.npy");
    std::fs::copy(data("npy/image.npy"), &array).expect("copied");
    let folder = scratch.folder().to_str().expect("plain text");
    for source in [&array, folder] {
        refused(&[source, "--html", &array], 2, &["--html", "name another"]);
    }
    refused(&[&array, "--html", folder], 2, &["--html", "directory"]);
    let kept = std::fs::read(&array).expect("there");
    assert_eq!(kept, std::fs::read(data("npy/image.npy")).expect("there"));
    // A file that opens but cannot be written.
    let output = feed(&[&SMALL[..], &["--html", "/dev/full"]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("100 samples in 1 batch"));
}

#[test]
fn invalid_arguments_name_the_flag_and_the_remedy() {
    let archive = data("tar/gnu-ustar.tar");
    let image = data("npy/image.npy");
    for (args, parts) in [
        (&[][..], &["SOURCE"][..]),
        (&["synthetic", "--batch", "0"], &["--batch", "at least 1"]),
        (&["synthetic", "--batch", "x"], &["--batch", "at least 1"]),
        (&["synthetic", "--batch", "-1"], &["--batch", "at least 1"]),
        (
            &["synthetic", "--workers", "-1"],
            &["--workers", "from 0 to 256"],
        ),
        (
            &["synthetic", "--normalize", "0.5/-0.2"],
            &["--normalize", "not -0.2"],
        ),
        (
            &[&archive, "--field", "cls=u8:1", "--field", "cls=u8:2"],
            &["--field", "once"],
        ),
        (
            &[&archive, "--field", "bmp=u8:1"],
            &["--field", "\"bmp\"", "\"jpg\"", "use one of these"],
        ),
        (&["synthetic", "--shape", "3x"], &["--shape", "3x224x224"]),
        (&["synthetic", "--dtype", "u9"], &["--dtype", "bf16"]),
        (&["synthetic", "--samples", "x"], &["--samples"]),
        (
            &["synthetic", "--dtype", "f4", "--shape", "3"],
            &["--shape", "inside a byte"],
        ),
        (
            &["synthetic", "--prefetch", "2000"],
            &["--prefetch", "1024"],
        ),
        (&["synthetic", "--workers", "1000"], &["--workers", "256"]),
        (&["synthetic", "--epochs", "0"], &["--epochs"]),
        (&["synthetic", "--time", "0s"], &["--time", "5s"]),
        (&["synthetic", "--kernel", "2s"], &["--kernel", "400ms"]),
        (&["synthetic", "--shard", "2/2"], &["--shard", "no rank 2"]),
        (&["synthetic", "--shard", "2"], &["--shard", "such as 0/8"]),
        (
            &["synthetic", "--rank", "1"],
            &["--rank", "use --shard RANK/WORLD"],
        ),
        (
            &["synthetic", "--world", "2"],
            &["--world", "use --shard RANK/WORLD"],
        ),
        (&["synthetic", "--to", "bf16"], &["--normalize"]),
        (
            &["synthetic", "--normalize", "0.5"],
            &["--normalize", "a slash"],
        ),
        (
            &[
                "synthetic",
                "--normalize",
                "123.675,116.28,103.53/58.395,57.12,57.375",
            ],
            &["--normalize", "divide 123.675 and"],
        ),
        (
            &["synthetic", "--normalize", "0.1,0.2/0.3,0.4"],
            &["--normalize", "[3, 224, 224]"],
        ),
        (
            &["synthetic", "--normalize", "image=0.5/0.5"],
            &["--normalize", "`image`", "data"],
        ),
        (
            &["synthetic", "--dtype", "f32", "--normalize", "0.5/0.5"],
            &["--normalize", "u8", "drop"],
        ),
        (&["synthetic", &image], &["./synthetic"]),
        (&[&image, &archive], &["archives and other files"]),
        (&[&image, "--samples", "3"], &["--samples", "drop"]),
        (&[&image, "--field", "jpg=u8:3"], &["--field", ".tar"]),
        (&[&archive], &["--field", "img=u8:3x224x224"]),
        (&[&archive, "--field", "jpg"], &["--field", "img=u8"]),
        (&["/no/such.npy"], &["SOURCE", "/no/such.npy"]),
        (&["/no/such.tar", "--field", "a=u8:1"], &["/no/such.tar"]),
        (&[&data("unequal.safetensors")], &["SOURCE", "rows"]),
        (&[&image, &image], &["SOURCE", "twice", "once"]),
    ] {
        refused(args, 2, parts);
    }
    let args = [&["--device", "sim", "feed"], &SMALL[..]].concat();
    let output = pinlane(&args)
        .env("RANK", "1")
        .output()
        .expect("pinlane starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("WORLD_SIZE") && stderr(&output).contains("--shard"));
}

#[test]
fn too_much_memory_names_the_flag() {
    let most = "9999999999999";
    refused(
        &["synthetic", "--samples", most],
        1,
        &["--samples", "or less"],
    );
    let args = [&["--device", "sim", "feed"], &SMALL[..]].concat();
    let output = pinlane(&args)
        .env("PINLANE_PINNED_LIMIT", "4KiB")
        .output()
        .expect("pinlane starts");
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("--batch") && said.contains("PINLANE_PINNED_LIMIT"),
        "{said}"
    );
}

#[test]
fn an_interrupt_prints_the_results_so_far() {
    for more in [&[][..], &["--kernel", "1ms"], &["--workers", "2"]] {
        let endless = ["--epochs", "1000000000"];
        let args = [
            &["--device", "sim", "--json", "feed"],
            &SMALL[..],
            &endless,
            more,
        ]
        .concat();
        let child = started_and_listening(&mut pinlane(&args), Signal::Interrupt);
        let output = stop(child, Signal::Interrupt);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert_eq!(stderr(&output), "pinlane: interrupted before the end\n");
        let report: Value = serde_json::from_str(stdout(&output)).expect("valid JSON");
        assert_eq!(report["complete"], false);
        assert_eq!(report["asked"]["epochs"], 1_000_000_000);
    }
}
