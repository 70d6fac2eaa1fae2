//! Checks of every picture and page.

use roxmltree::{Document, Node};
use serde_json::Value;

/// Well-formed, fetches nothing, and everything is a number inside the picture.
pub fn check_svg(svg: &str, which: &str) {
    let document = Document::parse(svg).unwrap_or_else(|error| panic!("{which}: {error}\n{svg}"));
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "svg", "{which}");
    assert!(!svg.contains("href"), "{which}: nothing is fetched");
    let view = root.attribute("viewBox").expect("a view box");
    let view: Vec<f64> = view.split(' ').map(number).collect();
    let inside = |value: f64, most: f64| (-0.01..=most + 0.01).contains(&value);
    for node in root.descendants().filter(Node::is_element) {
        for (name, most) in [
            ("x", view[2]),
            ("cx", view[2]),
            ("y", view[3]),
            ("cy", view[3]),
        ] {
            if let Some(value) = node.attribute(name) {
                assert!(inside(number(value), most), "{which}: {name} of {node:?}");
            }
        }
        if node.has_tag_name("rect") && node.attribute("class") != Some("page") {
            let [x, width] = ["x", "width"].map(|name| number(node.attribute(name).expect(name)));
            assert!(
                width >= 0.0 && inside(x + width, view[2]),
                "{which}: {node:?}"
            );
        }
        if let Some(path) = node.attribute("d") {
            let is_path = |c: char| c.is_ascii_digit() || "MLHVZhv .-".contains(c);
            assert!(path.chars().all(is_path), "{which}: {path}");
        }
    }
}

fn number(text: &str) -> f64 {
    let value: f64 = text.parse().unwrap_or_else(|_| panic!("{text:?}"));
    assert!(value.is_finite(), "{text}");
    value
}

/// Texts of a picture, in order.
pub fn texts(svg: &str) -> Vec<String> {
    let document = Document::parse(svg).expect("XML");
    let texts = document
        .descendants()
        .filter(|node| node.has_tag_name("text"));
    let all = |node: Node<'_, '_>| {
        let parts = node.descendants().filter(Node::is_text);
        parts.filter_map(|part| part.text()).collect()
    };
    texts.map(all).collect()
}

/// Nothing breaks out of its element, nothing is loaded, each picture is valid and each of its
/// parts has its tooltip.
pub fn check_html(html: &str, which: &str) {
    assert_eq!(html.matches("<script").count(), 2, "{which}");
    assert_eq!(html.matches("</script").count(), 2, "{which}");
    assert_eq!(html.matches("<style").count(), 1, "{which}");
    for fetched in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!html.contains(fetched), "{which}: {fetched}");
    }
    let tips = tips(html);
    for svg in pictures(html) {
        check_svg(svg, which);
        for part in svg.split("data-tip=\"").skip(1) {
            let index: usize = part
                .split_once('"')
                .expect("a quote")
                .0
                .parse()
                .expect("a number");
            assert!(tips.get(index).is_some(), "{which}: tip {index}");
        }
    }
}

/// The drawings of a page.
pub fn pictures(html: &str) -> Vec<&str> {
    let starts = html.match_indices("<svg ").map(|(start, _)| start);
    starts
        .map(|start| {
            let end = html[start..].find("</svg>").expect("its end") + "</svg>".len();
            &html[start..start + end]
        })
        .collect()
}

pub fn tips(html: &str) -> Vec<Value> {
    let start = "<script type=\"application/json\" id=\"data\">";
    let (_, rest) = html.split_once(start).expect("the data");
    let data = rest.split_once("</script>").expect("its end").0;
    let data: Value = serde_json::from_str(data).expect("JSON");
    data["tips"].as_array().expect("a list").clone()
}
