//! Bars of one sub-row.

use std::io;

use super::style::class;
use crate::markup::{escape, length, text_px};
use crate::timeline::SpanKind;
use crate::timeline::layout::rows::Placed;
use crate::timeline::layout::shade::Shade;
use crate::timeline::layout::words::{clean, describe, duration};

/// Bars under this width may be drawn together with their neighbours.
const FINE_PX: f64 = 1.0;
/// The narrowest bar.
const NARROWEST_PX: f64 = 0.75;
/// Size of the text inside bars.
const FONT_PX: f64 = 11.0;
/// The lowest bar that has text in it.
const TEXT_PX: f64 = 13.0;

/// Where a sub-row is, and how time becomes a place.
#[derive(Clone, Copy)]
pub(super) struct Lane {
    pub(super) left_px: f64,
    pub(super) px_per_ns: f64,
    pub(super) top_px: f64,
    pub(super) height_px: f64,
}

/// One bar: a span, or several too short to be told apart.
struct Bar<'a> {
    first: Placed<'a>,
    count: usize,
    start_ns: u64,
    end_ns: u64,
}

impl Lane {
    pub(super) fn write(&self, spans: &[Placed<'_>], out: &mut dyn io::Write) -> io::Result<()> {
        // Numbers of one row are shown alike, so that they do not end in the middle of it.
        let last = spans.iter().filter_map(|placed| placed.span.chunk).max();
        let number_px = last.map_or(0.0, |chunk| text_px(&chunk.to_string(), FONT_PX));
        for bar in self.bars(spans) {
            self.write_bar(&bar, number_px, out)?;
        }
        Ok(())
    }

    fn width_px(&self, ns: u64) -> f64 {
        ns as f64 * self.px_per_ns
    }

    fn bars<'a>(&self, spans: &[Placed<'a>]) -> Vec<Bar<'a>> {
        let mut bars: Vec<Bar<'a>> = Vec::new();
        for placed in spans {
            let span = placed.span;
            let fine = |ns: u64| self.width_px(ns) < FINE_PX;
            match bars.last_mut() {
                Some(bar)
                    if bar.first.span.kind == span.kind
                        && fine(span.duration_ns())
                        && fine(span.end_ns - bar.start_ns) =>
                {
                    bar.count += 1;
                    bar.end_ns = span.end_ns;
                }
                _ => bars.push(Bar {
                    first: *placed,
                    count: 1,
                    start_ns: span.start_ns,
                    end_ns: span.end_ns,
                }),
            }
        }
        bars
    }

    fn write_bar(&self, bar: &Bar<'_>, number_px: f64, out: &mut dyn io::Write) -> io::Result<()> {
        let kind = bar.first.span.kind;
        let class = class(kind, bar.first.shade);
        let x_px = self.left_px + self.width_px(bar.start_ns);
        let width_px = self.width_px(bar.end_ns - bar.start_ns).max(NARROWEST_PX);
        let (top_px, height_px) = self.extent(kind);
        write!(
            out,
            r#"<rect class="{class}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>"#,
            length(x_px),
            length(top_px),
            length(width_px),
            length(height_px),
            escape(&tooltip(bar)),
        )?;
        if let Some(text) = self.inner_text(bar, number_px, width_px, height_px) {
            write!(
                out,
                r#"<text class="mid small i{class}" x="{}" y="{}" pointer-events="none">{}</text>"#,
                length(x_px + width_px / 2.0),
                length(top_px + height_px / 2.0 + 4.0),
                escape(&text),
            )?;
        }
        writeln!(out)
    }

    /// Waiting is a thin line, everything else fills the sub-row.
    fn extent(&self, kind: SpanKind) -> (f64, f64) {
        if kind == SpanKind::Wait {
            let height_px = self.height_px / 4.0;
            (self.top_px + (self.height_px - height_px) / 2.0, height_px)
        } else {
            (self.top_px, self.height_px)
        }
    }

    /// The label if there is room for it, else the chunk's number.
    fn inner_text(
        &self,
        bar: &Bar<'_>,
        number_px: f64,
        width_px: f64,
        height_px: f64,
    ) -> Option<String> {
        if bar.count > 1 || height_px < TEXT_PX {
            return None;
        }
        let span = bar.first.span;
        let label = clean(span.label.trim());
        if !label.is_empty() && text_px(&label, FONT_PX) + 6.0 <= width_px {
            return Some(label);
        }
        let chunk = span.chunk.filter(|_| number_px + 1.5 <= width_px);
        chunk.map(|chunk| chunk.to_string())
    }
}

fn tooltip(bar: &Bar<'_>) -> String {
    let start = duration(bar.start_ns);
    let length = duration(bar.end_ns - bar.start_ns);
    if bar.count == 1 {
        format!("{}: {length} at {start}", describe(bar.first.span))
    } else {
        let kind = bar.first.span.kind.name();
        format!("{} × {kind}: within {length} at {start}", bar.count)
    }
}

/// What a legend shows of a kind: its two shades side by side.
pub(super) fn swatch(kind: SpanKind, x_px: f64, top_px: f64, size_px: f64) -> String {
    let mut swatch = String::new();
    for (index, shade) in [Shade::Strong, Shade::Soft].into_iter().enumerate() {
        let x_px = x_px + index as f64 * size_px;
        swatch.push_str(&format!(
            r#"<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>"#,
            class(kind, shade),
            length(x_px),
            length(top_px),
            length(size_px),
            length(size_px),
        ));
    }
    swatch
}
