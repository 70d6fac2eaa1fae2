//! The page as a file; `in_browser.rs` opens it in a browser.

use pinlane_report::Origin;
use pinlane_report::timeline::{Chart, Html, Timeline};
use serde_json::Value;

use crate::{export, sample};

/// The embedded data; nothing in it breaks out of its element.
pub fn check(html: &str, chart: &Chart, which: &str) {
    assert_eq!(html.matches("<script").count(), 2, "{which}");
    assert_eq!(html.matches("</script").count(), 2, "{which}");
    assert!(!html.contains("<!-- ]]>"), "{which}");
    for fetched in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!html.contains(fetched), "{which}: {fetched}");
    }
    let data = data(html);
    let data: Value = serde_json::from_str(data).unwrap_or_else(|error| panic!("{which}: {error}"));
    let runs = data["timelines"].as_array().expect("a list");
    let rows = runs
        .iter()
        .flat_map(|run| run["rows"].as_array().expect("a list"));
    let spans: usize = rows
        .map(|row| row["spans"].as_array().expect("a list").len())
        .sum();
    let expected: usize = chart.timelines.iter().map(|run| run.spans().len()).sum();
    assert_eq!(spans, expected, "{which}");
    let simulated = matches!(chart.origin, Origin::Simulated { .. });
    assert_eq!(
        html.contains("class=\"origin simulated\">SIMULATED"),
        simulated,
        "{which}"
    );
}

/// The data that the page draws.
fn data(html: &str) -> &str {
    let start = "<script type=\"application/json\" id=\"data\">";
    let (_, rest) = html.split_once(start).expect("the data");
    rest.split_once("</script>").expect("its end").0
}

#[test]
fn the_table_has_the_totals_for_those_who_do_not_see_the_picture() {
    let html = export(&Html::default(), &sample::small());
    check(&html, &sample::small(), "small");
    assert!(html.contains(
        "<tr><th scope=\"row\">Two chunks</th><td>8.00 µs</td><td>1.50x</td>\
         <td>0%</td><td>50%</td><td>50%</td><td>50%</td></tr>"
    ));
    assert!(html.contains("<meta name=\"viewport\""));
    assert!(html.contains("<title>Copies and a kernel</title>"));
}

#[test]
fn labels_are_written_once() {
    let chart = crate::svg::crowded();
    let html = export(&Html::default(), &chart);
    check(&html, &chart, "crowded");
    assert_eq!(html.matches("piece 17 of a long series").count(), 1);
    assert!(html.len() < 5 << 20, "{} bytes", html.len());
}

#[test]
fn a_real_device_is_not_flagged() {
    let runs: Vec<Timeline> = sample::small().timelines;
    let chart = Chart::new("Real", Origin::new("NVIDIA H200", None), runs);
    let html = export(&Html::default(), &chart);
    assert!(html.contains("<p class=\"origin measured\">Measured on NVIDIA H200</p>"));
    assert!(!html.contains("SIMULATED"));
}
