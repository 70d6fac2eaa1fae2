//! A comparison as a page.

use super::{Compare, CompareRow};
use crate::format::rate;
use crate::markup::paragraph;
use crate::page::{TableCell, figures_page, notes, table};
use crate::plot::stylesheet;
use crate::{Environment, Route};

impl Compare {
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
}
