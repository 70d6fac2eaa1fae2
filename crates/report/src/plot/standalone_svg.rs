//! Standalone SVG files.

use super::canvas::{Canvas, Drawing};
use super::stylesheet::stylesheet;
use crate::Origin;
use crate::markup::{SvgElements, escape, length, text_px};
use crate::text_layout::{clip, sanitize, wrap_where};

/// Height of [`heading`].
pub(crate) const HEADING_PX: f64 = 90.0;

const TITLE_PX: f64 = 20.0;
const FONT_PX: f64 = 13.0;
const MARGIN_PX: f64 = 28.0;

/// A whole SVG file: title, style, background and content.
pub(crate) fn document(
    title: &str,
    size_px: (f64, f64),
    style: &str,
    content: &SvgElements,
) -> String {
    let (width, height) = (length(size_px.0), length(size_px.1));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\">\n\
         <title>{}</title>\n<style>\n{style}</style>\n\
         <rect class=\"page\" width=\"100%\" height=\"100%\"/>\n{}</svg>\n",
        escape(title),
        content.as_str()
    )
}

/// Title and origin, which is highlighted unless it is a measurement.
pub(crate) fn heading(title: &str, origin: &Origin, left_px: f64, right_px: f64) -> SvgElements {
    let fitting = |text: &str, size_px: f64| {
        let columns = (right_px - left_px) / (0.62 * size_px);
        clip(&sanitize(text), columns as usize, '…')
    };
    let mut svg = SvgElements::default();
    svg.text("title", left_px, 38.0, &fitting(title, TITLE_PX));
    let line = fitting(&origin.line(), FONT_PX);
    if origin.is_measured() {
        svg.text("dim", left_px, 65.5, &line);
    } else {
        let width_px = (text_px(&line, FONT_PX) + 16.0).min(right_px - left_px);
        svg.flag(left_px, 50.0, width_px);
        svg.text("origin", left_px + 8.0, 65.5, &line);
    }
    svg
}

/// Drawings below each other, with headings and texts.
pub(crate) struct Picture<'a> {
    title: &'a str,
    body: SvgElements,
    height_px: f64,
}

impl<'a> Picture<'a> {
    /// Canvas of its drawings.
    pub(crate) const CANVAS: Canvas = Canvas::standalone(MARGIN_PX);

    pub(crate) fn new(title: &'a str, origin: &Origin) -> Self {
        Self {
            title,
            body: heading(title, origin, MARGIN_PX, Self::CANVAS.right_px()),
            height_px: HEADING_PX,
        }
    }

    /// Paragraphs of a class.
    pub(crate) fn texts(&mut self, class: &str, texts: &[String]) {
        let width_px = Self::CANVAS.width_px;
        let fits = |line: &str| text_px(line, FONT_PX) <= width_px;
        for mut line in texts
            .iter()
            .flat_map(|text| wrap_where(&sanitize(text), fits))
        {
            if !fits(&line) {
                line = clip(&line, (width_px / FONT_PX) as usize, '…');
            }
            self.line(class, 6.0, &line);
            self.height_px += 20.0;
        }
    }

    pub(crate) fn drawing(&mut self, heading: &str, drawing: &Drawing) {
        if !heading.is_empty() {
            self.line("head", 22.0, heading);
            self.height_px += 34.0;
        }
        let down = length(self.height_px);
        self.body
            .raw(format_args!("<g transform=\"translate(0 {down})\">\n"));
        self.body.append(&drawing.svg);
        self.body.raw("</g>\n");
        self.height_px += drawing.height_px + 14.0;
    }

    fn line(&mut self, class: &str, down_px: f64, text: &str) {
        let y_px = self.height_px + down_px;
        self.body.text(class, MARGIN_PX, y_px, text);
    }

    pub(crate) fn finish(self) -> String {
        let width_px = Self::CANVAS.right_px() + MARGIN_PX;
        let size_px = (width_px, self.height_px + 8.0);
        document(self.title, size_px, &stylesheet(), &self.body)
    }
}
