//! A chart as a picture.

mod bars;

use std::fmt::Write;
use std::io;

use self::bars::SvgLane;
use super::palette::colour;
use super::rows::{Shade, TrackRow, rows};
use super::{Chart, Exporter, SpanKind, Timeline};
use crate::format::{duration, percent, speedup_label};
use crate::markup::{SvgElements, length, point, text_px};
use crate::plot::{DARK_RULES, RULES, TimeTick, standalone_svg, time_ticks};
use crate::text_layout::{clip, sanitize};

/// A standalone picture without scripts, fonts or other files. Follows the viewer's light or dark theme.
/// Overlapping spans are drawn below each other; spans too short to distinguish are drawn as one, with
/// their number in its tooltip.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Svg;

impl Exporter for Svg {
    fn export(&self, chart: &Chart, out: &mut dyn io::Write) -> io::Result<()> {
        out.write_all(SvgChart::new(chart).draw().as_bytes())
    }
}

const WIDTH_PX: f64 = 1200.0;
const LEFT_PX: f64 = 28.0;
const RIGHT_PX: f64 = 1172.0;
const PLOT_LEFT_PX: f64 = 168.0;
const PLOT_RIGHT_PX: f64 = 1112.0;
const AXIS_PX: f64 = 26.0;
const FONT_PX: f64 = 13.0;
const SWATCH_PX: f64 = 12.0;
const LEGEND_LINE_PX: f64 = 22.0;
const LEGEND_GAP_PX: f64 = 18.0;
const TIMELINE_HEADING_PX: f64 = 32.0;
const TIMELINE_GAP_PX: f64 = 14.0;
const ROW_PX: f64 = 18.0;
const ROW_GAP_PX: f64 = 5.0;
/// Beyond this height of a row, its lanes get thinner.
const ROW_MAX_PX: f64 = 160.0;
/// Height of a lane while there is room.
const LANE_PX: f64 = 12.0;

struct SvgChart<'a> {
    chart: &'a Chart,
    runs: Vec<SvgRun<'a>>,
    px_per_ns: f64,
}

struct SvgRun<'a> {
    timeline: &'a Timeline,
    rows: Vec<TrackRow<'a>>,
}

