//! The chart as a picture.

use pinlane_report::Origin;
use pinlane_report::timeline::{Chart, Span, SpanKind, Svg, Timeline, Track};
use roxmltree::{Document, Node};

use crate::{export, sample};

const WIDTH: f64 = 1200.0;

/// Well-formed, says where it comes from, and everything is inside the picture.
pub fn check(svg: &str, chart: &Chart, which: &str) {
    let document = Document::parse(svg).unwrap_or_else(|error| panic!("{which}: {error}\n{svg}"));
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "svg", "{which}");
    assert!(!svg.contains("href"), "{which}: nothing is fetched");
    let height = number(&root, "height");
    for rect in root.descendants().filter(|node| node.has_tag_name("rect")) {
        if rect.attribute("class") == Some("page") {
            continue;
        }
        let (x, y) = (number(&rect, "x"), number(&rect, "y"));
        assert!(
            x >= 0.0 && x + number(&rect, "width") <= WIDTH,
            "{which}: {rect:?}"
        );
        assert!(
            y >= 0.0 && y + number(&rect, "height") <= height,
            "{which}: {rect:?}"
        );
    }
    let texts = texts(&document);
    let flagged = texts.iter().any(|text| text.starts_with("SIMULATED: sim:"));
    let simulated = matches!(chart.origin, Origin::Simulated { .. });
    assert_eq!(flagged, simulated, "{which}");
    assert!(texts.len() > chart.timelines.len(), "{which}");
}

fn number(node: &Node<'_, '_>, name: &str) -> f64 {
    let value = node
        .attribute(name)
        .unwrap_or_else(|| panic!("{node:?} has no {name}"));
    let value: f64 = value.parse().expect("a number");
    assert!(value.is_finite());
    value
}

fn texts(document: &Document<'_>) -> Vec<String> {
    document
        .descendants()
        .filter(|node| node.has_tag_name("text"))
        .filter_map(|node| node.text().map(str::to_owned))
        .collect()
}

fn tooltips(document: &Document<'_>) -> Vec<String> {
    document
        .descendants()
        .filter(|node| node.has_tag_name("rect"))
        .filter_map(|rect| rect.children().find(|node| node.has_tag_name("title")))
        .filter_map(|title| title.text().map(str::to_owned))
        .collect()
}

#[test]
fn each_span_has_a_bar_with_a_tooltip() {
    let chart = sample::small();
    let svg = export(&Svg, &chart);
    check(&svg, &chart, "small");
    let document = Document::parse(&svg).expect("XML");
    let tooltips = tooltips(&document);
    assert_eq!(tooltips.len(), 3 + 7);
    assert_eq!(
        tooltips[0],
        "input, host to device, stream 0, 46.9 KiB, 12.0 GB/s: 4.00 µs at 0 ns"
    );
    let texts = texts(&document);
    for text in [
        "Copies and a kernel",
        "SIMULATED: sim:pcie3-x16, not a real GPU",
        "Two chunks",
        "8.00 µs",
        "1.50x",
        "Device to host",
        "2 µs",
        "kernel",
    ] {
        assert!(texts.iter().any(|found| found == text), "{text}: {texts:?}");
    }
}

#[test]
fn five_ways_are_drawn() {
    let chart = sample::five();
    let svg = export(&Svg, &chart);
    check(&svg, &chart, "five");
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("five.svg");
    std::fs::write(path, svg).expect("the folder is there");
}

#[test]
fn overlapping_spans_do_not_hide_each_other() {
    let kernel =
        |start_ns, end_ns| Span::new(Track::Compute(0), SpanKind::Kernel, start_ns, end_ns);
    let spans = vec![kernel(0, 600), kernel(300, 900), kernel(400, 500)];
    let run = Timeline::new("three kernels", 1000, spans).expect("in order");
    let chart = Chart::new("Overlap", sample::simulated(), vec![run]);
    let svg = export(&Svg, &chart);
    let document = Document::parse(&svg).expect("XML");
    let boxes: Vec<[f64; 4]> = document
        .descendants()
        .filter(|node| node.has_tag_name("rect") && node.has_children())
        .map(|rect| ["x", "y", "width", "height"].map(|name| number(&rect, name)))
        .collect();
    assert_eq!(boxes.len(), 3);
    for (index, [x, y, width, height]) in boxes.iter().enumerate() {
        for [other_x, other_y, other_width, other_height] in &boxes[..index] {
            let across = *x < other_x + other_width && *other_x < x + width;
            let down = *y < other_y + other_height && *other_y < y + height;
            assert!(!(across && down), "{boxes:?}");
        }
    }
}

/// Copies, kernels and copies back, 20,000 in all, in five runs.
pub fn crowded() -> Chart {
    let tracks = [
        (Track::HostToDevice(0), SpanKind::HostToDevice),
        (Track::Compute(0), SpanKind::Kernel),
        (Track::DeviceToHost(0), SpanKind::DeviceToHost),
        (Track::Staging(0), SpanKind::Staging),
    ];
    let runs = (0..5)
        .map(|run| {
            let spans = (0..4000u64)
                .map(|index| {
                    let (track, kind) = tracks[index as usize % 4];
                    let start_ns = index / 4 * 100_000;
                    Span::new(track, kind, start_ns, start_ns + 90_000 - run * 1000)
                        .label(format!("piece {index} of a long series"))
                        .chunk(index / 4)
                        .stream(3)
                        .bytes(1_000_000)
                })
                .collect();
            Timeline::new(format!("run {run}"), 100_000_000, spans).expect("in order")
        })
        .collect();
    Chart::new("Crowded", sample::simulated(), runs)
}

#[test]
fn twenty_thousand_spans_stay_a_small_file() {
    let chart = crowded();
    let svg = export(&Svg, &chart);
    check(&svg, &chart, "crowded");
    assert!(svg.len() < 5 << 20, "{} bytes", svg.len());
}

#[test]
fn indistinguishable_spans_are_counted() {
    let spans = (0..1000)
        .map(|index| Span::new(Track::Host, SpanKind::HostWork, index * 10, index * 10 + 5))
        .collect();
    let run = Timeline::new("dense", 1_000_000, spans).expect("in order");
    let svg = export(&Svg, &Chart::new("Dense", sample::simulated(), vec![run]));
    let document = Document::parse(&svg).expect("XML");
    let tooltips = tooltips(&document);
    assert!(tooltips.len() < 20, "{}", tooltips.len());
    let counted: u64 = tooltips
        .iter()
        .map(|text| {
            text.split_once(" × ")
                .map_or(1, |(count, _)| count.parse().expect("a count"))
        })
        .sum();
    assert_eq!(counted, 1000);
}
