//! The report of a feed: rates, shares, the limit, as text and as JSON.

use pinlane_report::{
    Environment, Feed, FeedDone, FeedField, FeedHost, FeedJob, FeedKernel, FeedLimit, FeedLink,
    FeedNormalize, FeedShard, FeedSkipped, FeedTarget, Origin,
};
use serde_json::Value;

const TEXT: &str = "\
Dataset to the GPU
Measured on NVIDIA H200
synthetic: 20000 samples, 147 KiB each (data u8 3×224×224)
Batches of 256, shuffled by seed 7, read by 12 threads, 3 ahead

204800 samples/s, 30.8 GB/s
1024000 samples in 4000 batches, 144 GiB, in 5.00 s; 51 complete epochs
First batch after 12.0 ms

Time of the reading threads:
  reading samples                 75%  ████████████████████████
  waiting for copies              10%  ███
  held back by the consumer        5%  ██
  packing, submitting, starting   10%  ███

Link: busy 56% of the time, 55.1 GB/s while busy
Pinned memory: 147 MiB

Reading samples is the limit; the link was busy only 56% of the time.
More --workers help while there are idle CPUs; beyond that, use a faster source: samples that need less decoding, or files on a faster disk or in memory.
";

const SECOND: u64 = 1_000_000_000;

fn job() -> FeedJob {
    FeedJob {
        source: "synthetic".to_owned(),
        dataset_samples: 20_000,
        fields: vec![FeedField {
            name: "data".to_owned(),
            dtype: "U8".to_owned(),
            shape: Some(vec![3, 224, 224]),
            bytes: 150_528,
        }],
        batch: 256,
        shuffle: true,
        seed: 7,
        workers: 12,
        prefetch: 3,
        shard: FeedShard::whole(),
        target: FeedTarget {
            epochs: None,
            time_ns: Some(5 * SECOND),
        },
        skip_bad: false,
        normalize: None,
        kernel_ns: None,
    }
}

fn done() -> FeedDone {
    FeedDone {
        epochs: 51,
        batches: 4000,
        samples: 1_024_000,
        skipped: 0,
        sample_bytes: 1_024_000 * 150_528,
        sample_batches: 4000,
        moved_bytes: 1_024_000 * 150_528,
        elapsed_ns: Some(5 * SECOND),
        first_batch_ns: Some(12_000_000),
    }
}

/// Copies with this total time.
fn link(copy_ns: u64) -> FeedLink {
    FeedLink {
        copy_ns,
        copy_bytes: done().moved_bytes,
        one_byte_ns: Some(2_000),
    }
}

/// 12 threads for five seconds, with these percentages of reading, waiting and being held back.
fn host(read: u64, slot_wait: u64, held_back: u64) -> FeedHost {
    let percent = 12 * 5 * SECOND / 100;
    FeedHost {
        threads: 12,
        wall_ns: 5 * SECOND,
        read_ns: read * percent,
        slot_wait_ns: slot_wait * percent,
        held_back_ns: held_back * percent,
        consumer_wait_ns: SECOND,
    }
}

fn measured() -> Origin {
    Origin::new("NVIDIA H200", None)
}

fn simulated() -> Origin {
    Origin::new("GPU", Some("pcie3-x16".to_owned()))
}

fn kernel(busy_ns: u64, span_ns: u64) -> FeedKernel {
    FeedKernel {
        count: 200,
        busy_ns,
        span_ns,
    }
}

fn report(origin: Origin, copy_ns: u64, host: FeedHost, kernel: Option<FeedKernel>) -> Feed {
    let mut report = Feed::new(origin, job(), done(), link(copy_ns), host, kernel);
    report.pinned_bytes = 4 * 256 * 150_528;
    report
}

#[test]
fn a_measured_feed_as_text() {
    let report = report(measured(), 2_800_000_000, host(75, 10, 5), None);
    assert_eq!(report.to_text(), TEXT);
}

#[test]
fn the_limit_is_the_stage_that_takes_the_time() {
    let limit = |copy_ns, host, kernel| report(measured(), copy_ns, host, kernel).limit;
    let (slow, full) = (SECOND, 9 * SECOND / 2);
    for (found, expected) in [
        (limit(slow, host(80, 5, 5), None), FeedLimit::Dataset),
        (limit(slow, host(5, 80, 5), None), FeedLimit::Copies),
        (limit(slow, host(5, 5, 80), None), FeedLimit::Consumer),
        // Most of the time belongs to no stage.
        (limit(slow, host(20, 10, 10), None), FeedLimit::Batches),
        // The link is saturated, whatever the threads did meanwhile.
        (limit(full, host(80, 5, 5), None), FeedLimit::Link),
        // A GPU that is always busy gains nothing.
        (
            limit(full, host(5, 80, 5), Some(kernel(97, 100))),
            FeedLimit::Kernel,
        ),
        (
            limit(slow, host(80, 5, 5), Some(kernel(60, 100))),
            FeedLimit::Dataset,
        ),
    ] {
        assert_eq!(found, Some(expected));
    }
}

