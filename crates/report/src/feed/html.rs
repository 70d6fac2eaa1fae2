//! A feed as a page.

use super::Feed;
use crate::markup::escape;
use crate::page::{
    Cell, FIGURES_STYLE, Page, TIPS_SCRIPT, Table, Tip, TipRow, notes, section, tips_json,
};
use crate::plot::{Axis, Bar, BarChart, BarGroup, Hue, NARROW, Part, WIDE, style};
use crate::timeline::layout::words::percent;

impl Feed {
    /// One page to open in a browser, with or without a network: the shares of the time as bars and
    /// in a table, the rates and the advice above them.
    #[must_use]
    pub fn to_html(&self) -> String {
        let chart = self.chart();
        let label = "Shares of the time, by stage";
        let mut drawings = String::new();
        for (canvas, class) in [(WIDE, "wide"), (NARROW, "narrow")] {
            drawings.push_str(&chart.draw(&canvas).inline(&canvas, class, label));
        }
        let mut header = String::new();
        if !self.complete {
            let words = self.job.asked.interrupted();
            header.push_str(&format!("<p class=\"advice\">Interrupted: {words}.</p>\n"));
        }
        for sentence in [format!("{}.", self.rates())]
            .into_iter()
            .chain(self.advice())
        {
            header.push_str(&format!("<p class=\"advice\">{}</p>\n", escape(&sentence)));
        }
        let lines = self.job.lines().into_iter();
        let (counts, gpu) = (self.counts(), self.gpu_line());
        let lines = lines.chain(counts.lines().map(str::to_owned)).chain(gpu);
        for line in lines {
            header.push_str(&format!("<p class=\"dim\">{}</p>\n", escape(&line)));
        }
        let more = [self.host_line()].into_iter().flatten();
        let more: Vec<String> = more.chain(self.notes.iter().cloned()).collect();
        header.push_str(&notes(&more));
        let page = Page {
            title: super::text::TITLE,
            origin: &self.origin,
            styles: &[&style::sheet(), FIGURES_STYLE],
            header: &header,
            body: &format!(
                "<main>\n{}{}</main>\n",
                section("Where the time went", "shares of it", label, &drawings),
                self.table_html()
            ),
            data: &tips_json(&chart.tips()),
            scripts: &[TIPS_SCRIPT],
        };
        page.html()
    }

    /// What has a share of the time: of whom, what, how large.
    fn shares(&self) -> Vec<(&'static str, &'static str, f64)> {
        let mut shares: Vec<_> = self
            .stages
            .iter()
            .map(|stage| ("reading threads", stage.name, stage.share))
            .collect();
        let link = self.link_busy_share.map(|busy| ("link", "busy", busy));
        // Of the same time as the others: before the first kernel and behind the last, too.
        let gpu = self.gpu_busy_share().map(|busy| ("GPU", "busy", busy));
        shares.extend(link.into_iter().chain(gpu));
        shares
    }

    fn chart(&self) -> BarChart<'_> {
        let mut groups: Vec<BarGroup> = Vec::new();
        for (at, (who, what, share)) in self.shares().into_iter().enumerate() {
            let bar = Bar {
                caption: what.to_owned(),
                parts: vec![Part {
                    value: share * 100.0,
                    hue: match who {
                        "link" => Hue::Vermilion,
                        "GPU" => Hue::Green,
                        _ => [Hue::Blue, Hue::Ochre, Hue::Pink, Hue::Grey][at % 4],
                    },
                    soft: false,
                }],
                label: percent(share),
                tip: Tip {
                    title: format!("{who}, {what}"),
                    rows: vec![TipRow::plain("share of the time", precise(share))],
                },
            };
            match groups.last_mut().filter(|group| group.name == who) {
                Some(group) => group.bars.push(bar),
                None => groups.push(BarGroup {
                    name: who.to_owned(),
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
        let row = |(who, what, share): (&str, &str, f64)| {
            let cells: Vec<Cell> = vec![what.into(), precise(share).into()];
            (who.to_owned(), cells)
        };
        let table = Table {
            id: "figures",
            caption: "Shares of the time from the start until all was done",
            columns: ["Who", "What", "Share"].map(str::to_owned).into(),
            rows: self.shares().into_iter().map(row).collect(),
        };
        table.html()
    }
}

fn precise(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}
