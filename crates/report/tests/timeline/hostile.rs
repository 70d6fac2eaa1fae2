//! Extreme and hostile charts give valid output in every format.

use pinlane_report::timeline::{Html, Svg, Text, Trace, Track};
use serde_json::Value;

use crate::random_charts::{Random, chart};
use crate::text::without_escapes;
use crate::{check_trace, export, html, svg};

const SEEDS: u64 = 400;

#[test]
fn text_is_never_wider_than_asked() {
    for seed in 0..SEEDS {
        let random = &mut Random::new(seed);
        let chart = chart(random);
        for (colour, ascii) in [(false, false), (true, false), (false, true), (true, true)] {
            let width = random.up_to(160) as usize;
            let text = Text {
                width,
                colour,
                ascii,
            };
            let page = export(&text, &chart);
            let page = without_escapes(&page);
            assert!(!ascii || page.is_ascii(), "seed {seed}");
            for line in page.lines() {
                let columns = columns(line);
                let most = width.max(Text::WIDTH_MIN);
                assert!(columns <= most, "seed {seed}: {columns} > {most}: {line:?}");
                assert!(!line.chars().any(char::is_control), "seed {seed}: {line:?}");
            }
        }
    }
}

/// Columns by the wide blocks of Unicode, independent of the exporter.
fn columns(line: &str) -> usize {
    let wide = |c: char| {
        matches!(c, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}'
            | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}'
            | '\u{1f300}'..='\u{1faff}' | '\u{20000}'..='\u{3fffd}')
    };
    line.chars().map(|c| if wide(c) { 2 } else { 1 }).sum()
}

#[test]
fn json_is_json() {
    for seed in 0..SEEDS {
        let chart = chart(&mut Random::new(seed));
        let json: Value = serde_json::from_str(&chart.to_json())
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let runs = json["timelines"].as_array().expect("a list");
        assert_eq!(runs.len(), chart.timelines.len(), "seed {seed}");
    }
}

#[test]
fn svg_is_xml_and_shows_each_run() {
    for seed in 0..SEEDS {
        let chart = chart(&mut Random::new(seed));
        svg::check(&export(&Svg, &chart), &chart, &format!("seed {seed}"));
    }
}

#[test]
fn html_keeps_its_script_closed() {
    for seed in 0..SEEDS {
        let chart = chart(&mut Random::new(seed));
        html::check(
            &export(&Html::default(), &chart),
            &chart,
            &format!("seed {seed}"),
        );
    }
}

#[test]
fn traces_follow_the_rules() {
    for seed in 0..SEEDS {
        let chart = chart(&mut Random::new(seed));
        check_trace::check(&export(&Trace, &chart), &chart)
            .unwrap_or_else(|reason| panic!("seed {seed}: {reason}"));
    }
}

#[test]
fn busy_time_and_gaps_are_the_whole_run() {
    let mut tracks_seen = 0;
    for seed in 0..SEEDS {
        for run in &chart(&mut Random::new(seed)).timelines {
            for track in run.tracks().into_iter().chain([Track::HostThread(9)]) {
                let gaps = run.gaps(track);
                let idle_ns: u64 = gaps.iter().map(|gap| gap.end_ns - gap.start_ns).sum();
                assert_eq!(run.busy_ns(track) + idle_ns, run.total_ns(), "seed {seed}");
                assert!((0.0..=1.0).contains(&run.busy_share(track)), "seed {seed}");
                tracks_seen += 1;
            }
        }
    }
    assert!(tracks_seen > 1000);
}
