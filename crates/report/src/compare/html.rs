//! A comparison as a page.

use super::{Compare, CompareRow};
use crate::Route;
use crate::format::rate;
use crate::markup::paragraph;
use crate::page::{HtmlTable, TableCell, figures_page, notes};
use crate::plot::stylesheet;

impl Compare {
    /// A page that works offline: the content of [`Self::to_svg`] with exact figures in tooltips and in a
    /// table. The advice is on top.
    #[must_use]
    pub fn to_html(&self) -> String {
        let advice = self.advice();
        let advice = advice.iter().map(|sentence| paragraph("advice", sentence));
        let mut header: String = advice.collect();
        header.push_str(&paragraph("dim", &self.about()));
        header.push_str(&notes(&self.notes));
        let mut tooltips = Vec::new();
        let label = "Bandwidth by kind of memory and direction";
        let chart = self.chart();
        let mut body = chart.section("Bandwidth", "longer is better", label, &mut tooltips);
        body.push_str(&self.table_html());
        let (title, style) = (self.title(), stylesheet());
        figures_page(&title, &self.origin, &style, &header, &body, &tooltips)
    }

    fn table_html(&self) -> String {
        let table = HtmlTable {
            id: "figures",
            caption: &format!(
                "Median GB/s, and 5th to 95th percentile; {}",
                self.limit_label()
            ),
            columns: vec![
                "Memory",
                "Host to device",
                "×",
                "of limit",
                "Device to host",
                "×",
                "of limit",
                "Allocation",
            ],
            rows: self.rows.iter().map(|row| self.table_row(row)).collect(),
        };
        table.html()
    }

    fn table_row(&self, row: &CompareRow) -> (String, Vec<TableCell>) {
        let mut cells = Vec::new();
        for route in [Route::H2d, Route::D2h] {
            let stats = row.stats(route);
            cells.extend([
                TableCell {
                    text: rate(stats.gb_per_s),
                    below: stats.rate_range(self.bytes),
                },
                self.times(row, route).into(),
                self.share(stats).into(),
            ]);
        }
        cells.push(row.allocation().into());
        (row.memory.name().to_owned(), cells)
    }
}
