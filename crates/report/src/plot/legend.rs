//! Names with their marks, in rows, where there is no room beside the lines.

use super::canvas::{Canvas, Drawing};
use super::hue::Hue;
use crate::markup::{escape, length, text_px};

const FONT_PX: f64 = 13.0;
const ROW_PX: f64 = 20.0;
const GAP_PX: f64 = 14.0;
const MARK_PX: f64 = 30.0;

/// A piece of the line with its mark, from `x_px`.
pub(super) fn sample(hue: Hue, x_px: f64, y_px: f64) -> String {
    format!(
        "<path class=\"line l{}\" d=\"M{} {}h24\"/>{}",
        hue.class(),
        length(x_px),
        length(y_px),
        hue.marker(x_px + 12.0, y_px),
    )
}

/// The names in their order, in as many rows as they take.
pub(super) fn draw(canvas: &Canvas, names: &[(Hue, &str)]) -> Drawing {
    let mut svg = String::new();
    let (mut x_px, mut row) = (canvas.left_px, 0.0);
    for (hue, name) in names {
        let width_px = MARK_PX + text_px(name, FONT_PX);
        if x_px > canvas.left_px && x_px + width_px > canvas.right_px() {
            (x_px, row) = (canvas.left_px, row + 1.0);
        }
        let middle_px = row * ROW_PX + ROW_PX / 2.0;
        svg.push_str(&format!(
            "{}<text x=\"{}\" y=\"{}\">{}</text>\n",
            sample(*hue, x_px, middle_px),
            length(x_px + MARK_PX),
            length(middle_px + 4.5),
            escape(name)
        ));
        x_px += width_px + GAP_PX;
    }
    Drawing {
        svg,
        height_px: if names.is_empty() {
            0.0
        } else {
            (row + 1.0) * ROW_PX + 8.0
        },
    }
}
