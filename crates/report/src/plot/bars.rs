//! Values side by side, as horizontal bars in groups.

use super::axis::Axis;
use super::canvas::{Canvas, Drawing, NARROW, WIDE, flag_row};
use super::series_style::SeriesStyle;
use crate::Origin;
use crate::markup::{SvgElements, length, point, text_px};
use crate::page::{Tooltip, section};

const BAR_PX: f64 = 21.0;
const BAR_GAP_PX: f64 = 3.0;
const FONT_PX: f64 = 13.0;
const GROUP_GAP_PX: f64 = 15.0;

/// Groups of bars over a common axis that starts at 0.
pub(crate) struct BarChart<'a> {
    pub(crate) origin: &'a Origin,
    pub(crate) axis: Axis,
    /// Unit of the values, unless the ticks show it.
    pub(crate) unit: &'a str,
    /// Heading of the groups' notes.
    pub(crate) note_title: &'a str,
    pub(crate) groups: Vec<BarGroup>,
    pub(crate) limit: Option<BarLimit>,
}

/// Bars under one name.
pub(crate) struct BarGroup {
    pub(crate) name: String,
    /// Shown beside the group; may be empty.
    pub(crate) note: String,
    pub(crate) bars: Vec<ChartBar>,
}

/// One value.
pub(crate) struct ChartBar {
    /// Name within its group.
    pub(crate) caption: String,
    pub(crate) value: f64,
    pub(crate) style: SeriesStyle,
    /// Whether to use the lighter shade.
    pub(crate) soft: bool,
    /// Shown at the end of the bar.
    pub(crate) label: String,
    pub(crate) tooltip: Tooltip,
}

/// A line across all bars.
pub(crate) struct BarLimit {
    pub(crate) at: f64,
    pub(crate) label: String,
}

impl BarChart<'_> {
    /// A section of a page: the chart for wide and for narrow windows. Appends its tooltips.
    pub(crate) fn section(
        &self,
        heading: &str,
        remark: &str,
        label: &str,
        tooltips: &mut Vec<Tooltip>,
    ) -> String {
        let drawings = [(WIDE, "wide"), (NARROW, "narrow")].map(|(canvas, class)| {
            let canvas = canvas.tooltips_from(tooltips.len());
            self.draw(&canvas).inline(&canvas, class, label)
        });
        tooltips.extend(self.bars().map(|bar| bar.tooltip.clone()));
        section(heading, remark, label, &drawings.concat())
    }

    fn bars(&self) -> impl Iterator<Item = &ChartBar> {
        self.groups.iter().flat_map(|group| &group.bars)
    }

    pub(crate) fn draw(&self, canvas: &Canvas) -> Drawing {
        let layout = BarLayout::new(self, canvas);
        let mut svg = flag_row(self.origin, canvas).svg;
        let heights_px = self.groups.iter().map(|group| group.height_px(canvas));
        let bottom_px = layout.top_px + heights_px.sum::<f64>();
        layout.draw_axis(bottom_px + 10.0, &mut svg);
        if let Some(limit) = &self.limit {
            layout.draw_limit(limit, &mut svg);
        }
        let (mut top_px, mut index) = (layout.top_px, 0);
        for group in &self.groups {
            group.draw_name(self.note_title, canvas, top_px, &mut svg);
            let mut bar_px = top_px + group.name_px(canvas);
            for bar in &group.bars {
                svg.raw(canvas.part("part", index, &bar.tooltip));
                layout.draw_bar(bar, bar_px, &mut svg);
                svg.raw("</g>\n");
                bar_px += BAR_PX + BAR_GAP_PX;
                index += 1;
            }
            top_px += group.height_px(canvas);
        }
        Drawing {
            svg,
            height_px: bottom_px + 26.0,
        }
    }

    /// Room that the last tick label and the unit take beyond the end of the axis.
    fn unit_px(&self) -> f64 {
        let last = self.axis.ticks.last();
        let tick_px = last.map_or(0.0, |tick| text_px(&tick.label, FONT_PX) / 2.0);
        (tick_px + text_px(self.unit, FONT_PX) + 6.0).max(24.0)
    }

    /// Room that a label takes beyond the end of the axis if it does not fit into its bar.
    fn label_overhang_px(&self, bar: &ChartBar) -> f64 {
        match self.axis.share(bar.value) {
            share if share > 0.6 => 0.0,
            share => (text_px(&bar.label, FONT_PX) * 1.1 + 12.0) * share,
        }
    }
}

/// A chart on a canvas: horizontal positions, from left to right, and the top of the first group.
struct BarLayout<'a> {
    chart: &'a BarChart<'a>,
    canvas: &'a Canvas,
    caption_end_px: f64,
    left_px: f64,
    right_px: f64,
    top_px: f64,
    has_notes: bool,
}

