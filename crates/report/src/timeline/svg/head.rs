//! Title, origin and legend.

use std::io;

use super::bars::swatch;
use super::page::{LEFT_PX, RIGHT_PX};
use crate::markup::{length, text_px};
use crate::plot::picture;
use crate::timeline::{Chart, SpanKind};

const SWATCH_PX: f64 = 12.0;
const LEGEND_LINE_PX: f64 = 22.0;
/// Between an entry of the legend and the next.
const LEGEND_GAP_PX: f64 = 18.0;
const FONT_PX: f64 = 13.0;

/// Draws the head; what follows begins at the height that is returned.
pub(super) fn write(chart: &Chart, out: &mut dyn io::Write) -> io::Result<f64> {
    out.write_all(picture::heading(&chart.title, &chart.origin, LEFT_PX, RIGHT_PX).as_bytes())?;
    write_legend(chart, picture::HEADING_PX, out)
}

fn write_legend(chart: &Chart, top_px: f64, out: &mut dyn io::Write) -> io::Result<f64> {
    let kinds = chart.kinds();
    if kinds.is_empty() {
        return Ok(top_px);
    }
    let entries = kinds.into_iter().map(|kind| (Some(kind), kind.name()));
    let (mut x_px, mut y_px) = (LEFT_PX, top_px);
    for (kind, text) in entries.chain([(None, "shades tell chunks apart")]) {
        let swatch_px = kind.map_or(0.0, |_| 2.0 * SWATCH_PX + 7.0);
        let width_px = swatch_px + text_px(text, FONT_PX);
        if x_px > LEFT_PX && x_px + width_px > RIGHT_PX {
            (x_px, y_px) = (LEFT_PX, y_px + LEGEND_LINE_PX);
        }
        write_entry(kind, text, (x_px, y_px), swatch_px, out)?;
        x_px += width_px + LEGEND_GAP_PX;
    }
    Ok(y_px + LEGEND_LINE_PX + 8.0)
}

fn write_entry(
    kind: Option<SpanKind>,
    text: &str,
    (x_px, y_px): (f64, f64),
    swatch_px: f64,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let class = if kind.is_some() { "kind" } else { "dim" };
    writeln!(
        out,
        r#"{}<text class="{class}" x="{}" y="{}">{text}</text>"#,
        kind.map_or_else(String::new, |kind| swatch(kind, x_px, y_px, SWATCH_PX)),
        length(x_px + swatch_px),
        length(y_px + 11.0),
    )
}
