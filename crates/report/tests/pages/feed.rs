//! Feeds as pages.

use pinlane_report::{
    Feed, FeedDone, FeedField, FeedHost, FeedInterval, FeedJob, FeedKernel, FeedLink,
    FeedNormalize, FeedShard, FeedTarget, Origin,
};

use serde_json::Value;

use crate::check_markup::{check_html, pictures, texts, tips};
use crate::sample::{environment, measured, simulated};

pub fn feed(origin: Origin, text: &str, ns: u64) -> Feed {
    let job = FeedJob {
        source: text.to_owned(),
        dataset_samples: ns,
        fields: vec![FeedField {
            name: text.to_owned(),
            dtype: text.to_owned(),
            shape: None,
            bytes: ns,
        }],
        batch: 256,
        shuffle: true,
        seed: 0,
        workers: 2,
        prefetch: 3,
        shard: FeedShard {
            rank: 0,
            world: 2,
            from: vec![text.to_owned()],
            padding_samples: 1,
        },
        target: FeedTarget {
            epochs: Some(ns),
            time_ns: Some(ns),
        },
        skip_bad: true,
        normalize: Some(FeedNormalize {
            field: text.to_owned(),
            to: text.to_owned(),
            mean: vec![0.5],
            std: vec![0.5],
            inner: 1,
        }),
        kernel_ns: Some(ns),
    };
    let done = FeedDone {
        epochs: 1,
        batches: 10,
        samples: 2560,
        skipped: 1,
        sample_bytes: 1 << 29,
        sample_batches: 10,
        moved_bytes: 1 << 30,
        elapsed_ns: Some(ns),
        first_batch_ns: Some(ns / 10),
    };
    let link = FeedLink {
        copy_ns: ns / 4,
        copy_bytes: 1 << 30,
        one_byte_ns: Some(ns / 1000),
    };
    let host = FeedHost {
        threads: 2,
        wall_ns: ns,
        read_ns: ns,
        slot_wait_ns: ns / 2,
        held_back_ns: ns / 5,
        consumer_wait_ns: 0,
    };
    // They ran in the second half.
    let kernel = FeedKernel {
        count: 10,
        busy_ns: ns / 5 * 2,
        span_ns: ns / 2,
    };
    let mut feed = Feed::new(origin, job, done, link, host, Some(kernel));
    feed.notes = vec![text.to_owned()];
    feed.intervals = (0..INTERVALS).map(|index| interval(index, ns)).collect();
    feed
}

const INTERVALS: u64 = 30;

/// One of equal intervals in the last nine tenths of the time. The sixth has a long wait.
fn interval(index: u64, ns: u64) -> FeedInterval {
    let step_ns = ns / 10 * 9 / INTERVALS;
    let wait_ns = match index {
        5 => step_ns,
        _ => step_ns / 4,
    };
    FeedInterval {
        start_ns: ns / 10 + step_ns * index,
        end_ns: ns / 10 + step_ns * (index + 1),
        batches: 2,
        samples: if index == 5 { 40 } else { 80 },
        wait_ns,
        wait_max_ns: wait_ns / 4 * 3,
    }
}

