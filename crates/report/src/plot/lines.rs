//! Values over sizes, a line a series.

use super::axis::Axis;
use super::canvas::{Canvas, Drawing, flag};
use super::hue::Hue;
use super::labels::apart;
use super::legend;
use crate::Origin;
use crate::markup::{escape, length};
use crate::page::Tip;

/// Between the names at the ends of lines.
const LABEL_PX: f64 = 18.0;

/// Lines over a common axis.
pub(crate) struct LinePlot<'a> {
    pub(crate) origin: &'a Origin,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// Unit of the values.
    pub(crate) unit: &'a str,
    /// In the order in which they are drawn.
    pub(crate) lines: Vec<Line>,
    /// Each place that has values, by its place.
    pub(crate) stops: Vec<Stop>,
}

/// One series.
pub(crate) struct Line {
    pub(crate) hue: Hue,
    pub(crate) name: String,
    /// What is said behind the name: the last value.
    pub(crate) last: String,
    /// By their place; not empty.
    pub(crate) points: Vec<Point>,
}

/// A value and the range in which most of its samples lie.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) low: f64,
    pub(crate) middle: f64,
    pub(crate) high: f64,
    /// Not to be relied on.
    pub(crate) noisy: bool,
}

/// A place of the axis, and what there is to tell about it.
pub(crate) struct Stop {
    pub(crate) x: f64,
    pub(crate) tip: Tip,
}

/// The plot's own box.
struct Area {
    left_px: f64,
    right_px: f64,
    top_px: f64,
    bottom_px: f64,
}

