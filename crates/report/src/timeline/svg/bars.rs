//! Bars of one lane.

use super::class;
use crate::format::{duration, rounded_size, three_digits};
use crate::markup::{SvgElements, escape, length, text_px};
use crate::text_layout::{clip, sanitize};
use crate::timeline::rows::ShadedSpan;
use crate::timeline::{Span, SpanKind};

/// Bars narrower than this may be drawn together with their neighbours.
const FINE_PX: f64 = 1.0;
const BAR_MIN_PX: f64 = 0.75;
const FONT_PX: f64 = 11.0;
const TEXT_MIN_PX: f64 = 13.0;

/// Where a lane is, and its time scale.
#[derive(Clone, Copy)]
pub(super) struct SvgLane {
    pub(super) left_px: f64,
    pub(super) px_per_ns: f64,
    pub(super) top_px: f64,
    pub(super) height_px: f64,
}

/// A span, or several that are too short to distinguish.
struct SpanBar<'a> {
    first: ShadedSpan<'a>,
    count: usize,
    start_ns: u64,
    end_ns: u64,
}

impl SvgLane {
    pub(super) fn draw(&self, spans: &[ShadedSpan<'_>], svg: &mut SvgElements) {
        // Chunk numbers of a row are shown either all or not at all.
        let last = spans.iter().filter_map(|shaded| shaded.span.chunk).max();
        let number_px = last.map_or(0.0, |chunk| text_px(&chunk.to_string(), FONT_PX));
        for bar in self.bars(spans) {
            self.draw_bar(&bar, number_px, svg);
        }
    }

    fn width_px(&self, ns: u64) -> f64 {
        ns as f64 * self.px_per_ns
    }

    fn bars<'a>(&self, spans: &[ShadedSpan<'a>]) -> Vec<SpanBar<'a>> {
        let mut bars: Vec<SpanBar<'a>> = Vec::new();
        for shaded in spans {
            let span = shaded.span;
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
                _ => bars.push(SpanBar {
                    first: *shaded,
                    count: 1,
                    start_ns: span.start_ns,
                    end_ns: span.end_ns,
                }),
            }
        }
        bars
    }

    fn draw_bar(&self, bar: &SpanBar<'_>, number_px: f64, svg: &mut SvgElements) {
        let kind = bar.first.span.kind;
        let class = class(kind, bar.first.shade);
        let x_px = self.left_px + self.width_px(bar.start_ns);
        let width_px = self.width_px(bar.end_ns - bar.start_ns).max(BAR_MIN_PX);
        let (top_px, height_px) = self.extent(kind);
        let area_px = [x_px, top_px, width_px, height_px];
        svg.rect_with_title(&class, area_px, &tooltip(bar));
        if let Some(text) = inner_text(bar, number_px, width_px, height_px) {
            svg.raw(format_args!(
                r#"<text class="mid small i{class}" x="{}" y="{}" pointer-events="none">{}</text>"#,
                length(x_px + width_px / 2.0),
                length(top_px + height_px / 2.0 + 4.0),
                escape(&text),
            ));
        }
    }

    /// Top and height: waiting is a thin line, everything else fills the lane.
    fn extent(&self, kind: SpanKind) -> (f64, f64) {
        if kind != SpanKind::Wait {
            return (self.top_px, self.height_px);
        }
        let height_px = self.height_px / 4.0;
        (self.top_px + (self.height_px - height_px) / 2.0, height_px)
    }
}

/// The label if it fits, else the number of the chunk.
fn inner_text(bar: &SpanBar<'_>, number_px: f64, width_px: f64, height_px: f64) -> Option<String> {
    if bar.count > 1 || height_px < TEXT_MIN_PX {
        return None;
    }
    let span = bar.first.span;
    let label = sanitize(span.label.trim());
    if !label.is_empty() && text_px(&label, FONT_PX) + 6.0 <= width_px {
        return Some(label);
    }
    let chunk = span.chunk.filter(|_| number_px + 1.5 <= width_px);
    chunk.map(|chunk| chunk.to_string())
}

fn tooltip(bar: &SpanBar<'_>) -> String {
    let start = duration(bar.start_ns);
    let length = duration(bar.end_ns - bar.start_ns);
    if bar.count == 1 {
        format!("{}: {length} at {start}", describe(bar.first.span))
    } else {
        let kind = bar.first.span.kind.name();
        format!("{} × {kind}: within {length} at {start}", bar.count)
    }
}

/// A span without its times: label, kind, chunk, stream, bytes, rate.
fn describe(span: &Span) -> String {
    let mut parts = Vec::new();
    if !span.label.is_empty() {
        parts.push(clip(&sanitize(&span.label), 80, '…'));
    }
    parts.push(span.kind.name().to_owned());
    parts.extend(span.chunk.map(|chunk| format!("chunk {chunk}")));
    parts.extend(span.stream.map(|stream| format!("stream {stream}")));
    if span.bytes > 0 {
        parts.push(rounded_size(span.bytes));
    }
    let rate = span.gb_per_s();
    parts.extend(rate.map(|rate| format!("{} GB/s", three_digits(rate))));
    parts.join(", ")
}
