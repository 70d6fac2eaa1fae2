//! What every picture that stands alone begins with.

use super::canvas::{Canvas, Drawing};
use super::style;
use crate::Origin;
use crate::markup::{escape, length, text_px};
use crate::timeline::layout::words::{clean, clip};

/// What [`heading`] takes of the height.
pub(crate) const HEADING_PX: f64 = 90.0;

const TITLE_PX: f64 = 20.0;
const FONT_PX: f64 = 13.0;

/// The opening tag, the name, the style and the background. `</svg>` ends it.
pub(crate) fn opening(title: &str, width_px: f64, height_px: f64, sheet: &str) -> String {
    let (width, height) = (length(width_px), length(height_px));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\">\n\
         <title>{}</title>\n<style>\n{sheet}</style>\n\
         <rect class=\"page\" width=\"100%\" height=\"100%\"/>\n",
        escape(title),
    )
}

/// Title and origin, which stands out where it is not a measurement.
pub(crate) fn heading(title: &str, origin: &Origin, left_px: f64, right_px: f64) -> String {
    let fitting = |text: &str, size_px: f64| {
        let most = (right_px - left_px) / (0.62 * size_px);
        clip(&clean(text), most as usize, '…')
    };
    let title = escape(&fitting(title, TITLE_PX));
    let left = length(left_px);
    let mut head = format!("<text class=\"title\" x=\"{left}\" y=\"38\">{title}</text>\n");
    let line = fitting(&origin.line(), FONT_PX);
    let (x_px, class) = match origin {
        Origin::Measured { .. } => (left_px, "dim"),
        Origin::Simulated { .. } | Origin::Computed { .. } => {
            let width_px = (text_px(&line, FONT_PX) + 16.0).min(right_px - left_px);
            head.push_str(&format!(
                "<rect class=\"flag\" x=\"{left}\" y=\"50\" width=\"{}\" height=\"22\" rx=\"4\"/>\n",
                length(width_px)
            ));
            (left_px + 8.0, "origin")
        }
    };
    head.push_str(&format!(
        "<text class=\"{class}\" x=\"{}\" y=\"65.5\">{}</text>\n",
        length(x_px),
        escape(&line)
    ));
    head
}

/// Between the edges of a [`Stack`] and what it shows.
const MARGIN_PX: f64 = 28.0;

/// Drawings below each other, with headings, as one picture.
pub(crate) struct Stack<'a> {
    title: &'a str,
    body: String,
    height_px: f64,
}

impl<'a> Stack<'a> {
    pub(crate) fn new(title: &'a str, origin: &Origin) -> Self {
        let canvas = Self::CANVAS;
        Self {
            title,
            body: heading(title, origin, canvas.left_px, canvas.right_px()),
            height_px: HEADING_PX,
        }
    }

    /// Where its drawings are made for.
    pub(crate) const CANVAS: Canvas = Canvas::alone(MARGIN_PX);

    /// Text of a class, in as many lines as it takes.
    pub(crate) fn text(&mut self, class: &str, text: &str) {
        let width_px = Self::CANVAS.width_px;
        for line in wrapped(&clean(text), width_px) {
            self.body.push_str(&format!(
                "<text class=\"{class}\" x=\"{}\" y=\"{}\">{}</text>\n",
                length(MARGIN_PX),
                length(self.height_px + 6.0),
                escape(&line)
            ));
            self.height_px += 20.0;
        }
    }

    pub(crate) fn drawing(&mut self, heading: &str, drawing: &Drawing) {
        if !heading.is_empty() {
            self.body.push_str(&format!(
                "<text class=\"head\" x=\"{}\" y=\"{}\">{}</text>\n",
                length(MARGIN_PX),
                length(self.height_px + 22.0),
                escape(heading)
            ));
            self.height_px += 34.0;
        }
        self.body.push_str(&drawing.moved(self.height_px));
        self.height_px += drawing.height_px + 14.0;
    }

    pub(crate) fn finish(self) -> String {
        let width_px = Self::CANVAS.right_px() + MARGIN_PX;
        let opening = opening(self.title, width_px, self.height_px + 8.0, &style::sheet());
        format!("{opening}{}</svg>\n", self.body)
    }
}

/// Cut at spaces into lines that fit; a word that is too long for a line is clipped.
fn wrapped(text: &str, width_px: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let word = clip(word, (width_px / FONT_PX) as usize, '…');
        match lines.last_mut() {
            Some(line) if text_px(line, FONT_PX) + text_px(&word, FONT_PX) + 5.0 <= width_px => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}