impl LinePlot<'_> {
    pub(crate) fn draw(&self, canvas: &Canvas) -> Drawing {
        let mut drawing = if canvas.narrow {
            legend::draw(canvas, &self.names())
        } else {
            Drawing::default()
        };
        let top_px = drawing.height_px + 22.0;
        let (axis_px, side_px, height_px) = match canvas.narrow {
            true => (34.0, 26.0, 250.0),
            false => (40.0, 196.0, 290.0),
        };
        let area = Area {
            left_px: canvas.left_px + axis_px,
            right_px: canvas.right_px() - side_px,
            top_px,
            bottom_px: top_px + height_px,
        };
        let svg = &mut drawing.svg;
        self.draw_axes(&area, svg);
        let room_px = area.right_px - area.left_px;
        svg.push_str(&flag(
            self.origin,
            area.left_px + 10.0,
            top_px + 8.0,
            room_px,
        ));
        for line in &self.lines {
            self.draw_line(line, &area, svg);
        }
        if !canvas.narrow {
            self.draw_names(&area, svg);
        }
        self.draw_stops(canvas, &area, svg);
        drawing.height_px = area.bottom_px + 30.0;
        drawing
    }

    /// From the highest last value to the lowest.
    fn by_last(&self) -> Vec<&Line> {
        let last = |line: &Line| line.points.last().map_or(0.0, |point| point.middle);
        let mut lines: Vec<&Line> = self.lines.iter().collect();
        lines.sort_by(|a, b| last(b).total_cmp(&last(a)));
        lines
    }

    fn names(&self) -> Vec<(Hue, &str)> {
        let lines = self.by_last();
        lines
            .iter()
            .map(|line| (line.hue, line.name.as_str()))
            .collect()
    }

    fn draw_axes(&self, area: &Area, svg: &mut String) {
        let (left, right) = (length(area.left_px), length(area.right_px));
        let number = length(area.left_px - 8.0);
        for tick in &self.y.ticks {
            let y_px = area.y_px(&self.y, tick.at);
            svg.push_str(&format!(
                "<path class=\"grid\" d=\"M{left} {y}H{right}\"/>\
                 <text class=\"dim end\" x=\"{number}\" y=\"{}\">{}</text>\n",
                length(y_px + 4.5),
                tick.label,
                y = length(y_px),
            ));
        }
        let bottom = length(area.bottom_px);
        svg.push_str(&format!(
            "<text class=\"dim end\" x=\"{number}\" y=\"{}\">{}</text>\
             <path class=\"rule\" d=\"M{left} {bottom}H{right}\"/>\n",
            length(area.top_px - 13.0),
            escape(self.unit),
        ));
        for tick in &self.x.ticks {
            svg.push_str(&format!(
                "<path class=\"rule\" d=\"M{x} {bottom}v5\"/>\
                 <text class=\"dim mid\" x=\"{x}\" y=\"{}\">{}</text>\n",
                length(area.bottom_px + 20.0),
                tick.label,
                x = length(area.x_px(&self.x, tick.at)),
            ));
        }
    }

    fn draw_line(&self, line: &Line, area: &Area, svg: &mut String) {
        let class = line.hue.class();
        let place = |point: &Point, value: f64| {
            let (x_px, y_px) = (area.x_px(&self.x, point.x), area.y_px(&self.y, value));
            format!("{} {}", length(x_px), length(y_px))
        };
        if let [only] = line.points.as_slice() {
            svg.push_str(&format!(
                "<path class=\"line l{class}\" d=\"M{}L{}\"/>\n",
                place(only, only.low),
                place(only, only.high)
            ));
            return;
        }
        let path = |places: Vec<String>| places.join("L");
        let highs = line.points.iter().map(|point| place(point, point.high));
        let lows = line
            .points
            .iter()
            .rev()
            .map(|point| place(point, point.low));
        let middles = line.points.iter().map(|point| place(point, point.middle));
        svg.push_str(&format!(
            "<path class=\"band {class}\" d=\"M{}Z\"/><path class=\"line l{class}\" d=\"M{}\"/>\n",
            path(highs.chain(lows).collect()),
            path(middles.collect()),
        ));
    }

    /// Beside the plot, each near the end of its line.
    fn draw_names(&self, area: &Area, svg: &mut String) {
        let ends: Vec<(&Line, Point)> = self
            .by_last()
            .into_iter()
            .filter_map(|line| line.points.last().map(|point| (line, *point)))
            .collect();
        let y_px = |(_, point): &(&Line, Point)| area.y_px(&self.y, point.middle);
        let wanted: Vec<f64> = ends.iter().map(y_px).collect();
        let places = apart(&wanted, LABEL_PX, area.top_px, area.bottom_px);
        for (((line, point), end_px), label_px) in ends.iter().zip(&wanted).zip(&places) {
            let end_x_px = area.x_px(&self.x, point.x);
            let (x_px, class) = (area.right_px + 20.0, line.hue.class());
            // Lines that end early are known by their mark alone.
            if end_x_px + 1.0 >= area.right_px {
                svg.push_str(&format!(
                    "<path class=\"lead l{class}\" style=\"stroke-dasharray:none\" d=\"M{} {}L{} {}\"/>",
                    length(end_x_px + 5.0),
                    length(*end_px),
                    length(x_px - 2.0),
                    length(*label_px)
                ));
            }
            svg.push_str(&format!(
                "{}<text x=\"{}\" y=\"{}\">{} <tspan class=\"dim\">{}</tspan></text>\n",
                legend::sample(line.hue, x_px, *label_px),
                length(x_px + 31.0),
                length(label_px + 4.5),
                escape(&line.name),
                escape(&line.last),
            ));
        }
    }

    /// Marks, and what is shown of those at one place.
    fn draw_stops(&self, canvas: &Canvas, area: &Area, svg: &mut String) {
        let places: Vec<f64> = self
            .stops
            .iter()
            .map(|stop| area.x_px(&self.x, stop.x))
            .collect();
        let (top, height) = (length(area.top_px), length(area.bottom_px - area.top_px));
        for (index, stop) in self.stops.iter().enumerate() {
            let x_px = places[index];
            svg.push_str(&canvas.part("stop", index, &stop.tip));
            svg.push_str(&format!(
                "<path class=\"cursor\" d=\"M{} {top}v{height}\"/>",
                length(x_px)
            ));
            for line in &self.lines {
                let here = line.points.iter().filter(|point| point.x == stop.x);
                for point in here {
                    let y_px = area.y_px(&self.y, point.middle);
                    if point.noisy {
                        svg.push_str(&ring(line.hue, x_px, y_px));
                    }
                    svg.push_str(&line.hue.marker(x_px, y_px));
                }
            }
            let before = index.checked_sub(1).map(|before| places[before]);
            let start_px = before.map_or(area.left_px, |before| (before + x_px) / 2.0);
            let end_px = places
                .get(index + 1)
                .map_or(area.right_px, |next| (next + x_px) / 2.0);
            svg.push_str(&format!(
                "<rect class=\"hit\" x=\"{}\" y=\"{top}\" width=\"{}\" height=\"{height}\"/></g>\n",
                length(start_px),
                length(end_px - start_px),
            ));
        }
    }
}

/// Around the mark of a value that is not to be relied on.
fn ring(hue: Hue, x_px: f64, y_px: f64) -> String {
    let (x, y) = (length(x_px), length(y_px));
    format!(
        "<circle class=\"l{} noisy\" cx=\"{x}\" cy=\"{y}\" r=\"8\"/>",
        hue.class()
    )
}

impl Area {
    fn x_px(&self, axis: &Axis, value: f64) -> f64 {
        self.left_px + axis.share(value) * (self.right_px - self.left_px)
    }

    fn y_px(&self, axis: &Axis, value: f64) -> f64 {
        self.bottom_px - axis.share(value) * (self.bottom_px - self.top_px)
    }
}
