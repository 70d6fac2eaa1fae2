//! Comparisons as pictures and pages.

use pinlane_report::{Compare, LinkBasis, Route};
use roxmltree::Document;

use crate::check_markup::{check_html, check_svg, pictures, texts, tips};
use crate::sample::{compare, environment, measured, simulated};

fn check(compare: &Compare, which: &str) -> (String, String) {
    let (svg, html) = (compare.to_svg(), compare.to_html(&environment()));
    check_svg(&svg, which);
    check_html(&html, which);
    (svg, html)
}

/// Left end and width of each bar.
fn bars(svg: &str) -> Vec<(f64, f64)> {
    let document = Document::parse(svg).expect("XML");
    let bars = document.descendants().filter(|node| {
        let class = node.attribute("class").unwrap_or_default();
        class.starts_with("bar ")
    });
    let number = |text: Option<&str>| text.expect("there").parse().expect("a number");
    bars.map(|bar| (number(bar.attribute("x")), number(bar.attribute("width"))))
        .collect()
}

#[test]
fn bars_are_as_long_as_the_figures_are_large() {
    let compare = compare(measured());
    let (svg, _) = check(&compare, "H200");
    let bars = bars(&svg);
    let rates: Vec<f64> = compare
        .rows
        .iter()
        .flat_map(|row| [row.h2d.gb_per_s, row.d2h.gb_per_s])
        .collect();
    assert_eq!(bars.len(), rates.len());
    let unit = bars[0].1 / rates[0];
    for ((x, width), rate) in bars.iter().zip(&rates) {
        assert_eq!(*x, bars[0].0);
        assert!((width / rate - unit).abs() < 0.01, "{width} {rate}");
    }
}

#[test]
fn the_picture_shows_the_report() {
    let compare = compare(measured());
    let (svg, html) = check(&compare, "H200");
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("compare.svg");
    std::fs::write(path, &svg).expect("the folder is there");
    let texts = texts(&svg);
    for text in [
        "Copies of 256 MiB by kind of host memory",
        "Measured on NVIDIA H200",
        "link limit 57.7 GB/s (PCIe 5.0 ×16)",
        "allocation",
        "write-combined",
        "device to host",
        "55.3 GB/s\u{2002}7.47×",
        "52.3 ms",
    ] {
        assert!(texts.iter().any(|found| found == text), "{text}: {texts:?}");
    }
    let sentence = &compare.advice()[0];
    let shown = texts.join(" ");
    assert!(shown.contains(sentence.as_str()), "{sentence}: {shown}");
    assert!(html.contains(&format!("<p class=\"advice\">{sentence}</p>")));
    assert_eq!(pictures(&html).len(), 2);
    let tips = tips(&html);
    assert_eq!(tips.len(), 12);
    assert_eq!(tips[2]["title"], "pinned, host to device");
    assert_eq!(tips[2]["rows"][0]["cells"][0], "55.3 GB/s");
    assert!(html.contains(
        "<tr><th scope=\"row\">pinned</th><td>55.3<small>54.3–56.3</small></td><td>7.47×</td><td>96%</td>"
    ));
    assert!(svg.contains("prefers-color-scheme:dark") && svg.contains("sans-serif"));
}

#[test]
fn notes_are_on_page_and_picture() {
    let mut compare = compare(measured());
    compare.notes = vec!["express: not measured: a < b".to_owned()];
    let (svg, html) = check(&compare, "notes");
    assert!(html.contains("<li>express: not measured: a &lt; b</li>"));
    assert!(texts(&svg).concat().contains("not measured: a < b"));
}

#[test]
fn an_unknown_link_is_not_called_a_limit() {
    let known = compare(measured());
    let compare = Compare::new(known.origin, known.bytes, 3, None, known.rows).expect("rows");
    assert_eq!(compare.limit.basis, LinkBasis::Fastest);
    let (svg, html) = check(&compare, "unknown link");
    assert!(!svg.contains("link limit") && !html.contains("link limit"));
    assert!(texts(&svg).contains(&"fastest copy 55.4 GB/s".to_owned()));
}

#[test]
fn every_picture_is_marked_as_simulated() {
    let (svg, html) = check(&compare(simulated()), "simulated");
    for picture in pictures(&html).into_iter().chain([svg.as_str()]) {
        let flag = "SIMULATED: sim:pcie3-x16".to_owned();
        assert!(texts(picture).contains(&flag), "{picture}");
    }
    assert!(html.contains("class=\"origin simulated\">SIMULATED"));
}

#[test]
fn both_directions_have_their_own_caption() {
    let svg = compare(measured()).to_svg();
    for route in [Route::H2d, Route::D2h] {
        let captions = texts(&svg);
        let captions = captions.iter().filter(|text| *text == route.words());
        assert_eq!(captions.count(), 6);
    }
}
