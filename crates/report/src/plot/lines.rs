//! Values over sizes, one line per series.

use super::axis::Axis;
use super::canvas::{Canvas, Drawing, flag_row};
use super::coinciding_lines::{Place, side_by_side};
use super::series_style::SeriesStyle;
use crate::Origin;
use crate::markup::{SvgElements, escape, length, point, text_px};
use crate::page::Tooltip;

const FONT_PX: f64 = 13.0;
/// Distance between the names beside the lines.
const LABEL_PX: f64 = 18.0;
/// Height of a row of the legend.
const LEGEND_ROW_PX: f64 = 20.0;
/// Width of a line sample before its name.
const SAMPLE_PX: f64 = 30.0;

/// Of more stops than this, only the one under the pointer has its markers.
const MARKED_MAX: usize = 20;

/// Told to the reader of such a plot.
const COINCIDE: &str = "lines that coincide are drawn side by side";

/// Lines over a common axis.
pub(crate) struct LinePlot<'a> {
    pub(crate) origin: &'a Origin,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// Unit of the values.
    pub(crate) unit: &'a str,
    /// In drawing order.
    pub(crate) lines: Vec<Line>,
    /// Every x that has values, in order.
    pub(crate) stops: Vec<LineStop>,
}

/// One series.
pub(crate) struct Line {
    pub(crate) style: SeriesStyle,
    pub(crate) name: String,
    /// The last value, shown after the name.
    pub(crate) last: String,
    /// In order of x; not empty.
    pub(crate) points: Vec<LinePoint>,
}

/// A median and the range of most samples.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct LinePoint {
    pub(crate) x: f64,
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
    /// Not reliable.
    pub(crate) noisy: bool,
}

/// An x with values, and their details.
pub(crate) struct LineStop {
    pub(crate) x: f64,
    pub(crate) tooltip: Tooltip,
}

/// The box between the axes.
struct PlotArea {
    left_px: f64,
    right_px: f64,
    top_px: f64,
    bottom_px: f64,
}

