//! A feed as a page.

use super::Feed;
use crate::Environment;
use crate::format::percent;
use crate::markup::paragraph;
use crate::page::{TableCell, Tooltip, TooltipRow, figures_page, notes, table};
use crate::plot::{Axis, BarChart, BarGroup, ChartBar, SeriesStyle, stylesheet};

impl Feed {
    /// A page that works offline: the rate and the limit in words, the rate and the waits over time, what
    /// each part could do alone, the shares of the time as bars and as a table, and the job.
    #[must_use]
    pub fn to_html(&self, environment: &Environment) -> String {
        let mut tooltips = Vec::new();
        let mut body = self.rate_section(&mut tooltips);
        body.push_str(&self.wait_section(&mut tooltips));
        body.push_str(&self.parts_section(&mut tooltips));
        let label = "Shares of the time, by stage";
        let chart = self.chart();
        let remark = "share of the total";
        body.push_str(&chart.section("Time by stage", remark, label, &mut tooltips));
        body.push_str(&self.table_html());
        body.push_str(&self.details());
        let header = self.header();
        let (title, style) = (super::text::TITLE, stylesheet());
        figures_page(
            title,
            &self.origin,
            environment,
            &style,
            &header,
            &body,
            &tooltips,
        )
    }

    fn header(&self) -> String {
        let mut header = String::new();
        if !self.complete {
            let interrupted = self.job.target.interrupted();
            header.push_str(&paragraph(
                "warning",
                &format!("Interrupted: {interrupted}."),
            ));
        }
        header.push_str(&paragraph("advice", &format!("{}.", self.rates())));
        let advice = self.advice().join(" ");
        if !advice.is_empty() {
            header.push_str(&paragraph("advice", &advice));
        }
        header + &notes(&self.notes)
    }

    /// The job and what became of it.
    fn details(&self) -> String {
        let mut details = self.job.lines();
        details.extend(self.counts().lines().map(str::to_owned));
        details.extend(self.gpu_line());
        details.extend(self.host_line());
        let details = details.iter().map(|line| paragraph("dim", line));
        let details: String = details.collect();
        format!("<section class=\"details\">\n<h2>Job</h2>\n{details}</section>\n")
    }

    /// Whose time, spent on what, and its share.
    fn shares(&self) -> Vec<(&'static str, &'static str, f64)> {
        let stages = self.stages.iter();
        let stages = stages.map(|stage| ("reading threads", stage.name, stage.share));
        let link = self.link_busy_share.map(|busy| ("link", "busy", busy));
        // Like the others, of the total time: also before the first kernel and after the last one.
        let gpu = self.gpu_busy_share().map(|busy| ("GPU", "busy", busy));
        let consumer = self.wait_share();
        let consumer = consumer.map(|share| ("consumer", "waiting for batches", share));
        stages.chain(link).chain(gpu).chain(consumer).collect()
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
                    "consumer" => SeriesStyle::Grey,
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
        let columns = ["Part", "Activity", "Share"];
        let rows = self.shares().into_iter().map(row);
        table("figures", "Shares of the total time", &columns, rows)
    }
}

fn precise(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}
