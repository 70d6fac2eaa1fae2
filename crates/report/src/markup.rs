//! HTML and SVG: escaped text, elements, and estimated text widths.

use std::fmt::{Display, Write};

use crate::text_layout::{display_width, sanitize};

/// Text that is safe between tags and inside quotes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in sanitize(text).chars() {
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

pub(crate) fn paragraph(class: &str, text: &str) -> String {
    format!("<p class=\"{class}\">{}</p>\n", escape(text))
}

/// Estimated width in a common sans-serif font; rather too wide than too narrow.
pub(crate) fn text_px(text: &str, size_px: f64) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.33,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' => 0.41,
        'm' | 'M' | 'W' | '@' | '%' => 0.98,
        'w' => 0.82,
        'A'..='Z' => 0.7,
        c if c.is_ascii() => 0.64,
        c => 0.8 * display_width(c.encode_utf8(&mut [0; 4])) as f64,
    };
    text.chars().map(em).sum::<f64>() * size_px
}

/// A length with at most two decimals: `12`, `0.25`.
pub(crate) fn length(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A point in the data of a path: `12 0.25`.
pub(crate) fn point(x_px: f64, y_px: f64) -> String {
    format!("{} {}", length(x_px), length(y_px))
}

/// SVG elements, one per line. Classes and path data are not escaped; texts are.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct SvgElements(String);

impl SvgElements {
    pub(crate) fn raw(&mut self, markup: impl Display) {
        let _ = write!(self.0, "{markup}");
    }

    pub(crate) fn text(&mut self, class: &str, x_px: f64, y_px: f64, text: &str) {
        let class = match class {
            "" => String::new(),
            class => format!(" class=\"{class}\""),
        };
        let (x, y) = (length(x_px), length(y_px));
        self.raw(format_args!(
            "<text{class} x=\"{x}\" y=\"{y}\">{}</text>\n",
            escape(text)
        ));
    }

    pub(crate) fn path(&mut self, class: &str, data: &str) {
        self.raw(format_args!("<path class=\"{class}\" d=\"{data}\"/>\n"));
    }

    pub(crate) fn circle(&mut self, class: &str, x_px: f64, y_px: f64, radius_px: f64) {
        let (x, y, radius) = (length(x_px), length(y_px), length(radius_px));
        self.raw(format_args!(
            "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>\n"
        ));
    }

    /// A box: left, top, width, height.
    pub(crate) fn rect(&mut self, class: &str, area_px: [f64; 4]) {
        self.raw(format_args!(
            "<rect {}/>\n",
            rect_attributes(class, area_px)
        ));
    }

    /// A box that shows a tooltip.
    pub(crate) fn rect_with_title(&mut self, class: &str, area_px: [f64; 4], title: &str) {
        self.raw(format_args!(
            "<rect {}><title>{}</title></rect>\n",
            rect_attributes(class, area_px),
            escape(title)
        ));
    }

    /// The box that marks a text as simulated or computed.
    pub(crate) fn flag(&mut self, left_px: f64, top_px: f64, width_px: f64) {
        self.raw(format_args!(
            "<rect {} rx=\"4\"/>\n",
            rect_attributes("flag", [left_px, top_px, width_px, 22.0])
        ));
    }

    pub(crate) fn append(&mut self, other: &Self) {
        self.0.push_str(&other.0);
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

fn rect_attributes(class: &str, area_px: [f64; 4]) -> String {
    let [x, y, width, height] = area_px.map(length);
    format!("class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"")
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
