//! Sweeps as pictures and pages.

use pinlane_report::{Bench, Environment, MemoryKind, Route};
use roxmltree::Document;

use crate::check_markup::{check_html, check_svg, pictures, texts, tips};
use crate::sample::{bench, environment, measured, simulated, sizes};

fn check(bench: &Bench, which: &str) -> (String, String) {
    let (svg, html) = (bench.to_svg(), bench.to_html(&environment()));
    check_svg(&svg, which);
    check_html(&html, which);
    (svg, html)
}

/// Number of elements of this class.
fn count(svg: &str, class: &str) -> usize {
    let document = Document::parse(svg).expect("XML");
    let of_class = |node: &roxmltree::Node<'_, '_>| {
        let classes = node.attribute("class").unwrap_or_default();
        classes.split(' ').any(|found| found == class)
    };
    document.descendants().filter(of_class).count()
}

#[test]
fn every_figure_has_its_mark() {
    let bench = bench(measured());
    let (svg, html) = check(&bench, "H200");
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench.svg");
    std::fs::write(path, &svg).expect("the folder is there");
    // The names beside the lines have a mark and a piece of line too.
    let lines = 3 * MemoryKind::ALL.len();
    assert_eq!(count(&svg, "mark"), bench.lines.len() + lines);
    assert_eq!(count(&svg, "line"), 2 * lines);
    assert_eq!(count(&svg, "band"), lines);
    assert_eq!(count(&svg, "noisy"), 3);
    assert_eq!(count(&svg, "bar"), bench.latencies.len());
    // Two widths; the plots in two scales as well.
    assert_eq!(pictures(&html).len(), 3 * 4 + 2);
    for drawing in pictures(&html).iter().take(12) {
        assert_eq!(count(drawing, "stop"), sizes().len());
    }
    assert_eq!(tips(&html).len(), 3 * sizes().len() + bench.latencies.len());
}

#[test]
fn sizes_and_rates_are_marked_by_round_numbers() {
    let svg = bench(measured()).to_svg();
    let texts = texts(&svg);
    for text in [
        "4 KiB",
        "64 KiB",
        "1 MiB",
        "16 MiB",
        "256 MiB",
        "60",
        "120",
        "Host to device",
        "Both ways",
        "Latency of the smallest copy (1 B)",
        "Measured on NVIDIA H200",
        "pinned 55.3",
    ] {
        assert!(texts.iter().any(|found| found == text), "{text}: {texts:?}");
    }
}

#[test]
fn names_are_in_the_order_of_the_lines_and_apart() {
    let svg = bench(measured()).to_svg();
    let document = Document::parse(&svg).expect("XML");
    let names: Vec<(f64, String)> = document
        .descendants()
        .filter(|node| node.has_tag_name("text") && node.children().count() > 1)
        .map(|node| {
            let y = node.attribute("y").expect("a place");
            let name = node.text().expect("a name").trim().to_owned();
            (y.parse().expect("a number"), name)
        })
        .collect();
    let plot = &names[..6];
    let order: Vec<&str> = plot.iter().map(|(_, name)| name.as_str()).collect();
    let fastest_first = [
        "write-combined",
        "pinned",
        "registered",
        "express",
        "mapped",
        "pageable",
    ];
    assert_eq!(order, fastest_first);
    assert!(
        plot.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 17.9),
        "{plot:?}"
    );
}

#[test]
fn tooltips_have_the_exact_figures() {
    let html = bench(measured()).to_html(&environment());
    let tips = tips(&html);
    let last = &tips[sizes().len() - 1];
    assert_eq!(last["title"], "256 MiB, host to device");
    let row = &last["rows"][1];
    assert_eq!(
        (&row["colour"], &row["name"]),
        (&"h1".into(), &"pinned".into())
    );
    assert_eq!(row["cells"][0], "55.3 GB/s");
    assert_eq!(row["cells"][2], "4.85 ms");
    let rows = tips[4]["rows"].as_array().expect("a list");
    for row in rows {
        let time = row["cells"][2].as_str().expect("a text");
        assert_eq!(
            time.ends_with(", noisy"),
            row["name"] == "pageable",
            "{row}"
        );
    }
}

#[test]
fn tables_have_the_figures_too() {
    let (_, html) = check(&bench(measured()), "H200");
    assert!(
        html.contains("<tr><th scope=\"row\">256 MiB</th><td>7.40<small>6.47–8.64</small></td>")
    );
    assert!(html.contains("<td>noisy 7.08<small>"));
    assert!(html.contains("<th scope=\"row\">express</th><td>both ways</td><td>1 B</td>"));
    assert!(html.contains("<li>write-combined: the CPU reads such memory at a crawl</li>"));
    assert!(html.contains("Started 2026-11-15 10:20:35 UTC."));
}

#[test]
fn every_picture_is_marked_as_simulated() {
    let (svg, html) = check(&bench(simulated()), "simulated");
    assert!(html.contains("class=\"origin simulated\">SIMULATED: sim:pcie3-x16, not a real GPU"));
    for picture in pictures(&html) {
        assert!(
            texts(picture).contains(&"SIMULATED: sim:pcie3-x16".to_owned()),
            "{picture}"
        );
    }
    let flags = texts(&svg);
    let flags = flags.iter().filter(|text| text.starts_with("SIMULATED"));
    assert_eq!(flags.count(), 1 + 4);
    let (svg, html) = check(&bench(measured()), "measured");
    assert!(!svg.contains("SIMULATED") && !html.contains("SIMULATED"));
}

