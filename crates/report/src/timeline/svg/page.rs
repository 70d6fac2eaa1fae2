//! Where things stand on the picture.

use std::io;

use super::bars::Lane;
use super::{head, style};
use crate::markup::{escape, length};
use crate::plot::picture;
use crate::timeline::layout::rows::{Row, rows};
use crate::timeline::layout::scale::{Tick, ticks};
use crate::timeline::layout::words::{clean, clip, duration, percent, times};
use crate::timeline::{Chart, Timeline};

const WIDTH_PX: f64 = 1200.0;
pub(super) const LEFT_PX: f64 = 28.0;
const PLOT_RIGHT_PX: f64 = 1112.0;
const PLOT_LEFT_PX: f64 = 168.0;
pub(super) const RIGHT_PX: f64 = 1172.0;
const AXIS_PX: f64 = 26.0;
const HEADING_PX: f64 = 32.0;
const ROW_PX: f64 = 18.0;
const ROW_GAP_PX: f64 = 5.0;
/// The highest row: beyond it, sub-rows become thinner.
const ROW_MOST_PX: f64 = 160.0;
/// What a sub-row takes as long as there is room.
const LANE_PX: f64 = 12.0;
const TIMELINE_GAP_PX: f64 = 14.0;

/// A chart, measured out.
pub(super) struct Page<'a> {
    chart: &'a Chart,
    rows: Vec<Vec<Row<'a>>>,
    px_per_ns: f64,
}

impl<'a> Page<'a> {
    pub(super) fn new(chart: &'a Chart) -> Self {
        Self {
            chart,
            rows: chart.timelines.iter().map(rows).collect(),
            px_per_ns: (PLOT_RIGHT_PX - PLOT_LEFT_PX) / chart.longest_ns().max(1) as f64,
        }
    }

    pub(super) fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        // The head is drawn aside first, since the picture's height depends on it.
        let mut head = Vec::new();
        let head_px = head::write(self.chart, &mut head)?;
        let plot_px: f64 = self.rows.iter().map(|rows| timeline_px(rows)).sum();
        let height_px = head_px + AXIS_PX + plot_px + 12.0;
        let sheet = style::sheet(self.chart);
        let opening = picture::opening(&self.chart.title, WIDTH_PX, height_px, &sheet);
        out.write_all(opening.as_bytes())?;
        out.write_all(&head)?;
        self.write_plot(head_px, out)?;
        writeln!(out, "</svg>")
    }

    fn write_plot(&self, top_px: f64, out: &mut dyn io::Write) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let ticks = ticks(self.chart.longest_ns(), 10);
        Self::write_axis(&self.places(&ticks), top_px, out)?;
        let mut y_px = top_px + AXIS_PX;
        for (timeline, rows) in self.chart.timelines.iter().zip(&self.rows) {
            self.write_strips(timeline, rows, y_px, out)?;
            for (x, _) in self.places(&ticks) {
                let end = length(y_px + timeline_px(rows) - TIMELINE_GAP_PX);
                let start = length(y_px + HEADING_PX);
                writeln!(out, r#"<path class="grid" d="M{x} {start}V{end}"/>"#)?;
            }
            self.write_timeline(timeline, rows, y_px, out)?;
            y_px += timeline_px(rows);
        }
        Ok(())
    }

    /// Where ticks stand, and what they say.
    fn places<'b>(&self, ticks: &'b [Tick]) -> Vec<(String, &'b str)> {
        let place = |tick: &'b Tick| (length(self.x_px(tick.at_ns)), tick.label.as_str());
        ticks.iter().map(place).collect()
    }

    fn x_px(&self, at_ns: u64) -> f64 {
        PLOT_LEFT_PX + at_ns as f64 * self.px_per_ns
    }

    fn write_axis(
        ticks: &[(String, &str)],
        top_px: f64,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let base_px = top_px + AXIS_PX - 6.0;
        let (base, mark) = (length(base_px), length(base_px - 4.0));
        let text_base = length(base_px - 7.0);
        for (x, label) in ticks {
            writeln!(
                out,
                r#"<text class="dim mid" x="{x}" y="{text_base}">{label}</text><path class="rule" d="M{x} {mark}V{base}"/>"#,
            )?;
        }
        writeln!(
            out,
            r#"<text class="dim end" x="{RIGHT_PX}" y="{text_base}">busy</text><path class="rule" d="M{PLOT_LEFT_PX} {base}H{PLOT_RIGHT_PX}"/>"#,
        )
    }

    /// As long as the run, behind each row.
    fn write_strips(
        &self,
        timeline: &Timeline,
        rows: &[Row<'_>],
        top_px: f64,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let mut y_px = top_px + HEADING_PX;
        for row in rows {
            writeln!(
                out,
                r#"<rect class="strip" x="{PLOT_LEFT_PX}" y="{}" width="{}" height="{}"/>"#,
                length(y_px),
                length(self.x_px(timeline.total_ns()) - PLOT_LEFT_PX),
                length(row_px(row)),
            )?;
            y_px += row_px(row) + ROW_GAP_PX;
        }
        Ok(())
    }

    fn write_timeline(
        &self,
        timeline: &Timeline,
        rows: &[Row<'_>],
        top_px: f64,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let base = length(top_px + 21.0);
        writeln!(
            out,
            r#"<text class="name" x="{LEFT_PX}" y="{base}">{}</text><text class="name end" x="{PLOT_RIGHT_PX}" y="{base}">{}</text><text class="name end" x="{RIGHT_PX}" y="{base}">{}</text>"#,
            escape(&clip(&clean(timeline.name()), 110, '…')),
            duration(timeline.total_ns()),
            times(self.chart.speedup(timeline)),
        )?;
        let mut y_px = top_px + HEADING_PX;
        for row in rows {
            let height_px = row_px(row);
            let base = length(y_px + height_px / 2.0 + 4.5);
            writeln!(
                out,
                r#"<text class="end" x="{}" y="{base}">{}</text><text class="dim end" x="{RIGHT_PX}" y="{base}">{}</text>"#,
                PLOT_LEFT_PX - 10.0,
                escape(&row.name.long),
                percent(timeline.busy_share(row.track)),
            )?;
            self.write_lanes(row, y_px, out)?;
            y_px += height_px + ROW_GAP_PX;
        }
        Ok(())
    }

    fn write_lanes(&self, row: &Row<'_>, top_px: f64, out: &mut dyn io::Write) -> io::Result<()> {
        let lane_px = row_px(row) / row.lanes.len() as f64;
        for (index, spans) in row.lanes.iter().enumerate() {
            let lane = Lane {
                left_px: PLOT_LEFT_PX,
                px_per_ns: self.px_per_ns,
                top_px: top_px + index as f64 * lane_px,
                height_px: if lane_px > 4.0 && row.lanes.len() > 1 {
                    lane_px - 1.0
                } else {
                    lane_px
                },
            };
            lane.write(spans, out)?;
        }
        Ok(())
    }
}

fn timeline_px(rows: &[Row<'_>]) -> f64 {
    let rows_px: f64 = rows.iter().map(|row| row_px(row) + ROW_GAP_PX).sum();
    HEADING_PX + rows_px + TIMELINE_GAP_PX
}

fn row_px(row: &Row<'_>) -> f64 {
    (row.lanes.len() as f64 * LANE_PX).clamp(ROW_PX, ROW_MOST_PX)
}
