//! A comparison as bars.

use super::{Compare, LinkBasis, Row};
use crate::format::{amount, size};
use crate::page::{Tip, TipRow};
use crate::plot::figures::{factor, range, rate, time_range};
use crate::plot::{Axis, Bar, BarChart, BarGroup, Hue, Limit, Part};
use crate::timeline::layout::words::{duration, percent};
use crate::{Figure, MemoryKind, Origin, Route};

impl Compare {
    /// What the pictures are called.
    pub(super) fn title(&self) -> String {
        format!("Copies of {} by kind of host memory", amount(self.bytes))
    }

    /// How it was measured.
    pub(super) fn about(&self) -> String {
        let copies = match self.origin {
            Origin::Measured { .. } => format!("median of {}", self.repeat),
            _ => "on the simulated clock".to_owned(),
        };
        format!(
            "{} a copy, {copies}; × is against pageable memory in the same direction; GB is 10⁹ bytes.",
            size(self.bytes)
        )
    }

    /// What the link can carry, and how that is known.
    pub(super) fn limit_words(&self) -> String {
        let rate = rate(self.limit.gb_per_s);
        match self.limit.basis {
            LinkBasis::Pcie { generation, width } => {
                format!("link limit {rate} GB/s (PCIe {generation}.0 ×{width})")
            }
            LinkBasis::Profile => format!("link limit {rate} GB/s (by the profile)"),
            LinkBasis::Fastest => format!("fastest copy {rate} GB/s"),
        }
    }

    /// Bars of each kind in both directions, with what getting the memory costs beside them.
    pub(super) fn chart(&self) -> BarChart<'_> {
        let rates = self.rows.iter().flat_map(|row| [row.h2d, row.d2h]);
        let fastest = rates.map(|figure| figure.gb_per_s).fold(0.0, f64::max);
        let group = |row: &Row| BarGroup {
            name: row.memory.name().to_owned(),
            note: row.getting(),
            bars: [Route::H2d, Route::D2h]
                .map(|route| self.bar(row, route))
                .into(),
        };
        BarChart {
            origin: &self.origin,
            axis: Axis::numbers(fastest.max(self.limit.gb_per_s), 7),
            unit: "GB/s",
            note_title: "getting the memory",
            groups: self.rows.iter().map(group).collect(),
            limit: Some(Limit {
                at: self.limit.gb_per_s,
                label: self.limit_words(),
            }),
        }
    }

    fn bar(&self, row: &Row, route: Route) -> Bar {
        let figure = row.figure(route);
        Bar {
            caption: route.words().to_owned(),
            parts: vec![Part {
                value: figure.gb_per_s,
                hue: Hue::of(row.memory),
                soft: route == Route::D2h,
            }],
            label: format!(
                "{} GB/s\u{2002}{}",
                rate(figure.gb_per_s),
                self.times(row, route)
            )
            .trim_end()
            .to_owned(),
            tip: self.tip(row, route),
        }
    }

    fn tip(&self, row: &Row, route: Route) -> Tip {
        let figure = row.figure(route);
        let mut rows = vec![TipRow::plain(
            "median",
            format!("{} GB/s", rate(figure.gb_per_s)),
        )];
        let range = range(self.bytes, figure);
        if !range.is_empty() {
            rows.push(TipRow::plain("5% – 95%", format!("{range} GB/s")));
        }
        rows.extend([
            TipRow::plain("a copy", time_range(figure)),
            TipRow::plain("against pageable", self.times(row, route)),
            TipRow::plain("of the limit", self.share(figure)),
            TipRow::plain("copies", figure.samples.to_string()),
            TipRow::plain("getting the memory", row.getting()),
        ]);
        Tip {
            title: format!("{}, {}", row.memory.name(), route.words()),
            rows,
        }
    }

    /// How many times as fast as pageable memory; nothing where there is none to compare with.
    pub(super) fn times(&self, row: &Row, route: Route) -> String {
        let pageable = self.row(MemoryKind::Pageable);
        pageable.map_or_else(String::new, |pageable| {
            factor(row.figure(route).gb_per_s / pageable.figure(route).gb_per_s)
        })
    }

    /// How much of the link's limit that is.
    pub(super) fn share(&self, figure: &Figure) -> String {
        let share = figure.gb_per_s / self.limit.gb_per_s;
        match share.is_finite() && share < 1e6 {
            true => percent(share),
            false => "–".to_owned(),
        }
    }
}

impl Row {
    /// What getting the memory takes; nothing where no clock saw it.
    pub(super) fn getting(&self) -> String {
        match self.get_ns {
            0 => "–".to_owned(),
            ns => duration(ns),
        }
    }

    pub(super) fn figure(&self, route: Route) -> &Figure {
        match route {
            Route::D2h => &self.d2h,
            Route::H2d | Route::Both => &self.h2d,
        }
    }
}
