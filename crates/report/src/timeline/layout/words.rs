//! Text from outside, made fit to be shown, and figures as people read them.

use crate::timeline::Span;

/// Without characters that move the cursor, turn the direction of text or cannot be seen.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if is_visible(c) { c } else { ' ' })
        .collect()
}

fn is_visible(c: char) -> bool {
    !c.is_control()
        && !matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{fffe}'..='\u{ffff}' | '\u{e0000}'..='\u{e0fff}')
}

/// Columns of a terminal that a character takes at most.
fn columns_of(c: char) -> usize {
    match c {
        '\u{0}'..='\u{10ff}' => 1,
        // Punctuation, arrows, lines and blocks.
        '\u{2010}'..='\u{2027}' | '\u{2190}'..='\u{21ff}' | '\u{2500}'..='\u{259f}' => 1,
        _ => 2,
    }
}

/// Columns of a terminal that a text takes at most.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// The text, or its beginning with `mark` behind it, in at most `most` columns.
pub(crate) fn clip(text: &str, most: usize, mark: char) -> String {
    if columns(text) <= most {
        return text.to_owned();
    }
    let Some(room) = most.checked_sub(columns_of(mark)) else {
        return String::new();
    };
    let mut clipped = String::new();
    let mut taken = 0;
    for c in text.chars() {
        taken += columns_of(c);
        if taken > room {
            break;
        }
        clipped.push(c);
    }
    while clipped.ends_with(' ') {
        clipped.pop();
    }
    clipped.push(mark);
    clipped
}

/// A time with three digits that count: `850 ns`, `12.3 µs`, `1.00 s`.
pub(crate) fn duration(ns: u64) -> String {
    // What would be rounded to 1000 goes into the next unit.
    let (unit_ns, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..999_500 => (1e3, "µs"),
        999_500..999_500_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", three_digits(ns as f64 / unit_ns))
}

/// A number of bytes with three digits that count: `512 B`, `1.50 MiB`.
pub(crate) fn roughly(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", three_digits(value), UNITS[unit])
}

/// `1.25x`, and an empty text where there is no speed-up.
pub(crate) fn times(speedup: Option<f64>) -> String {
    speedup.map_or_else(String::new, |speedup| {
        if speedup < 1e6 {
            format!("{speedup:.2}x")
        } else {
            format!("{speedup:.1e}x")
        }
    })
}

/// A share of the whole: `87%`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

/// What a span is, without its times: label, kind, chunk, stream, bytes, rate.
pub(crate) fn describe(span: &Span) -> String {
    let mut parts = Vec::new();
    if !span.label.is_empty() {
        parts.push(clip(&clean(&span.label), 80, '…'));
    }
    parts.push(span.kind.name().to_owned());
    if let Some(chunk) = span.chunk {
        parts.push(format!("chunk {chunk}"));
    }
    if let Some(stream) = span.stream {
        parts.push(format!("stream {stream}"));
    }
    if span.bytes > 0 {
        parts.push(roughly(span.bytes));
    }
    if let Some(rate) = span.gb_per_s() {
        parts.push(format!("{} GB/s", three_digits(rate)));
    }
    parts.join(", ")
}

fn three_digits(value: f64) -> String {
    let decimals = if value < 9.995 {
        2
    } else if value < 99.95 {
        1
    } else {
        0
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_keep_three_digits() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (9_996, "10.0 µs"),
            (24_512_345, "24.5 ms"),
            (999_600, "1.00 ms"),
            (61_000_000_000, "61.0 s"),
        ] {
            assert_eq!(duration(ns), text);
        }
    }

    #[test]
    fn bytes_keep_three_digits() {
        for (bytes, text) in [
            (1023, "1023 B"),
            (1 << 20, "1.00 MiB"),
            ((1 << 20) - 1, "1.00 MiB"),
            (16 << 20, "16.0 MiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(roughly(bytes), text);
        }
    }

    #[test]
    fn clipped_text_fits_and_says_so() {
        assert_eq!(clip("planned", 7, '…'), "planned");
        assert_eq!(clip("planned pipeline", 9, '…'), "planned…");
        assert_eq!(clip("漢字漢字", 5, '…'), "漢字…");
        assert_eq!(clip("abc", 0, '…'), "");
        assert_eq!(clean("a\u{1b}[2J\u{202e}b\n"), "a [2J b ");
    }
}
