//! A comparison as a page.

use super::{Compare, Row};
use crate::Route;
use crate::markup::escape;
use crate::page::{Cell, FIGURES_STYLE, Page, TIPS_SCRIPT, Table, notes, section, tips_json};
use crate::plot::figures::{range, rate};
use crate::plot::{NARROW, WIDE, style};

impl Compare {
    /// One page to open in a browser, with or without a network: what [`Self::to_svg`] shows, with
    /// exact figures where one points, and in a table. The advice stands on top.
    #[must_use]
    pub fn to_html(&self) -> String {
        let chart = self.chart();
        let label = "Bandwidth by kind of memory and direction";
        let mut drawings = String::new();
        for (canvas, class) in [(WIDE, "wide"), (NARROW, "narrow")] {
            drawings.push_str(&chart.draw(&canvas).inline(&canvas, class, label));
        }
        let sentence = |text: &String| format!("<p class=\"advice\">{}</p>\n", escape(text));
        let mut header: String = self.advice().iter().map(sentence).collect();
        header.push_str(&format!("<p class=\"dim\">{}</p>\n", escape(&self.about())));
        header.push_str(&notes(&self.notes));
        let page = Page {
            title: &self.title(),
            origin: &self.origin,
            styles: &[&style::sheet(), FIGURES_STYLE],
            header: &header,
            body: &format!(
                "<main>\n{}{}</main>\n",
                section("Bandwidth", "longer is better", label, &drawings),
                self.table_html()
            ),
            data: &tips_json(&chart.tips()),
            scripts: &[TIPS_SCRIPT],
        };
        page.html()
    }

    fn table_html(&self) -> String {
        let columns = [
            "Memory",
            "Host to device",
            "×",
            "of the limit",
            "Device to host",
            "×",
            "of the limit",
            "Getting the memory",
        ];
        let table = Table {
            id: "figures",
            caption: &format!(
                "GB/s by the median, and from the 5th to the 95th percentile; {}",
                self.limit_words()
            ),
            columns: columns.map(str::to_owned).into(),
            rows: self.rows.iter().map(|row| self.table_row(row)).collect(),
        };
        table.html()
    }

    fn table_row(&self, row: &Row) -> (String, Vec<Cell>) {
        let mut cells = Vec::new();
        for route in [Route::H2d, Route::D2h] {
            let figure = row.figure(route);
            cells.extend([
                Cell {
                    text: rate(figure.gb_per_s),
                    below: range(self.bytes, figure),
                },
                self.times(row, route).into(),
                self.share(figure).into(),
            ]);
        }
        cells.push(row.getting().into());
        (row.memory.name().to_owned(), cells)
    }
}