impl LinePlot<'_> {
    pub(crate) fn draw(&self, canvas: &Canvas) -> Drawing {
        // Above the axes, where it covers no line.
        let mut drawing = flag_row(self.origin, canvas);
        if canvas.narrow {
            self.draw_legend(canvas, &mut drawing);
        }
        let top_px = drawing.height_px + 22.0;
        let (axis_px, side_px, height_px) = match canvas.narrow {
            true => (34.0, 26.0, 250.0),
            false => (40.0, 196.0, 290.0),
        };
        let labels_px = self
            .y
            .ticks
            .iter()
            .map(|tick| text_px(&tick.label, FONT_PX));
        let axis_px = labels_px.fold(0.0, f64::max).max(axis_px - 10.0) + 10.0;
        let area = PlotArea {
            left_px: canvas.left_px + axis_px,
            right_px: canvas.right_px() - side_px,
            top_px,
            bottom_px: top_px + height_px,
        };
        let svg = &mut drawing.svg;
        self.draw_axes(canvas, &area, svg);
        let (places, coincide) = side_by_side(&self.places(&area));
        if coincide {
            let (x_px, y_px) = (area.right_px, area.top_px - 13.0);
            svg.text("dim small end", x_px, y_px, COINCIDE);
        }
        for (line, places) in self.lines.iter().zip(&places) {
            self.draw_line(line, places, &area, svg);
        }
        if !canvas.narrow {
            self.draw_names(&places, &area, svg);
        }
        self.draw_stops(canvas, &places, &area, svg);
        drawing.height_px = area.bottom_px + 30.0;
        drawing
    }

    /// Where the medians are, line by line.
    fn places(&self, area: &PlotArea) -> Vec<Vec<Place>> {
        let place = |point: &LinePoint| Place {
            x_px: area.x_px(&self.x, point.x),
            y_px: area.y_px(&self.y, point.median),
        };
        let lines = self.lines.iter();
        lines
            .map(|line| line.points.iter().map(place).collect())
            .collect()
    }

    /// From the highest last value to the lowest, with their numbers.
    fn by_last(&self) -> Vec<(usize, &Line)> {
        let last = |line: &Line| line.points.last().map_or(0.0, |point| point.median);
        let mut lines: Vec<(usize, &Line)> = self.lines.iter().enumerate().collect();
        lines.sort_by(|(_, a), (_, b)| last(b).total_cmp(&last(a)));
        lines
    }

    /// Names above the plot, in as many rows as they need.
    fn draw_legend(&self, canvas: &Canvas, drawing: &mut Drawing) {
        let (mut x_px, mut row_px) = (canvas.left_px, drawing.height_px);
        for (_, line) in self.by_last() {
            let width_px = SAMPLE_PX + text_px(&line.name, FONT_PX);
            if x_px > canvas.left_px && x_px + width_px > canvas.right_px() {
                (x_px, row_px) = (canvas.left_px, row_px + LEGEND_ROW_PX);
            }
            let middle_px = row_px + LEGEND_ROW_PX / 2.0;
            let svg = &mut drawing.svg;
            draw_sample(line.style, x_px, middle_px, svg);
            svg.text("", x_px + SAMPLE_PX, middle_px + 4.5, &line.name);
            x_px += width_px + 14.0;
            drawing.height_px = row_px + LEGEND_ROW_PX + 8.0;
        }
    }

    fn draw_axes(&self, canvas: &Canvas, area: &PlotArea, svg: &mut SvgElements) {
        let (left, right) = (length(area.left_px), length(area.right_px));
        let number_px = area.left_px - 8.0;
        for tick in &self.y.ticks {
            let y_px = area.y_px(&self.y, tick.at);
            svg.path("grid", &format!("M{left} {}H{right}", length(y_px)));
            svg.text("dim end", number_px, y_px + 4.5, &tick.label);
        }
        let bottom = length(area.bottom_px);
        // A long unit begins at the edge instead of leaving the drawing.
        let unit_px = (number_px - text_px(self.unit, FONT_PX)).max(canvas.left_px);
        svg.text("dim", unit_px, area.top_px - 13.0, self.unit);
        svg.path("rule", &format!("M{left} {bottom}H{right}"));
        for tick in &self.x.ticks {
            let x_px = area.x_px(&self.x, tick.at);
            svg.path("rule", &format!("M{} {bottom}v5", length(x_px)));
            svg.text("dim mid", x_px, area.bottom_px + 20.0, &tick.label);
        }
    }

    /// The medians as a line over a band of the ranges; a single point as its range.
    fn draw_line(&self, line: &Line, places: &[Place], area: &PlotArea, svg: &mut SvgElements) {
        let class = line.style.class();
        let at = |x: f64, y: f64| point(area.x_px(&self.x, x), area.y_px(&self.y, y));
        let points = || line.points.iter();
        let lows = points().rev().map(|point| at(point.x, point.low));
        let highs = points().map(|point| at(point.x, point.high));
        let line = format!("line l{class}");
        if places.len() == 1 {
            svg.path(&line, &path(lows.chain(highs)));
        } else {
            let band = format!("{}Z", path(highs.chain(lows)));
            svg.path(&format!("band {class}"), &band);
            let medians = places.iter().map(|place| point(place.x_px, place.y_px));
            svg.path(&line, &path(medians));
        }
    }

    /// Names beside the plot, each near the end of its line.
    fn draw_names(&self, places: &[Vec<Place>], area: &PlotArea, svg: &mut SvgElements) {
        let ends: Vec<(&Line, LinePoint, Place)> = self
            .by_last()
            .into_iter()
            .filter_map(|(number, line)| {
                Some((line, *line.points.last()?, *places[number].last()?))
            })
            .collect();
        // Sorted, unlike those of lines side by side.
        let wanted = ends
            .iter()
            .map(|(_, end, _)| area.y_px(&self.y, end.median));
        let wanted: Vec<f64> = wanted.collect();
        let labels = spread_labels(&wanted, LABEL_PX, area.top_px, area.bottom_px);
        for ((line, end, place), label_px) in ends.iter().zip(&labels) {
            let x_px = area.right_px + 20.0;
            // A line that ends early is identified by its marker alone.
            if area.x_px(&self.x, end.x) + 1.0 >= area.right_px {
                svg.raw(format_args!(
                    "<path class=\"lead l{}\" style=\"stroke-dasharray:none\" d=\"M{}L{}\"/>",
                    line.style.class(),
                    point(place.x_px + 5.0, place.y_px),
                    point(x_px - 2.0, *label_px)
                ));
            }
            draw_sample(line.style, x_px, *label_px, svg);
            svg.raw(format_args!(
                "<text x=\"{}\" y=\"{}\">{} <tspan class=\"dim\">{}</tspan></text>\n",
                length(x_px + 31.0),
                length(label_px + 4.5),
                escape(&line.name),
                escape(&line.last),
            ));
        }
    }

    /// Markers, and the area in which the pointer shows the tooltip of each x.
    fn draw_stops(
        &self,
        canvas: &Canvas,
        places: &[Vec<Place>],
        area: &PlotArea,
        svg: &mut SvgElements,
    ) {
        let stops = self.stops.iter();
        let stops_px: Vec<f64> = stops.map(|stop| area.x_px(&self.x, stop.x)).collect();
        let height_px = area.bottom_px - area.top_px;
        let class = match self.stops.len() > MARKED_MAX {
            true => "stop dense",
            false => "stop",
        };
        for (index, stop) in self.stops.iter().enumerate() {
            let x_px = stops_px[index];
            svg.raw(canvas.part(class, index, &stop.tooltip));
            let cursor = format!("M{}v{}", point(x_px, area.top_px), length(height_px));
            svg.path("cursor", &cursor);
            // Another line comes last at each stop, so that no marker is always covered.
            for offset in 0..self.lines.len() {
                let number = (index + offset) % self.lines.len();
                let (line, places) = (&self.lines[number], &places[number]);
                let points = line.points.iter().zip(places);
                for (point, place) in points.filter(|(point, _)| point.x == stop.x) {
                    if point.noisy {
                        let ring = format!("l{} noisy", line.style.class());
                        svg.circle(&ring, place.x_px, place.y_px, 8.0);
                    }
                    line.style.marker(place.x_px, place.y_px, svg);
                }
            }
            let before = index.checked_sub(1).map(|before| stops_px[before]);
            let start_px = before.map_or(area.left_px, |before| (before + x_px) / 2.0);
            let next = stops_px.get(index + 1);
            let end_px = next.map_or(area.right_px, |next| (next + x_px) / 2.0);
            svg.rect("hit", [start_px, area.top_px, end_px - start_px, height_px]);
            svg.raw("</g>\n");
        }
    }
}

