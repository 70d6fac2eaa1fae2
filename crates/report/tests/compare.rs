//! The rendered comparison, byte for byte.

use pinlane_report::{Compare, Figure, MemoryKind, Origin, Row};

const BYTES: u64 = 256 << 20;

fn row(memory: MemoryKind, h2d_ns: u64, d2h_ns: u64) -> Row {
    let figure = |ns| Figure::from_times(BYTES, &[ns]).expect("time passed");
    Row {
        memory,
        h2d: figure(h2d_ns),
        d2h: figure(d2h_ns),
    }
}

fn textbook() -> Compare {
    Compare::new(
        Origin::new("Simulated GPU", Some("pcie3-x16".into())),
        BYTES,
        5,
        row(MemoryKind::Pageable, 44_743_243, 44_743_243),
        row(MemoryKind::Pinned, 22_372_122, 22_372_122),
        vec![row(MemoryKind::Registered, 22_372_122, 22_372_122)],
    )
}

#[test]
fn textbook_figures_give_the_golden_text() {
    assert_eq!(textbook().to_text(), include_str!("golden-pcie3-x16.txt"));
}

#[test]
fn real_figures_keep_one_decimal_and_say_measured() {
    let report = Compare::new(
        Origin::new("NVIDIA H200", None),
        BYTES,
        5,
        row(MemoryKind::Pageable, 29_826_161, 18_137_534),
        row(MemoryKind::Pinned, 4_845_405, 4_845_405),
        Vec::new(),
    );
    let text = report.to_text();
    let line = |n: usize| text.lines().nth(n).expect("that many lines");
    assert_eq!(line(5), "Transfer BW: ~9 GB/s (PCIe, pageable)");
    assert_eq!(line(10), "Transfer BW: ~55.4 GB/s (PCIe, pinned)");
    assert_eq!(line(11), "Speedup: 6.16x faster transfers!");
    assert_eq!(line(16), "Measured on NVIDIA H200");
    assert!(!text.contains("SIMULATED"));
}

#[test]
fn json_carries_schema_origin_and_figures() {
    let json: serde_json::Value = serde_json::from_str(&textbook().to_json()).expect("valid JSON");
    assert_eq!(json["schema"], 1);
    assert_eq!(json["origin"], "SIMULATED");
    assert_eq!(json["profile"], "pcie3-x16");
    assert_eq!(json["bytes"], BYTES);
    assert_eq!(json["pinned"]["memory"], "pinned");
    assert_eq!(json["pinned"]["h2d"]["median_ns"], 22_372_122);
    assert_eq!(json["others"][0]["memory"], "registered");
}

#[test]
fn figure_takes_median_and_best() {
    let odd = Figure::from_times(1000, &[30, 10, 20]).expect("time passed");
    assert_eq!((odd.median_ns, odd.best_ns), (20, 10));
    assert_eq!(odd.gb_per_s, 50.0);
    let even = Figure::from_times(1000, &[40, 10, 20, 30]).expect("time passed");
    assert_eq!((even.median_ns, even.best_ns), (25, 10));
}

#[test]
fn no_time_makes_no_figure() {
    assert_eq!(Figure::from_times(1000, &[]), None);
    assert_eq!(Figure::from_times(1000, &[0, 0]), None);
}
