//! A comparison as bars, in a standalone picture and for the page.

use super::{Compare, CompareRow, LinkBasis, fastest_gb_per_s};
use crate::format::{factor_label, percent, rate, short_size};
use crate::page::{Tooltip, TooltipRow};
use crate::plot::standalone_svg::Picture;
use crate::plot::{Axis, BarChart, BarGroup, BarLimit, ChartBar, SeriesStyle};
use crate::{CopyStats, MemoryKind, Route};

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

    pub(super) fn title(&self) -> String {
        let size = short_size(self.bytes);
        format!("Copies of {size} by kind of host memory")
    }

    pub(super) fn about(&self) -> String {
        let copies = self.copies_label();
        format!(
            "{copies}; × is relative to pageable memory in the same direction; GB is 10⁹ bytes."
        )
    }

    /// The limit of the link, and its source.
    pub(super) fn limit_label(&self) -> String {
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
    pub(super) fn chart(&self) -> BarChart<'_> {
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
    pub(super) fn times(&self, row: &CompareRow, route: Route) -> String {
        let pageable = self.row(MemoryKind::Pageable);
        pageable.map_or_else(String::new, |pageable| {
            factor_label(row.stats(route).gb_per_s / pageable.stats(route).gb_per_s)
        })
    }

    pub(super) fn share(&self, stats: &CopyStats) -> String {
        let share = stats.gb_per_s / self.limit.gb_per_s;
        match share.is_finite() && share < 1e6 {
            true => percent(share),
            false => "–".to_owned(),
        }
    }
}
