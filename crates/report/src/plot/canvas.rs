//! Where a plot is drawn.

use crate::Origin;
use crate::markup::{SvgElements, escape, length, text_px};
use crate::page::Tooltip;
use crate::text_layout::{clip, sanitize};

/// For windows and pictures.
pub(crate) const WIDE: Canvas = Canvas {
    left_px: 0.0,
    width_px: 920.0,
    narrow: false,
    first_tooltip: Some(0),
};

/// For phones.
pub(crate) const NARROW: Canvas = Canvas {
    width_px: 400.0,
    narrow: true,
    ..WIDE
};

/// An area of a page or picture.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Canvas {
    pub(crate) left_px: f64,
    pub(crate) width_px: f64,
    /// Little width: names are above, not beside, what they name.
    pub(crate) narrow: bool,
    /// The page's number of the first tooltip. Without numbers, tooltips are texts in the drawing, which
    /// viewers show on their own.
    first_tooltip: Option<usize>,
}

/// SVG elements and their height.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Drawing {
    pub(crate) svg: SvgElements,
    pub(crate) height_px: f64,
}

impl Canvas {
    /// In a standalone picture with this margin.
    pub(crate) const fn standalone(margin_px: f64) -> Self {
        Self {
            left_px: margin_px,
            first_tooltip: None,
            ..WIDE
        }
    }

    /// With tooltips numbered from `first`.
    pub(crate) fn tooltips_from(self, first: usize) -> Self {
        Self {
            first_tooltip: Some(first),
            ..self
        }
    }

    pub(crate) fn right_px(&self) -> f64 {
        self.left_px + self.width_px
    }

    /// Opens the `index`th part of a plot that has a tooltip; close it with `</g>`.
    pub(super) fn part(&self, class: &str, index: usize, tooltip: &Tooltip) -> String {
        match self.first_tooltip {
            None => {
                let lines: Vec<String> = tooltip.text().lines().map(escape).collect();
                format!("<g class=\"{class}\"><title>{}</title>", lines.join("\n"))
            }
            Some(first) => format!("<g class=\"{class}\" data-tip=\"{}\">", first + index),
        }
    }
}

impl Drawing {
    /// As an element of a page, which scales it.
    pub(crate) fn inline(&self, canvas: &Canvas, class: &str, label: &str) -> String {
        format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
            length(canvas.width_px),
            length(self.height_px),
            escape(label),
            self.svg.as_str()
        )
    }
}

/// The first row of a drawing: marks the plot itself as not measured, so that this survives cropping.
/// Empty for measurements.
pub(super) fn flag_row(origin: &Origin, canvas: &Canvas) -> Drawing {
    let mut drawing = Drawing::default();
    let text = match origin {
        Origin::Measured { .. } => return drawing,
        Origin::Simulated { profile, .. }
        | Origin::Computed {
            profile,
            simulated: true,
            ..
        } => format!("SIMULATED: sim:{profile}"),
        Origin::Computed { profile, .. } => format!("COMPUTED: {profile}"),
    };
    let columns = (canvas.width_px / 9.0).max(10.0) as usize;
    let text = clip(&sanitize(&text), columns, '…');
    let (left_px, svg) = (canvas.left_px, &mut drawing.svg);
    svg.flag(left_px, 1.0, text_px(&text, 13.0) * 1.05 + 16.0);
    svg.text("fig", left_px + 8.0, 16.5, &text);
    drawing.height_px = 28.0;
    drawing
}