impl<'a> SvgChart<'a> {
    fn new(chart: &'a Chart) -> Self {
        let run = |timeline: &'a Timeline| SvgRun {
            timeline,
            rows: rows(timeline),
        };
        Self {
            chart,
            runs: chart.timelines.iter().map(run).collect(),
            px_per_ns: (PLOT_RIGHT_PX - PLOT_LEFT_PX) / chart.longest_ns().max(1) as f64,
        }
    }

    fn draw(&self) -> String {
        let Chart { title, origin, .. } = self.chart;
        let mut svg = standalone_svg::heading(title, origin, LEFT_PX, RIGHT_PX);
        let top_px = self.draw_legend(standalone_svg::HEADING_PX, &mut svg);
        let plot_px: f64 = self.runs.iter().map(SvgRun::height_px).sum();
        if !self.runs.is_empty() {
            self.draw_plot(top_px, &mut svg);
        }
        let size_px = (WIDTH_PX, top_px + AXIS_PX + plot_px + 12.0);
        standalone_svg::document(title, size_px, &stylesheet(self.chart), &svg)
    }

    /// Returns the bottom of the legend.
    fn draw_legend(&self, top_px: f64, svg: &mut SvgElements) -> f64 {
        let kinds = self.chart.kinds();
        if kinds.is_empty() {
            return top_px;
        }
        let entries = kinds.into_iter().map(|kind| (Some(kind), kind.name()));
        let (mut x_px, mut y_px) = (LEFT_PX, top_px);
        for (kind, text) in entries.chain([(None, super::SHADES_NOTE)]) {
            let swatch_px = kind.map_or(0.0, |_| 2.0 * SWATCH_PX + 7.0);
            let width_px = swatch_px + text_px(text, FONT_PX);
            if x_px > LEFT_PX && x_px + width_px > RIGHT_PX {
                (x_px, y_px) = (LEFT_PX, y_px + LEGEND_LINE_PX);
            }
            for (kind, shade) in kind
                .into_iter()
                .flat_map(|kind| Shade::ALL.map(|it| (kind, it)))
            {
                let left_px = x_px + shade as usize as f64 * SWATCH_PX;
                let class = class(kind, shade);
                svg.rect(&class, [left_px, y_px, SWATCH_PX, SWATCH_PX]);
            }
            let class = if kind.is_some() { "kind" } else { "dim" };
            svg.text(class, x_px + swatch_px, y_px + 11.0, text);
            x_px += width_px + LEGEND_GAP_PX;
        }
        y_px + LEGEND_LINE_PX + 8.0
    }

    fn draw_plot(&self, top_px: f64, svg: &mut SvgElements) {
        let ticks = time_ticks(self.chart.longest_ns(), 10);
        self.draw_axis(&ticks, top_px, svg);
        let mut y_px = top_px + AXIS_PX;
        for run in &self.runs {
            self.draw_strips(run, y_px, svg);
            let end = length(y_px + run.height_px() - TIMELINE_GAP_PX);
            for tick in &ticks {
                let start = point(self.x_px(tick.at_ns), y_px + TIMELINE_HEADING_PX);
                svg.path("grid", &format!("M{start}V{end}"));
            }
            self.draw_run(run, y_px, svg);
            y_px += run.height_px();
        }
    }

    fn x_px(&self, at_ns: u64) -> f64 {
        PLOT_LEFT_PX + at_ns as f64 * self.px_per_ns
    }

    fn draw_axis(&self, ticks: &[TimeTick], top_px: f64, svg: &mut SvgElements) {
        let base_px = top_px + AXIS_PX - 6.0;
        let base = length(base_px);
        for tick in ticks {
            let x_px = self.x_px(tick.at_ns);
            svg.text("dim mid", x_px, base_px - 7.0, &tick.label);
            svg.path("rule", &format!("M{}V{base}", point(x_px, base_px - 4.0)));
        }
        svg.text("dim end", RIGHT_PX, base_px - 7.0, "busy");
        svg.path("rule", &format!("M{PLOT_LEFT_PX} {base}H{PLOT_RIGHT_PX}"));
    }

    /// The background of each row, as long as the run.
    fn draw_strips(&self, run: &SvgRun<'_>, top_px: f64, svg: &mut SvgElements) {
        let width_px = self.x_px(run.timeline.total_ns()) - PLOT_LEFT_PX;
        let mut y_px = top_px + TIMELINE_HEADING_PX;
        for row in &run.rows {
            svg.rect("strip", [PLOT_LEFT_PX, y_px, width_px, row_px(row)]);
            y_px += row_px(row) + ROW_GAP_PX;
        }
    }

    fn draw_run(&self, run: &SvgRun<'_>, top_px: f64, svg: &mut SvgElements) {
        let timeline = run.timeline;
        let base_px = top_px + 21.0;
        let name = clip(&sanitize(timeline.name()), 110, '…');
        let total = duration(timeline.total_ns());
        let speedup = speedup_label(self.chart.speedup(timeline));
        svg.text("name", LEFT_PX, base_px, &name);
        svg.text("name end", PLOT_RIGHT_PX, base_px, &total);
        svg.text("name end", RIGHT_PX, base_px, &speedup);
        let mut y_px = top_px + TIMELINE_HEADING_PX;
        for row in &run.rows {
            let height_px = row_px(row);
            let base_px = y_px + height_px / 2.0 + 4.5;
            let busy = percent(timeline.busy_share(row.track));
            svg.text("end", PLOT_LEFT_PX - 10.0, base_px, &row.name.long);
            svg.text("dim end", RIGHT_PX, base_px, &busy);
            self.draw_lanes(row, y_px, svg);
            y_px += height_px + ROW_GAP_PX;
        }
    }

    fn draw_lanes(&self, row: &TrackRow<'_>, top_px: f64, svg: &mut SvgElements) {
        let lane_px = row_px(row) / row.lanes.len() as f64;
        let has_gap = lane_px > 4.0 && row.lanes.len() > 1;
        let gap_px = if has_gap { 1.0 } else { 0.0 };
        for (index, spans) in row.lanes.iter().enumerate() {
            let lane = SvgLane {
                left_px: PLOT_LEFT_PX,
                px_per_ns: self.px_per_ns,
                top_px: top_px + index as f64 * lane_px,
                height_px: lane_px - gap_px,
            };
            lane.draw(spans, svg);
        }
    }
}

impl SvgRun<'_> {
    fn height_px(&self) -> f64 {
        let rows_px: f64 = self.rows.iter().map(|row| row_px(row) + ROW_GAP_PX).sum();
        TIMELINE_HEADING_PX + rows_px + TIMELINE_GAP_PX
    }
}

fn row_px(row: &TrackRow<'_>) -> f64 {
    (row.lanes.len() as f64 * LANE_PX).clamp(ROW_PX, ROW_MAX_PX)
}

fn class(kind: SpanKind, shade: Shade) -> String {
    let letter = ['a', 'b'][shade as usize];
    format!("{letter}{}", kind as usize)
}

/// The style sheet, with only the kinds that occur.
fn stylesheet(chart: &Chart) -> String {
    let mut sheet = RULES.to_owned();
    let mut inks = String::new();
    for kind in chart.kinds() {
        for shade in Shade::ALL {
            let (fill, class) = (colour(kind, shade), class(kind, shade));
            let _ = writeln!(sheet, ".{class}{{fill:{}}}", fill.hex());
            let _ = writeln!(inks, "text.i{class}{{fill:{}}}", fill.ink().hex());
        }
    }
    format!("{sheet}@media (prefers-color-scheme:dark){{\n{DARK_RULES}}}\n{inks}")
}
