//! A trace as a page.

use super::{ProgramTrace, TraceFinding, TraceSite};
use crate::Environment;
use crate::format::{duration, rounded_size};
use crate::markup::{escape, paragraph};
use crate::page::{TableCell, Tooltip, TooltipRow, figures_page, notes, table};
use crate::plot::{Axis, BarChart, BarGroup, ChartBar, SeriesStyle, stylesheet};
use crate::text_layout::{display_width, sanitize};

/// Sites in the chart; the table shows more.
const BARS: usize = 10;

const NS_PER_MS: f64 = 1e6;

/// Room for a place beside its bars.
const PLACE_COLUMNS: usize = 36;

impl ProgramTrace {
    /// A page that works offline: findings, the sites with the most time as bars, and all sites as a table.
    #[must_use]
    pub fn to_html(&self, environment: &Environment) -> String {
        let mut tooltips = Vec::new();
        let mut body = self.findings_html();
        let chart = self.chart();
        if !chart.groups.is_empty() {
            let label = "Time by call site, and what pinned memory or the express lane would take";
            body.push_str(&chart.section(
                "Time by site",
                "shorter is better",
                label,
                &mut tooltips,
            ));
        }
        body.push_str(&self.sites_html());
        let header = paragraph("dim", &format!("{}: {}", self.command, self.summary()))
            + &notes(&self.notes);
        figures_page(
            super::text::TITLE,
            &self.origin,
            environment,
            &stylesheet(),
            &header,
            &body,
            &tooltips,
        )
    }

    fn findings_html(&self) -> String {
        let findings: String = self.findings.iter().map(TraceFinding::html).collect();
        let findings = match findings.is_empty() {
            true => paragraph("dim", "Nothing is wrong as far as this can be seen."),
            false => findings,
        };
        format!("<section class=\"details\">\n<h2>Findings</h2>\n{findings}</section>\n")
    }

    fn chart(&self) -> BarChart<'_> {
        let sites = self
            .shown()
            .iter()
            .filter(|site| site.ns.is_some_and(|ns| ns > 0));
        let groups: Vec<BarGroup> = sites.take(BARS).map(group).collect();
        let bars = groups.iter().flat_map(|group| &group.bars);
        let longest = bars.map(|bar| bar.value).fold(0.001, f64::max);
        BarChart {
            origin: &self.origin,
            axis: Axis::numbers(longest, 5),
            unit: "ms",
            note_title: "",
            groups,
            limit: None,
        }
    }

    fn sites_html(&self) -> String {
        let time = match self.origin.is_measured() {
            true => "Time",
            false => "Time*",
        };
        let columns = [
            "Where", "What", "Lost", time, "Pinned*", "Express*", "Calls",
        ];
        let row = |site: &TraceSite| {
            let time = |ns: Option<u64>| TableCell::from(ns.map_or("–".to_owned(), duration));
            let cells = vec![
                site.what().into(),
                time(site.lost_ns),
                time(site.ns),
                time(site.pinned_ns),
                time(site.express_ns),
                TableCell {
                    text: site.calls.to_string(),
                    below: match site.bytes {
                        0 => String::new(),
                        bytes => rounded_size(bytes),
                    },
                },
            ];
            (site.place.clone(), cells)
        };
        let caption = format!(
            "Call sites, the most time lost first. {}",
            self.computed_note()
        );
        table("figures", &caption, &columns, self.shown().iter().map(row))
    }
}

/// The times of a site as bars.
fn group(site: &TraceSite) -> BarGroup {
    let times = [
        ("now", site.ns, SeriesStyle::Vermilion),
        ("pinned", site.pinned_ns, SeriesStyle::Blue),
        ("express", site.express_ns, SeriesStyle::Green),
    ];
    let bars = times.into_iter().filter_map(|(caption, ns, style)| {
        let ns = ns?;
        Some(ChartBar {
            caption: caption.to_owned(),
            value: ns as f64 / NS_PER_MS,
            style,
            soft: false,
            label: duration(ns),
            tooltip: Tooltip {
                title: site.place.clone(),
                rows: vec![TooltipRow::plain(
                    &site.what(),
                    format!("{caption}: {}", duration(ns)),
                )],
            },
        })
    });
    BarGroup {
        name: shortened(&site.place),
        note: String::new(),
        bars: bars.collect(),
    }
}

/// The end of a place, which tells more than the folders that it begins with. The table has all of it.
fn shortened(place: &str) -> String {
    let place = sanitize(place);
    let mut columns = 0;
    let fits = |(_, c): &(usize, char)| {
        columns += display_width(c.encode_utf8(&mut [0; 4]));
        columns <= PLACE_COLUMNS
    };
    match place.char_indices().rev().take_while(fits).last() {
        Some((start, _)) if start > 0 => format!("…{}", &place[start..]),
        _ => place,
    }
}

impl TraceFinding {
    fn html(&self) -> String {
        let items = self
            .places
            .iter()
            .map(|place| format!("<li>{}</li>\n", escape(place)));
        let items: String = items.collect();
        format!(
            "<h3>{}</h3>\n{}<ul>\n{items}</ul>\n{}",
            escape(self.title),
            paragraph("dim", &self.cost()),
            paragraph("advice", self.remedy)
        )
    }
}
