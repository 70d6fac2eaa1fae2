//! Text inside XML and HTML, and how much room it takes.

use crate::timeline::layout::words::{clean, columns};

/// Text that may stand between tags and inside quotes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// About how wide a text is in a common font without serifs, rather too wide than too narrow.
pub(crate) fn text_px(text: &str, size_px: f64) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.33,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' => 0.41,
        'm' | 'M' | 'W' | '@' | '%' => 0.98,
        'w' => 0.82,
        'A'..='Z' => 0.7,
        c if c.is_ascii() => 0.64,
        c => 0.8 * columns(c.encode_utf8(&mut [0; 4])) as f64,
    };
    text.chars().map(em).sum::<f64>() * size_px
}

/// A length with at most two digits behind the point: `12`, `0.25`.
pub(crate) fn length(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_out_of_markup() {
        assert_eq!(
            escape("<b a=\"1\" c='2'>&\u{0}\u{ffff}"),
            "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;  "
        );
    }

    #[test]
    fn lengths_are_short() {
        for (value, text) in [
            (12.0, "12"),
            (0.25, "0.25"),
            (100.0, "100"),
            (1.999, "2"),
            (0.0, "0"),
        ] {
            assert_eq!(length(value), text);
        }
    }
}