/// A feed of these copies, where a one-byte copy takes `one_byte_ns`.
fn limit_of(origin: Origin, copy_ns: u64, host: FeedHost, one_byte_ns: Option<u64>) -> Feed {
    let link = FeedLink {
        one_byte_ns,
        ..link(copy_ns)
    };
    Feed::new(origin, job(), done(), link, host, None)
}

#[test]
fn copies_that_are_latency_for_a_good_part_are_not_the_link() {
    let (slow, full) = (SECOND, 9 * SECOND / 2);
    // 4000 copies.
    for (copy_ns, host, expected) in [
        (full, host(80, 5, 5), FeedLimit::Link),
        (slow, host(5, 80, 5), FeedLimit::Copies),
    ] {
        for (one_byte_ns, expected) in [
            (None, expected),
            (Some(copy_ns / 4000 / 5), expected),
            (Some(copy_ns / 4000 / 3), FeedLimit::Latency),
        ] {
            let found = limit_of(measured(), copy_ns, host, one_byte_ns);
            assert_eq!(found.limit, Some(expected), "{one_byte_ns:?}");
        }
    }
    let text = limit_of(simulated(), full, host(0, 0, 0), Some(1_000_000)).to_text();
    let part = "a copy of 36.8 MiB takes 1.12 ms, one of 1 byte 1.00 ms.\nA larger --batch";
    assert!(text.contains(part), "{text}");
}

#[test]
fn a_short_run_is_limited_by_its_start() {
    let start = |batches, first_batch_ns| {
        let done = FeedDone {
            batches,
            first_batch_ns: Some(first_batch_ns),
            ..done()
        };
        Feed::new(simulated(), job(), done, link(SECOND), host(0, 0, 0), None).limit
    };
    assert_eq!(start(8, 1), Some(FeedLimit::Start));
    assert_eq!(start(4000, 3 * SECOND), Some(FeedLimit::Start));
    assert_eq!(start(4000, 1), Some(FeedLimit::Batches));
}

#[test]
fn skipped_samples_are_reported_with_their_reasons() {
    let skipped = |index, why: &str| FeedSkipped {
        index,
        why: why.to_owned(),
    };
    let mut some = done();
    some.skipped = 5;
    let host = host(5, 5, 80);
    let mut report = Feed::new(measured(), job(), some, link(SECOND), host, None);
    report.first_skipped = vec![skipped(7, "no \u{1b}[2J file"), skipped(3, "too long")];
    let text = report.to_text();
    let lines = "; 5 samples skipped\nSkipped: sample 7: no  [2J file\nSkipped: sample 3: too long\n\
                 Skipped: 3 more\n";
    assert!(text.contains(lines), "{text}");
    assert!(
        report
            .to_html(&Environment::default())
            .contains("Skipped: sample 3: too long")
    );
    assert!(!report.all_skipped());

    let all = FeedDone {
        samples: 0,
        sample_bytes: 0,
        moved_bytes: 0,
        ..some
    };
    let report = Feed::new(measured(), job(), all, FeedLink::default(), host, None);
    assert!(report.all_skipped());
    assert!(report.to_text().contains("\nNothing was fed\n"));
    assert!(report.advice().is_empty() && report.limit.is_none());
}

#[test]
fn every_limit_has_its_advice() {
    for (report, part) in [
        (
            report(measured(), SECOND, host(80, 5, 5), None),
            "More --workers help",
        ),
        (
            report(measured(), SECOND, host(5, 80, 5), None),
            "A larger --batch",
        ),
        (
            report(measured(), SECOND, host(5, 5, 80), None),
            "--prefetch",
        ),
        (
            report(measured(), SECOND, host(5, 5, 5), None),
            "limit: 1.25 ms per batch, of which the copy takes 250 µs.\nA larger --batch",
        ),
        (
            report(simulated(), SECOND, host(5, 5, 5), None),
            "A larger --batch means fewer batches",
        ),
        (
            report(measured(), 9 * SECOND / 2, host(5, 5, 5), None),
            "smaller samples",
        ),
        (
            report(measured(), SECOND, host(5, 5, 5), Some(kernel(99, 100))),
            "A faster feed would gain nothing",
        ),
    ] {
        let text = report.to_text();
        assert!(text.contains(part), "{text}");
        assert!(report.advice().iter().all(|line| text.contains(line)));
    }
    let mut large = job();
    large.fields[0].dtype = "F32".to_owned();
    let report = Feed::new(
        measured(),
        large,
        done(),
        link(5 * SECOND),
        host(0, 0, 0),
        None,
    );
    assert!(report.to_text().contains("such as u8 with --normalize"));
}

