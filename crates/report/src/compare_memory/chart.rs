//! A comparison as bars, in a picture and in a page.

use super::{Compare, CompareRow, LinkBasis, fastest_gb_per_s};
use crate::format::{factor_label, percent, rate, short_size};
use crate::markup::paragraph;
use crate::page::{TableCell, Tooltip, TooltipRow, figures_page, notes, table};
use crate::plot::standalone_svg::Picture;
use crate::plot::{Axis, BarChart, BarGroup, BarLimit, ChartBar, SeriesStyle, stylesheet};
use crate::{CopyStats, Environment, MemoryKind, Route};

impl Compare {
    /// A standalone picture: bars of each kind of memory in both directions, the limit of the link,
    /// allocation times, advice and notes. Follows the viewer's light or dark theme.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let title = self.title();
        let mut picture = Picture::new(&title, &self.origin);
        picture.drawing("", &self.chart().draw(&Picture::CANVAS));
        picture.texts("", &self.advice());
        picture.texts("dim", &[self.about()]);
        picture.texts("dim", &self.notes);
        picture.finish()
    }

    /// A page that works offline: the content of [`Self::to_svg`] with exact figures in tooltips and in a
    /// table. The advice is on top.
    #[must_use]
    pub fn to_html(&self, environment: &Environment) -> String {
        let advice = self.advice();
        let advice = advice.iter().map(|sentence| paragraph("advice", sentence));
        let about = [paragraph("dim", &self.about()), notes(&self.notes)];
        let header: String = advice.chain(about).collect();
        let mut tooltips = Vec::new();
        let label = "Bandwidth by kind of memory and direction";
        let chart = self.chart();
        let mut body = chart.section("Bandwidth", "longer is better", label, &mut tooltips);
        body.push_str(&self.table_html());
        let (title, style) = (self.title(), stylesheet());
        figures_page(
            &title,
            &self.origin,
            environment,
            &style,
            &header,
            &body,
            &tooltips,
        )
    }

    fn table_html(&self) -> String {
        let limit = self.limit_label();
        let figures = match self.repeat {
            1 => "GB/s",
            _ => "Median GB/s, and 5th to 95th percentile",
        };
        let caption = format!("{figures}; {limit}");
        let up = ["Memory", "Host to device", "×", "of limit"];
        let down = ["Device to host", "×", "of limit", "Allocation"];
        let rows = self.rows.iter().map(|row| self.table_row(row));
        table("figures", &caption, &[up, down].concat(), rows)
    }

    fn table_row(&self, row: &CompareRow) -> (String, Vec<TableCell>) {
        let cells = |route: Route| {
            let stats = row.stats(route);
            let rate = TableCell {
                text: rate(stats.gb_per_s),
                below: stats.rate_range(self.bytes),
            };
            [
                rate,
                self.times(row, route).into(),
                self.share(stats).into(),
            ]
        };
        let [up, down] = [Route::H2d, Route::D2h].map(cells);
        let cells = up.into_iter().chain(down).chain([row.allocation().into()]);
        (row.memory.name().to_owned(), cells.collect())
    }

    fn title(&self) -> String {
        let size = short_size(self.bytes);
        format!("Copies of {size} by kind of host memory")
    }

    fn about(&self) -> String {
        let copies = self.copies_label();
        format!(
            "{copies}; × is relative to pageable memory in the same direction; GB is 10⁹ bytes."
        )
    }

    /// The limit of the link, and its source.
    fn limit_label(&self) -> String {
        let rate = rate(self.limit.gb_per_s);
        match self.limit.basis {
            LinkBasis::Pcie { generation, width } => {
                format!("link limit {rate} GB/s (PCIe {generation}.0 ×{width})")
            }
            LinkBasis::Profile => format!("link limit {rate} GB/s (profile)"),
            LinkBasis::Fastest => format!("fastest copy {rate} GB/s"),
        }
    }

    /// Bars of each kind in both directions, with allocation times beside them.
    fn chart(&self) -> BarChart<'_> {
        let fastest = fastest_gb_per_s(&self.rows);
        let group = |row: &CompareRow| BarGroup {
            name: row.memory.name().to_owned(),
            note: row.allocation(),
            bars: [Route::H2d, Route::D2h]
                .map(|route| self.bar(row, route))
                .into(),
        };
        BarChart {
            origin: &self.origin,
            axis: Axis::numbers(fastest.max(self.limit.gb_per_s), 7),
            unit: "GB/s",
            note_title: "allocation",
            groups: self.rows.iter().map(group).collect(),
            limit: Some(BarLimit {
                at: self.limit.gb_per_s,
                label: self.limit_label(),
            }),
        }
    }

    fn bar(&self, row: &CompareRow, route: Route) -> ChartBar {
        let value = row.stats(route).gb_per_s;
        let label = format!("{} GB/s\u{2002}{}", rate(value), self.times(row, route));
        ChartBar {
            caption: route.words().to_owned(),
            value,
            style: SeriesStyle::of(row.memory),
            soft: route == Route::D2h,
            label: label.trim_end().to_owned(),
            tooltip: self.tooltip(row, route),
        }
    }

    fn tooltip(&self, row: &CompareRow, route: Route) -> Tooltip {
        let stats = row.stats(route);
        let figure = if stats.is_single() { "rate" } else { "median" };
        let value = format!("{} GB/s", rate(stats.gb_per_s));
        let mut rows = vec![TooltipRow::plain(figure, value)];
        let range = stats.rate_range(self.bytes);
        if !range.is_empty() {
            rows.push(TooltipRow::plain("5% – 95%", format!("{range} GB/s")));
        }
        rows.extend([
            TooltipRow::plain("time", stats.time_range()),
            TooltipRow::plain("vs pageable", self.times(row, route)),
            TooltipRow::plain("of limit", self.share(stats)),
            TooltipRow::plain("copies", stats.samples.to_string()),
            TooltipRow::plain("allocation", row.allocation()),
        ]);
        Tooltip {
            title: format!("{}, {}", row.memory.name(), route.words()),
            rows,
        }
    }

    /// Factor over pageable memory; empty without it.
    fn times(&self, row: &CompareRow, route: Route) -> String {
        let pageable = self.row(MemoryKind::Pageable);
        pageable.map_or_else(String::new, |pageable| {
            factor_label(row.stats(route).gb_per_s / pageable.stats(route).gb_per_s)
        })
    }

    fn share(&self, stats: &CopyStats) -> String {
        let share = stats.gb_per_s / self.limit.gb_per_s;
        match share.is_finite() && share < 1e6 {
            true => percent(share),
            false => "–".to_owned(),
        }
    }
}
