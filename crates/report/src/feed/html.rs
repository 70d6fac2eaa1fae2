//! A feed as a page.

use super::Feed;
use crate::format::percent;
use crate::markup::paragraph;
use crate::page::{HtmlTable, TableCell, Tooltip, TooltipRow, figures_page, notes};
use crate::plot::{Axis, BarChart, BarGroup, ChartBar, SeriesStyle, stylesheet};

impl Feed {
    /// A page that works offline: rates and advice, and the shares of the time as bars and as a table.
    #[must_use]
    pub fn to_html(&self) -> String {
        let mut tooltips = Vec::new();
        let label = "Shares of the time, by stage";
        let chart = self.chart();
        let mut body = chart.section("Time by stage", "share of the total", label, &mut tooltips);
        body.push_str(&self.table_html());
        let header = self.header();
        let (title, style) = (super::text::TITLE, stylesheet());
        figures_page(title, &self.origin, &style, &header, &body, &tooltips)
    }

    fn header(&self) -> String {
        let interrupted =
            (!self.complete).then(|| format!("Interrupted: {}.", self.job.target.interrupted()));
        let advice = interrupted
            .into_iter()
            .chain([format!("{}.", self.rates())])
            .chain(self.advice());
        let counts = self.counts();
        let details = self.job.lines().into_iter();
        let details = details
            .chain(counts.lines().map(str::to_owned))
            .chain(self.gpu_line());
        let mut html: String = advice
            .map(|sentence| paragraph("advice", &sentence))
            .chain(details.map(|line| paragraph("dim", &line)))
            .collect();
        let host = self.host_line().into_iter();
        let notes_and_host: Vec<String> = host.chain(self.notes.iter().cloned()).collect();
        html.push_str(&notes(&notes_and_host));
        html
    }

    /// Whose time, spent on what, and its share.
    fn shares(&self) -> Vec<(&'static str, &'static str, f64)> {
        let stages = self.stages.iter();
        let stages = stages.map(|stage| ("reading threads", stage.name, stage.share));
        let link = self.link_busy_share.map(|busy| ("link", "busy", busy));
        // Like the others, of the total time: also before the first kernel and after the last one.
        let gpu = self.gpu_busy_share().map(|busy| ("GPU", "busy", busy));
        stages.chain(link).chain(gpu).collect()
    }

    fn chart(&self) -> BarChart<'_> {
        let mut groups: Vec<BarGroup> = Vec::new();
        for (index, (owner, activity, share)) in self.shares().into_iter().enumerate() {
            let bar = ChartBar {
                caption: activity.to_owned(),
                value: share * 100.0,
                style: match owner {
                    "link" => SeriesStyle::Vermilion,
                    "GPU" => SeriesStyle::Green,
                    _ => [
                        SeriesStyle::Blue,
                        SeriesStyle::Ochre,
                        SeriesStyle::Pink,
                        SeriesStyle::Grey,
                    ][index % 4],
                },
                soft: false,
                label: percent(share),
                tooltip: Tooltip {
                    title: format!("{owner}, {activity}"),
                    rows: vec![TooltipRow::plain("share of the time", precise(share))],
                },
            };
            match groups.last_mut().filter(|group| group.name == owner) {
                Some(group) => group.bars.push(bar),
                None => groups.push(BarGroup {
                    name: owner.to_owned(),
                    note: String::new(),
                    bars: vec![bar],
                }),
            }
        }
        BarChart {
            origin: &self.origin,
            axis: Axis::numbers(100.0, 5),
            unit: "%",
            note_title: "",
            groups,
            limit: None,
        }
    }

    fn table_html(&self) -> String {
        let row = |(owner, activity, share): (&str, &str, f64)| {
            let cells: Vec<TableCell> = vec![activity.into(), precise(share).into()];
            (owner.to_owned(), cells)
        };
        let table = HtmlTable {
            id: "figures",
            caption: "Shares of the total time",
            columns: vec!["Part", "Activity", "Share"],
            rows: self.shares().into_iter().map(row).collect(),
        };
        table.html()
    }
}

fn precise(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}