/// Path data through these points.
fn path(points: impl Iterator<Item = String>) -> String {
    let points: Vec<String> = points.collect();
    format!("M{}", points.join("L"))
}

/// A piece of a line with its marker.
fn draw_sample(style: SeriesStyle, x_px: f64, y_px: f64, svg: &mut SvgElements) {
    let line = format!("M{}h24", point(x_px, y_px));
    svg.path(&format!("line l{}", style.class()), &line);
    style.marker(x_px + 12.0, y_px, svg);
}

impl PlotArea {
    fn x_px(&self, axis: &Axis, value: f64) -> f64 {
        self.left_px + axis.share(value) * (self.right_px - self.left_px)
    }

    fn y_px(&self, axis: &Axis, value: f64) -> f64 {
        self.bottom_px - axis.share(value) * (self.bottom_px - self.top_px)
    }
}

/// Positions close to `wanted`, at least `gap` apart, between `top` and `bottom` while there is room.
/// `wanted` is sorted; so is the result.
fn spread_labels(wanted: &[f64], gap: f64, top: f64, bottom: f64) -> Vec<f64> {
    // Neighbours that would touch become a block around their mean position: sum and count.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    let start = |(sum, count): (f64, usize)| sum / count as f64 - (count - 1) as f64 * gap / 2.0;
    for &position in wanted {
        let mut block = (position, 1);
        while let Some(before) = blocks.pop() {
            if start(before) + before.1 as f64 * gap <= start(block) {
                blocks.push(before);
                break;
            }
            block = (block.0 + before.0, block.1 + before.1);
        }
        blocks.push(block);
    }
    let positions =
        |block: (f64, usize)| (0..block.1).map(move |index| start(block) + index as f64 * gap);
    let mut positions: Vec<f64> = blocks.into_iter().flat_map(positions).collect();
    let mut most = bottom;
    for position in positions.iter_mut().rev() {
        *position = position.min(most);
        most = *position - gap;
    }
    let mut least = top;
    for position in &mut positions {
        *position = position.max(least);
        least = *position + gap;
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_spread_around_their_mean_and_stay_inside() {
        let spread = |wanted: &[f64], top| spread_labels(wanted, 16.0, top, 100.0);
        assert!(spread(&[], 0.0).is_empty());
        assert_eq!(spread(&[10.0, 40.0], 0.0), [10.0, 40.0]);
        assert_eq!(spread(&[50.0, 50.0], 0.0), [42.0, 58.0]);
        assert_eq!(spread(&[0.0, 0.0], 5.0), [5.0, 21.0]);
        assert_eq!(spread(&[100.0, 100.0], 0.0), [84.0, 100.0]);
        assert_eq!(
            spread_labels(&[50.0, 50.0, 60.0, 90.0], 10.0, 0.0, 100.0),
            [130.0 / 3.0, 160.0 / 3.0, 190.0 / 3.0, 90.0]
        );
        let crowd = spread_labels(&[5.0; 4], 16.0, 0.0, 20.0);
        assert!(crowd.windows(2).all(|pair| pair[1] - pair[0] >= 16.0));
    }
}
