//! The chart in the terminal.

use pinlane_report::Origin;
use pinlane_report::timeline::{Chart, Text};

use crate::{export, sample};

#[test]
fn a_small_chart_gives_the_golden_text() {
    let text = export(&Text::default(), &sample::small());
    assert_eq!(text, include_str!("golden-small.txt"));
}

#[test]
fn plain_ascii_gives_the_golden_text() {
    let ascii = Text {
        width: 60,
        ascii: true,
        ..Text::default()
    };
    let text = export(&ascii, &sample::small());
    assert!(text.is_ascii());
    assert_eq!(text, include_str!("golden-small-ascii.txt"));
}

#[test]
fn five_ways_give_the_golden_text() {
    let wide = Text {
        width: 100,
        ..Text::default()
    };
    let text = export(&wide, &sample::five());
    assert_eq!(text, include_str!("golden-five.txt"));
}

#[test]
fn a_long_title_goes_on_below() {
    let mut chart = sample::small();
    chart.title = "0123456789 ".repeat(9);
    let text = export(&Text::default(), &chart);
    let lines: Vec<&str> = text.lines().take(2).collect();
    assert_eq!(lines[0].len(), 7 * 11 - 1);
    assert_eq!(lines[1], "0123456789 0123456789");
}

#[test]
fn colours_add_nothing_but_colours() {
    let colour = Text {
        colour: true,
        ..Text::default()
    };
    let coloured = export(&colour, &sample::five());
    assert!(coloured.contains("\u{1b}[38;5;"));
    let plain = export(&Text::default(), &sample::five());
    assert!(!plain.contains('\u{1b}'));
    assert_eq!(without_escapes(&coloured), plain);
}

#[test]
fn a_narrow_chart_keeps_every_row() {
    let narrow = Text {
        width: 0,
        ..Text::default()
    };
    let text = export(&narrow, &sample::five());
    for line in text.lines() {
        assert!(line.chars().count() <= Text::WIDTH_MIN, "{line}");
    }
    assert_eq!(text.matches("D2H").count(), 5);
    assert!(text.contains("SIMULATED: sim:pcie3-x16"));
}

#[test]
fn a_real_device_is_named() {
    let chart = Chart::new("Nothing ran", Origin::new("NVIDIA H200", None), Vec::new());
    let text = export(&Text::default(), &chart);
    assert_eq!(text, "Nothing ran\nMeasured on NVIDIA H200\n\n");
}

/// The text without ANSI escape sequences.
pub fn without_escapes(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = after.split_once('m').expect("each sequence ends in m").1;
    }
    plain + rest
}