impl<'a> BarLayout<'a> {
    fn new(chart: &'a BarChart<'a>, canvas: &'a Canvas) -> Self {
        let widest = |texts: &mut dyn Iterator<Item = &str>| {
            texts.map(|text| text_px(text, FONT_PX)).fold(0.0, f64::max)
        };
        let caption_px = widest(&mut chart.bars().map(|bar| bar.caption.as_str()));
        let (mut name_px, mut note_px, mut has_notes) = (0.0, 0.0, false);
        if !canvas.narrow {
            name_px =
                widest(&mut chart.groups.iter().map(|group| group.name.as_str())) * 1.08 + 14.0;
            has_notes = chart.groups.iter().any(|group| !group.note.is_empty());
        }
        if has_notes {
            note_px = text_px(chart.note_title, FONT_PX) + 14.0;
        }
        let label_px = chart.bars().map(|bar| chart.label_overhang_px(bar));
        let caption_end_px = canvas.left_px + name_px + caption_px;
        let mut top_px = flag_row(chart.origin, canvas).height_px + 4.0;
        if chart.limit.is_some() || has_notes {
            top_px += 26.0;
        }
        Self {
            chart,
            canvas,
            caption_end_px,
            left_px: caption_end_px + if caption_px > 0.0 { 10.0 } else { 0.0 },
            right_px: canvas.right_px() - note_px - label_px.fold(chart.unit_px(), f64::max),
            top_px,
            has_notes,
        }
    }

    fn x_px(&self, value: f64) -> f64 {
        self.left_px + self.chart.axis.share(value) * (self.right_px - self.left_px)
    }

    /// Path data of a vertical line: over the whole chart, or over the bars only if names are between
    /// them.
    fn vertical_line(&self, x_px: f64) -> String {
        let mut top_px = self.top_px;
        let mut stretches = Vec::new();
        for group in &self.chart.groups {
            let start_px = top_px + group.name_px(self.canvas) - 4.0;
            top_px += group.height_px(self.canvas);
            stretches.push((start_px, top_px - GROUP_GAP_PX + 4.0));
        }
        if let (false, [first, .., last]) = (self.canvas.narrow, &stretches[..]) {
            stretches = vec![(first.0, last.1)];
        }
        let stretch = |(top_px, bottom_px): (f64, f64)| {
            format!("M{}V{}", point(x_px, top_px), length(bottom_px))
        };
        stretches.into_iter().map(stretch).collect()
    }

    fn draw_axis(&self, base_px: f64, svg: &mut SvgElements) {
        let chart = self.chart;
        for tick in &chart.axis.ticks {
            let x_px = self.x_px(tick.at);
            svg.path("grid", &self.vertical_line(x_px));
            svg.text("dim mid", x_px, base_px, &tick.label);
        }
        if let Some(last) = chart.axis.ticks.last() {
            let end_px = self.x_px(last.at) + text_px(&last.label, FONT_PX) / 2.0;
            svg.text("dim", end_px + 3.0, base_px, chart.unit);
        }
        if self.has_notes {
            let (x_px, y_px) = (self.canvas.right_px(), self.top_px - 14.0);
            svg.text("dim end", x_px, y_px, chart.note_title);
        }
    }

    fn draw_limit(&self, limit: &BarLimit, svg: &mut SvgElements) {
        let x_px = self.x_px(limit.at);
        let half_px = text_px(&limit.label, FONT_PX) / 2.0;
        let middle_px = x_px.min(self.right_px + 20.0 - half_px).max(half_px);
        let start = point(x_px, self.top_px - 9.0);
        svg.path("limit", &format!("M{start}v6{}", self.vertical_line(x_px)));
        svg.text("mid", middle_px, self.top_px - 14.0, &limit.label);
    }

    fn draw_bar(&self, bar: &ChartBar, top_px: f64, svg: &mut SvgElements) {
        let base_px = top_px + BAR_PX / 2.0 + 4.5;
        let Canvas {
            left_px, width_px, ..
        } = *self.canvas;
        svg.rect("hit", [left_px, top_px, width_px, BAR_PX]);
        svg.text("dim end", self.caption_end_px, base_px, &bar.caption);
        let (start_px, end_px) = (self.left_px, self.x_px(bar.value));
        let class = format!("{}{}", if bar.soft { "s" } else { "" }, bar.style.class());
        let width_px = (end_px - start_px).max(1.0);
        let area_px = [start_px, top_px, width_px, BAR_PX];
        svg.rect(&format!("bar {class}"), area_px);
        // A label that does not fit into the bar follows it.
        let label_px = text_px(&bar.label, FONT_PX) * 1.1 + 14.0;
        let (class, x_px) = match end_px - start_px >= label_px {
            true => (format!("fig end in{class}"), end_px - 8.0),
            false => ("fig halo".to_owned(), end_px + 7.0),
        };
        svg.text(&class, x_px, base_px, &bar.label);
    }
}

impl BarGroup {
    /// Height of the name above the bars.
    fn name_px(&self, canvas: &Canvas) -> f64 {
        if canvas.narrow { 22.0 } else { 0.0 }
    }

    /// Height with the gap below.
    fn height_px(&self, canvas: &Canvas) -> f64 {
        let bars_px = self.bars.len() as f64 * (BAR_PX + BAR_GAP_PX) - BAR_GAP_PX;
        self.name_px(canvas) + bars_px.max(BAR_PX) + GROUP_GAP_PX
    }

    /// The name, and the note at the opposite edge.
    fn draw_name(&self, note_title: &str, canvas: &Canvas, top_px: f64, svg: &mut SvgElements) {
        let (base_px, note) = match (canvas.narrow, self.note.is_empty()) {
            (true, true) => (top_px + 14.0, String::new()),
            (true, false) => (top_px + 14.0, format!("{note_title}: {}", self.note)),
            (false, _) => (top_px + BAR_PX / 2.0 + 4.5, self.note.clone()),
        };
        svg.text("fig", canvas.left_px, base_px, &self.name);
        svg.text("dim end halo", canvas.right_px(), base_px, &note);
    }
}
