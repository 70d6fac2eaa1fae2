//! Where a plot is drawn.

use crate::Origin;
use crate::markup::{escape, length, text_px};
use crate::page::Tip;
use crate::timeline::layout::words::{clean, clip};

/// For windows and pictures.
pub(crate) const WIDE: Canvas = Canvas {
    left_px: 0.0,
    width_px: 920.0,
    narrow: false,
    tips: Tips::Numbers(0),
};

/// For phones.
pub(crate) const NARROW: Canvas = Canvas {
    width_px: 400.0,
    narrow: true,
    ..WIDE
};

/// A place on a page or a picture.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Canvas {
    pub(crate) left_px: f64,
    pub(crate) width_px: f64,
    /// Little width: names stand above what they name, not beside it.
    pub(crate) narrow: bool,
    pub(crate) tips: Tips,
}

/// How parts of a plot tell more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tips {
    /// As text in the drawing, which viewers show by themselves.
    Texts,
    /// As numbers, from this one, of the tips that a page brings.
    Numbers(usize),
}

/// SVG elements and the height that they take, from 0.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Drawing {
    pub(crate) svg: String,
    pub(crate) height_px: f64,
}

impl Canvas {
    /// In a picture that stands alone, at this distance from its edges.
    pub(crate) const fn alone(margin_px: f64) -> Self {
        Self {
            left_px: margin_px,
            tips: Tips::Texts,
            ..WIDE
        }
    }

    /// With tips numbered from here.
    pub(crate) fn tips_from(self, first: usize) -> Self {
        Self {
            tips: Tips::Numbers(first),
            ..self
        }
    }

    pub(crate) fn right_px(&self) -> f64 {
        self.left_px + self.width_px
    }

    /// The opening of a part that tells more; `</g>` ends it. The part is the `index`th of its plot.
    pub(super) fn part(&self, class: &str, index: usize, tip: &Tip) -> String {
        match self.tips {
            Tips::Texts => format!(
                "<g class=\"{class}\"><title>{}</title>",
                escape_lines(&tip.text())
            ),
            Tips::Numbers(first) => {
                format!("<g class=\"{class}\" data-tip=\"{}\">", first + index)
            }
        }
    }
}

/// Escaped, with its line ends kept.
fn escape_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(escape).collect();
    lines.join("\n")
}

impl Drawing {
    /// As an element of a page, which scales it to its place.
    pub(crate) fn inline(&self, canvas: &Canvas, class: &str, label: &str) -> String {
        format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
            length(canvas.width_px),
            length(self.height_px),
            escape(label),
            self.svg
        )
    }

    /// So much further down.
    pub(crate) fn moved(&self, down_px: f64) -> String {
        let down = length(down_px);
        format!("<g transform=\"translate(0 {down})\">\n{}</g>\n", self.svg)
    }
}

/// Says on the plot itself that it shows no measurement, so that it stays true when cut out.
pub(super) fn flag(origin: &Origin, left_px: f64, top_px: f64, room_px: f64) -> String {
    let text = match origin {
        Origin::Measured { .. } => return String::new(),
        Origin::Simulated { profile, .. }
        | Origin::Computed {
            profile,
            simulated: true,
            ..
        } => format!("SIMULATED: sim:{profile}"),
        Origin::Computed { profile, .. } => format!("COMPUTED: {profile}"),
    };
    let text = clip(&clean(&text), (room_px / 9.0).max(10.0) as usize, '…');
    format!(
        "<rect class=\"flag\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"22\" rx=\"4\"/>\
         <text class=\"fig\" x=\"{}\" y=\"{}\">{}</text>\n",
        length(left_px),
        length(top_px),
        length(text_px(&text, 13.0) * 1.05 + 16.0),
        length(left_px + 8.0),
        length(top_px + 15.5),
        escape(&text),
    )
}