#[test]
fn a_simulated_feed_names_its_clock() {
    let kernel = Some(kernel(4 * SECOND, 5 * SECOND));
    let mut report = report(simulated(), SECOND, host(75, 10, 5), kernel);
    report.job.workers = 0;
    let text = report.to_text();
    for part in [
        "SIMULATED: sim:pcie3-x16, not a real GPU\n",
        "30.8 GB/s, by the simulated clock; reading samples takes no simulated time\n",
        "GPU: idle 20.0% of the time between the first and the last of 200 kernels of 20.0 ms\n",
        "Host: reading took 45.0 s of real time, 22756 samples/s per thread\n",
        "read by the consumer",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Shares of real time would mix with simulated times.
    assert!(report.stages.is_empty() && !text.contains("reading threads"));
    // A GPU that is idle for a fifth of the time could take more.
    assert_eq!(report.limit, Some(FeedLimit::Batches));
}

/// The time before the first batch does not count.
#[test]
fn the_start_does_not_hide_the_limit() {
    let done = FeedDone {
        first_batch_ns: Some(SECOND),
        ..done()
    };
    let feed = |copy_ns, kernel| {
        let (link, host) = (link(copy_ns), host(5, 5, 5));
        Feed::new(simulated(), job(), done, link, host, kernel).limit
    };
    let idle = |percent: u64| Some(kernel((100 - percent) * SECOND / 25, 4 * SECOND));
    // 70% of the total time, 87% of the time after the first batch.
    assert_eq!(feed(7 * SECOND / 2, idle(23)), Some(FeedLimit::Link));
    assert_eq!(feed(2 * SECOND, idle(23)), Some(FeedLimit::Batches));
    assert_eq!(feed(2 * SECOND, idle(1)), Some(FeedLimit::Kernel));
    let late = FeedDone {
        first_batch_ns: Some(3 * SECOND),
        ..done
    };
    let (link, host) = (link(SECOND), host(5, 5, 5));
    let late = Feed::new(simulated(), job(), late, link, host, idle(1));
    assert_eq!(late.limit, Some(FeedLimit::Start));
}

#[test]
fn unmeasured_times_have_no_rate() {
    for (elapsed_ns, words) in [
        (None, "No rate: the time was not measured\n"),
        (Some(0), "No rate: nothing takes time on this device\n"),
    ] {
        let done = FeedDone {
            elapsed_ns,
            first_batch_ns: None,
            ..done()
        };
        let (link, host) = (FeedLink::default(), host(1, 1, 1));
        let report = Feed::new(simulated(), job(), done, link, host, None);
        let text = report.to_text();
        assert!(text.contains(words), "{text}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        assert_eq!((report.samples_per_s, report.limit), (None, None));
    }
}

#[test]
fn an_empty_feed_divides_by_no_zero() {
    let (done, link) = (FeedDone::default(), FeedLink::default());
    let mut report = Feed::new(measured(), job(), done, link, FeedHost::default(), None);
    report.complete = false;
    let text = report.to_text();
    assert!(text.contains(
        "INTERRUPTED: results up to the interruption; target: 5.00 s\nNothing was fed\n"
    ));
    assert!(text.contains("0 samples in 0 batches"), "{text}");
    assert!(report.advice().is_empty() && report.stages.is_empty());
    assert!(
        report
            .to_html(&Environment::default())
            .contains("Interrupted: results up to the interruption; target: 5.00 s.")
    );
    report.job.target.epochs = Some(3);
    assert!(
        report
            .to_text()
            .contains("interruption; target: 3 epochs or 5.00 s\n")
    );
    let json: Value =
        serde_json::from_str(&report.to_json(&Environment::default())).expect("valid JSON");
    assert_eq!(json["asked"]["epochs"], 3);
}

#[test]
fn bytes_of_samples_and_bytes_moved_are_reported_separately() {
    let told = |sample_batches| {
        let done = FeedDone {
            sample_bytes: 50_000_000_000,
            sample_batches,
            moved_bytes: 60_000_000_000,
            ..done()
        };
        Feed::new(measured(), job(), done, link(SECOND), host(75, 10, 5), None)
    };
    let text = told(4000).to_text();
    for part in [
        "204800 samples/s, 10.0 GB/s of samples, 12.0 GB/s moved\n",
        "in 4000 batches, 46.6 GiB of samples, 55.9 GiB moved with lengths and padding, in 5.00 s",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Some were copied ahead; the length of their samples is unknown.
    let text = told(3997).to_text();
    for part in [
        "204800 samples/s, 12.0 GB/s moved\n",
        "46.6 GiB of samples in the 3997 batches taken, 55.9 GiB moved",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json: Value =
        serde_json::from_str(&told(4000).to_json(&Environment::default())).expect("valid JSON");
    assert_eq!(json["sample_gb_per_s"], 10.0);
    assert_eq!(json["moved_gb_per_s"], 12.0);
    assert_eq!(json["sample_bytes"], 50_000_000_000u64);
    assert_eq!(json["moved_bytes"], 60_000_000_000u64);
}

#[test]
fn the_whole_job_is_reported() {
    let job = FeedJob {
        source: "shards/\u{1b}[2J".to_owned(),
        shuffle: false,
        shard: FeedShard {
            rank: 1,
            world: 4,
            from: ["RANK", "WORLD_SIZE"].map(str::to_owned).into(),
            padding_samples: 2,
        },
        skip_bad: true,
        normalize: Some(FeedNormalize {
            field: "jpg".to_owned(),
            to: "BF16".to_owned(),
            mean: vec![0.5],
            std: vec![0.25],
            inner: 1,
        }),
        kernel_ns: Some(20_000_000),
        fields: ["jpg", "cls", "a", "b", "c", "d"]
            .map(|name| FeedField {
                name: name.to_owned(),
                dtype: "U8".to_owned(),
                shape: (name != "jpg").then(Vec::new),
                bytes: 1,
            })
            .into(),
        ..job()
    };
    let done = FeedDone {
        skipped: 1,
        ..done()
    };
    let report = Feed::new(measured(), job, done, link(1), host(1, 1, 1), None);
    let text = report.to_text();
    for part in [
        "up to 6 B each (jpg u8 of variable length, cls u8, a u8, b u8, 2 more)",
        "in order",
        "\nRank 1 of 4, from RANK and WORLD_SIZE; 2 samples per epoch repeated, so that all ranks have the same number\n",
        "On the device: jpg normalized to bf16, then a kernel of 20.0 ms per batch\n",
        "; 1 sample skipped\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains('\u{1b}'), "{text:?}");
    let json: Value =
        serde_json::from_str(&report.to_json(&Environment::default())).expect("valid JSON");
    let shard = serde_json::json!({
        "rank": 1, "world": 4, "from": ["RANK", "WORLD_SIZE"], "padding_samples": 2
    });
    assert_eq!(json["shard"], shard);
    assert_eq!(json["normalize"]["std"][0], 0.25);
    assert!(
        report
            .to_html(&Environment::default())
            .contains("Rank 1 of 4, from RANK")
    );
}

#[test]
fn json_holds_the_same() {
    let kernel = Some(kernel(4 * SECOND, 5 * SECOND));
    let report = report(measured(), 2_800_000_000, host(75, 10, 5), kernel);
    let json: Value =
        serde_json::from_str(&report.to_json(&Environment::default())).expect("valid JSON");
    assert_eq!(json["schema"], 1);
    assert_eq!(json["origin"], "MEASURED");
    assert_eq!(json["source"], "synthetic");
    assert_eq!(json["fields"][0]["shape"][2], 224);
    assert_eq!(
        (&json["batches"], &json["samples"]),
        (&4000.into(), &1_024_000.into())
    );
    assert_eq!(json["samples_per_s"], 204_800.0);
    assert_eq!(json["stages"][0]["share"], 0.75);
    assert_eq!(json["host"]["read_ns"], 45 * SECOND);
    assert_eq!(json["kernel"]["count"], 200);
    assert!((json["gpu_idle_share"].as_f64().expect("a number") - 0.2).abs() < 1e-9);
    assert_eq!(json["limit"], "dataset");
    assert_eq!(json["complete"], true);
}

#[test]
fn parts_that_are_more_than_the_whole_stay_shares() {
    let report = report(measured(), SECOND, host(90, 30, 0), None);
    let sum: f64 = report.stages.iter().map(|stage| stage.share).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    let huge = FeedHost {
        read_ns: u64::MAX,
        slot_wait_ns: u64::MAX,
        ..host(0, 0, 0)
    };
    let report = self::report(measured(), SECOND, huge, None);
    assert!(report.stages.iter().all(|stage| stage.share <= 1.0));
}