#[test]
fn the_page_shows_the_report() {
    let html = feed(measured(), "images.npy", 1_000_000_000).to_html(&environment());
    check_html(&html, "measured");
    // Rate, waits, parts and shares, in two widths.
    assert_eq!(pictures(&html).len(), 8);
    let tips = tips(&html);
    let tips = &tips[2 * INTERVALS as usize + 4..];
    assert_eq!(tips.len(), 7);
    assert_eq!(tips[0]["title"], "reading threads, reading samples");
    assert_eq!(tips[0]["rows"][0]["cells"][0], "50.0%");
    assert_eq!(tips[4]["title"], "link, busy");
    // Of the same time as all others.
    assert_eq!(tips[5]["title"], "GPU, busy");
    assert_eq!(tips[5]["rows"][0]["cells"][0], "40.0%");
    assert_eq!(tips[6]["title"], "consumer, waiting for batches");
    assert_eq!(tips[6]["rows"][0]["cells"][0], "34.8%");
    for part in [
        "2560 samples/s, 0.54 GB/s of samples, 1.07 GB/s moved.",
        "Reading samples is the limit",
        "images.npy: 1000000000 samples",
        "<tr><th scope=\"row\">link</th><td>busy</td><td>25.0%</td></tr>",
        "<tr><th scope=\"row\">GPU</th><td>busy</td><td>40.0%</td></tr>",
        "<p class=\"dim\">GPU: idle 20.0% of the time between the first and the last of 10 kernels",
        "<p class=\"dim\">First batch after 100 ms</p>",
    ] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn a_simulated_page_is_marked_and_has_no_shares_of_real_threads() {
    let html = feed(simulated(), "synthetic", 1_000_000).to_html(&environment());
    check_html(&html, "simulated");
    assert!(html.contains("SIMULATED"));
    // The link, the GPU and the consumer.
    let shares = tips(&html).split_off(2 * INTERVALS as usize + 3);
    assert_eq!(shares.len(), 3);
}

#[test]
fn the_run_is_drawn_over_time() {
    let feed = feed(measured(), "images.npy", 1_000_000_000);
    let html = feed.to_html(&environment());
    let all = tips(&html);
    let slow = &all[5];
    assert_eq!(slow["title"], "250 ms to 280 ms");
    let delivered = &slow["rows"][0];
    assert_eq!(delivered["name"], "delivered");
    assert_eq!(delivered["cells"][0], "1333 samples/s");
    let wait = &all[INTERVALS as usize + 5]["rows"];
    assert_eq!(wait[0]["cells"][0], "15.0 ms");
    assert_eq!(wait[1]["cells"][0], "22.5 ms");
    // Each part alone, the slowest of which is what limits.
    let parts: Vec<_> = all[2 * INTERVALS as usize..][..4]
        .iter()
        .map(|tip| (tip["title"].clone(), tip["rows"][0]["cells"][0].clone()))
        .collect();
    let expected = [
        ("delivered", "2560 samples/s"),
        ("link alone", "10240 samples/s"),
        ("kernel alone", "6400 samples/s"),
        ("reading alone", "5120 samples/s"),
    ];
    let expected = expected.map(|(name, rate)| (Value::from(name), Value::from(rate)));
    assert_eq!(parts, expected);
    // A part that is far faster than what is delivered would flatten the rate over time.
    let rate = texts(pictures(&html)[0]);
    let shows = |name: &str| rate.iter().any(|text| text.starts_with(name));
    assert!(shows("delivered mean 2560") && shows("reading alone") && shows("kernel alone"));
    assert!(!shows("link alone"), "{rate:?}");
}

#[test]
fn a_run_without_times_is_not_drawn_over_time() {
    for count in [0, 1] {
        let mut feed = feed(measured(), "images.npy", 1_000_000_000);
        feed.intervals.truncate(count);
        let html = feed.to_html(&environment());
        check_html(&html, "short");
        assert_eq!(pictures(&html).len(), 4);
        assert!(!html.contains("Rate over time"));
    }
    let mut never = feed(measured(), "images.npy", 1_000_000_000);
    for interval in &mut never.intervals {
        (interval.wait_ns, interval.wait_max_ns) = (0, 0);
    }
    let html = never.to_html(&environment());
    assert!(html.contains("Rate over time") && !html.contains("Wait for a batch"));
}

#[test]
fn nothing_breaks_out_or_is_no_number() {
    for text in [
        "</script><script>alert(1)</script>",
        "\"><svg onload=alert(1)>",
        "\u{0}\u{1b}[2J\u{202e}\n",
        "",
    ] {
        for ns in [0, 1, 12_345, u64::MAX] {
            for origin in [measured(), Origin::new(text, Some(text.to_owned()))] {
                let feed = feed(origin, text, ns);
                check_html(&feed.to_html(&environment()), text);
                assert!(!feed.to_text().contains("NaN"), "{}", feed.to_text());
            }
        }
    }
}
