//! The rendered comparison, byte for byte.

use pinlane_report::{
    Compare, CompareRow, CopyStats, Environment, LinkBasis, LinkLimit, MemoryKind, Origin,
};

const BYTES: u64 = 256 << 20;
const MS: u64 = 1_000_000;

fn row(memory: MemoryKind, get_ns: u64, h2d_ns: u64, d2h_ns: u64) -> CompareRow {
    let figure = |ns| CopyStats::from_times(BYTES, &[ns]).expect("time passed");
    CompareRow {
        memory,
        get_ns,
        h2d: figure(h2d_ns),
        d2h: figure(d2h_ns),
    }
}

fn textbook() -> Compare {
    let mut report = Compare::new(
        Origin::new("Simulated GPU", Some("pcie3-x16".into())),
        BYTES,
        5,
        None,
        vec![
            row(MemoryKind::Pageable, 0, 44_743_243, 44_743_243),
            row(MemoryKind::Pinned, 12_850_000, 22_372_122, 22_372_122),
            row(MemoryKind::Registered, 12_850_000, 22_372_122, 22_372_122),
            row(MemoryKind::Express, 0, 23_462_214, 23_462_214),
        ],
    )
    .expect("pageable and pinned");
    report
        .notes
        .push("mapped: not measured: no such thing".to_owned());
    report
}

fn measured(rows: Vec<CompareRow>) -> Compare {
    let limit = LinkLimit {
        gb_per_s: 57.6,
        basis: LinkBasis::Pcie {
            generation: 5,
            width: 16,
        },
    };
    let origin = Origin::new("NVIDIA H200", None);
    Compare::new(origin, BYTES, 5, Some(limit), rows).expect("pageable and pinned")
}

#[test]
fn textbook_figures_give_the_golden_text() {
    assert_eq!(textbook().to_text(), include_str!("golden-pcie3-x16.txt"));
}

#[test]
fn measured_figures_keep_one_decimal_and_their_origin() {
    let report = measured(vec![
        row(MemoryKind::Pageable, 60 * MS, 29_826_161, 18_137_534),
        row(MemoryKind::Pinned, 71 * MS, 4_845_405, 4_845_405),
    ]);
    let text = report.to_text();
    let line = |n: usize| text.lines().nth(n).expect("that many lines");
    assert_eq!(line(5), "Transfer BW: ~9 GB/s (PCIe, pageable)");
    assert_eq!(line(10), "Transfer BW: ~55.4 GB/s (PCIe, pinned)");
    assert_eq!(line(11), "Speedup: 6.16x faster transfers!");
    assert_eq!(line(16), "Measured on NVIDIA H200");
    assert_eq!(
        line(21),
        "pinned            55.4    6.16x      96%    55.4    3.74x      96%     71.0 ms"
    );
    assert!(text.contains("256 MiB per copy, median of 5;"), "{text}");
    assert!(
        text.contains("PCIe 5.0 x16 carries 57.6 GB/s after packet overhead"),
        "{text}"
    );
    assert!(!text.contains("SIMULATED"));
}

#[test]
fn advice_follows_from_the_figures() {
    let pageable = row(MemoryKind::Pageable, 60 * MS, 30 * MS, 18 * MS);
    let both_ways = |get_ns, h2d_ns, d2h_ns| row(MemoryKind::Pinned, get_ns, h2d_ns, d2h_ns);
    let pinned = |get_ns, h2d_ns| both_ways(get_ns, h2d_ns, 5 * MS);
    for (pinned, must) in [
        (
            pinned(71 * MS, 5 * MS),
            "Pinning 256 MiB costs 11.0 ms and saves 25.0 ms per copy to the device: it pays off with \
             the first copy.",
        ),
        (
            pinned(161 * MS, 5 * MS),
            "Pinning 256 MiB costs 101 ms and saves 25.0 ms per copy to the device: it pays off after 5 \
             copies of this size.",
        ),
        (
            pinned(50 * MS, 5 * MS),
            "Pinned memory of 256 MiB costs no more than pageable memory and saves 25.0 ms per copy \
             to the device.",
        ),
        (
            both_ways(71 * MS, 29 * MS, 18 * MS),
            "Pinning gains nothing here: pageable copies are as fast.",
        ),
        (
            both_ways(71 * MS, 40 * MS, 18 * MS),
            "Pinning gains nothing here: pageable copies are as fast or faster.",
        ),
        // In the one direction only.
        (
            both_ways(71 * MS, 40 * MS, 5 * MS),
            "Pinning 256 MiB costs 11.0 ms and saves 13.0 ms per copy from the device: it pays off with \
             the first copy.",
        ),
    ] {
        assert_eq!(measured(vec![pageable, pinned]).advice(), [must]);
    }
    let express = |h2d_ns, d2h_ns| {
        let express = row(MemoryKind::Express, 60 * MS, h2d_ns, d2h_ns);
        let rows = vec![pageable, pinned(71 * MS, 5 * MS), express];
        measured(rows).advice().pop().expect("a sentence")
    };
    assert_eq!(
        express(6 * MS, 18 * MS),
        "The express lane reaches 83% of pinned speed without pinning: best for memory that is \
         rarely copied."
    );
    assert_eq!(
        express(30 * MS, 6 * MS),
        "The express lane reaches 83% of pinned speed without pinning for copies from the device: \
         best for memory that is rarely copied."
    );
    assert_eq!(
        express(30 * MS, 18 * MS),
        "The express lane gains nothing for copies of this size."
    );
}

#[test]
fn without_pageable_or_pinned_there_is_nothing_to_compare() {
    let origin = Origin::new("GPU", None);
    let rows = vec![row(MemoryKind::Pinned, 1, 1, 1)];
    assert_eq!(Compare::new(origin, BYTES, 1, None, rows), None);
}

#[test]
fn json_carries_schema_origin_and_figures() {
    let json: serde_json::Value =
        serde_json::from_str(&textbook().to_json(&Environment::default())).expect("valid JSON");
    assert_eq!(json["schema"], 1);
    assert_eq!(json["origin"], "SIMULATED");
    assert_eq!(json["profile"], "pcie3-x16");
    assert_eq!(json["bytes"], BYTES);
    assert_eq!(json["limit"]["basis"], "fastest");
    assert_eq!(json["rows"][1]["memory"], "pinned");
    assert_eq!(json["rows"][1]["h2d"]["median_ns"], 22_372_122);
    assert_eq!(json["rows"][1]["get_ns"], 12_850_000);
    assert_eq!(json["rows"][2]["memory"], "registered");
}

#[test]
fn figure_takes_median_and_best() {
    let odd = CopyStats::from_times(1000, &[30, 10, 20]).expect("time passed");
    assert_eq!((odd.median_ns, odd.best_ns), (20, 10));
    assert_eq!(odd.gb_per_s, 50.0);
    let even = CopyStats::from_times(1000, &[40, 10, 20, 30]).expect("time passed");
    assert_eq!((even.median_ns, even.best_ns), (25, 10));
}

#[test]
fn no_time_makes_no_figure() {
    assert_eq!(CopyStats::from_times(1000, &[]), None);
    assert_eq!(CopyStats::from_times(1000, &[0, 0]), None);
}