#[test]
fn an_interrupted_run_is_marked() {
    let mut bench = bench(measured());
    assert!(!bench.to_html(&environment()).contains("Incomplete"));
    bench.complete = false;
    let (svg, html) = check(&bench, "incomplete");
    assert!(html.contains("<p class=\"warning\">Incomplete"));
    assert!(svg.contains(">Incomplete"));
}

#[test]
fn nothing_one_size_and_one_sample_are_shown() {
    let empty = Bench::new(measured(), None, 0, 0);
    let (svg, html) = check(&empty, "empty");
    assert!(svg.contains("Nothing was measured") && html.contains("Nothing was measured"));
    assert_eq!(pictures(&html).len(), 0);

    let mut one = bench(simulated());
    one.lines.retain(|line| line.point.bytes == 1 << 20);
    let (svg, html) = check(&one, "one size");
    assert_eq!(count(&svg, "stop"), 3);
    assert!(texts(&svg).contains(&"1 MiB".to_owned()));
    assert_eq!(pictures(&html).len(), 14);

    let mut single = bench(simulated());
    single.latencies.clear();
    single
        .lines
        .retain(|line| line.point.route == Route::D2h && line.point.memory == MemoryKind::Pinned);
    single.lines.truncate(1);
    single.lines[0].stats.samples = 1;
    let ns = single.lines[0].stats.median_ns;
    (single.lines[0].stats.p5_ns, single.lines[0].stats.p95_ns) = (ns, ns);
    let (svg, html) = check(&single, "one sample");
    assert_eq!((count(&svg, "stop"), count(&svg, "bar")), (1, 0));
    assert!(!texts(&svg).contains(&"Host to device".to_owned()));
    assert_eq!(pictures(&html).len(), 4);
}

/// The corners of a path that has no other commands than moves and lines.
fn corners(path: &str) -> Vec<(f64, f64)> {
    let corners = path.split(['M', 'L', 'Z']).filter(|part| !part.is_empty());
    let number = |text: &str| text.parse::<f64>().expect("a number");
    corners
        .map(|corner| {
            let (x, y) = corner.split_once(' ').expect("two numbers");
            (number(x), number(y))
        })
        .collect()
}

/// The lines of a drawing, without the pieces beside names.
fn lines(svg: &str) -> Vec<Vec<(f64, f64)>> {
    let document = Document::parse(svg).expect("XML");
    let paths = document.descendants().filter(|node| {
        let class = node.attribute("class").unwrap_or_default();
        class.starts_with("line ")
    });
    let paths = paths.filter_map(|node| node.attribute("d"));
    paths
        .filter(|path| !path.contains('h'))
        .map(corners)
        .collect()
}

#[test]
fn the_badge_covers_no_line_and_no_axis() {
    let (_, html) = check(&bench(simulated()), "simulated");
    for picture in pictures(&html).into_iter().take(12) {
        let document = Document::parse(picture).expect("XML");
        let flag = document
            .descendants()
            .find(|node| node.attribute("class") == Some("flag"))
            .expect("a badge");
        let edge = |name| -> f64 {
            let value = flag.attribute(name).expect(name);
            value.parse().expect("a number")
        };
        let bottom = edge("y") + edge("height");
        let highest = lines(picture).into_iter().flatten();
        let highest = highest.map(|(_, y)| y).fold(f64::INFINITY, f64::min);
        assert!(bottom < highest, "{bottom} is below {highest}");
    }
}

#[test]
fn lines_that_coincide_are_drawn_side_by_side() {
    const NOTE: &str = "lines that coincide are drawn side by side";
    let mut bench = bench(simulated());
    // As on a simulated device, where several kinds of memory take exactly the same time.
    let lines_now = bench.lines.iter();
    let pinned = lines_now.filter(|line| line.point.memory == MemoryKind::Pinned);
    let pinned: Vec<_> = pinned.cloned().collect();
    bench.lines = [
        MemoryKind::Pinned,
        MemoryKind::Registered,
        MemoryKind::Mapped,
    ]
    .iter()
    .flat_map(|memory| {
        pinned.iter().cloned().map(|mut line| {
            line.point.memory = *memory;
            line
        })
    })
    .collect();
    let (svg, html) = check(&bench, "coincident");
    assert!(texts(&svg).contains(&NOTE.to_owned()));
    for picture in pictures(&html).into_iter().take(12) {
        let lines = lines(picture);
        assert_eq!(lines.len(), 3);
        for stop in 0..sizes().len() {
            let mut places: Vec<(f64, f64)> = lines.iter().map(|line| line[stop]).collect();
            places.sort_by(|a, b| (a.0 + a.1).total_cmp(&(b.0 + b.1)));
            for pair in places.windows(2) {
                let apart = (pair[1].0 - pair[0].0).hypot(pair[1].1 - pair[0].1);
                assert!((3.0..5.0).contains(&apart), "{places:?}");
            }
        }
    }
    bench
        .lines
        .retain(|line| line.point.memory == MemoryKind::Pinned);
    assert!(!bench.to_svg().contains(NOTE));
}

#[test]
fn the_page_says_what_made_it() {
    let (_, html) = check(&bench(measured()), "H200");
    let footer = html.split_once("<footer>").expect("a footer").1;
    for line in [
        "Made by Pinlane 0.1.0, 2026-11-15T10:20:35Z<",
        "Device: NVIDIA H200, CUDA 13.0 (NVIDIA 580.159.03)<",
        "Machine: AMD EPYC 9654 96-Core Processor, 192 CPUs, Debian GNU/Linux 12 (bookworm), Linux ",
    ] {
        assert!(footer.contains(line), "{line}: {footer}");
    }
    let unknown = bench(measured()).to_html(&Environment::default());
    assert!(!unknown.contains("<footer>"));
}
