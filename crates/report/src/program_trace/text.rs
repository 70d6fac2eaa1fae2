//! A trace as text.

use super::{ProgramTrace, TraceFinding, TraceSite};
use crate::format::{counted, duration, rounded_size};
use crate::text_layout::{notes_as_text, sanitize, table_row};

pub(super) const TITLE: &str = "Trace";

/// The first column only indents: what a row is about stands in the line above it.
const WIDTHS: [usize; 7] = [4, 12, 12, 12, 12, 12, 12];

/// Places of a finding that are listed.
const PLACES: usize = 3;

impl ProgramTrace {
    /// The origin, sites by time lost, and findings.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "=== {TITLE} ===\n{}: {}\n{}\n",
            sanitize(&self.command),
            self.summary(),
            sanitize(&self.origin.line())
        );
        text.push_str(&notes_as_text(&self.notes));
        text.push('\n');
        text.push_str(&self.table());
        text.push_str(&self.findings_text());
        text
    }

    /// Calls, processes and time.
    pub(super) fn summary(&self) -> String {
        let calls = counted(self.calls, "call");
        let processes = match self.processes {
            1 => String::new(),
            processes => format!(" of {}", counted(processes, "process")),
        };
        let elapsed = self
            .elapsed_ns
            .map_or(String::new(), |ns| format!(" in {}", duration(ns)));
        format!("{calls}{processes}{elapsed}")
    }

    fn table(&self) -> String {
        if self.sites.is_empty() {
            return "No copies, pinned memory or waits.\n".to_owned();
        }
        let time = self.time_name();
        let names = ["", "lost", time, "pinned*", "express*", "calls", "bytes"];
        let mut text = table_row(&WIDTHS, &names);
        for site in self.shown() {
            let what = site.what();
            text.push_str(&format!("{}: {what}\n", sanitize(&site.place)));
            text.push_str(&table_row(&WIDTHS, &row(site)));
        }
        let hidden = self.sites.len() - self.shown().len();
        if hidden > 0 {
            text.push_str(&format!(
                "… and {}; --top shows more.\n",
                counted(hidden as u64, "site")
            ));
        }
        text + &self.computed_note() + "\n"
    }

    fn findings_text(&self) -> String {
        if self.findings.is_empty() {
            return "\nNothing is wrong as far as this can be seen.\n".to_owned();
        }
        let mut text = format!("\n{}\n", counted(self.findings.len() as u64, "finding"));
        for (number, finding) in (1..).zip(&self.findings) {
            text.push_str(&format!(
                "{number}. {}: {}\n",
                finding.title,
                finding.cost()
            ));
            for place in finding.places.iter().take(PLACES) {
                text.push_str(&format!("   at {}\n", sanitize(place)));
            }
            let hidden = finding.places.len().saturating_sub(PLACES);
            if hidden > 0 {
                text.push_str(&format!(
                    "   and {}\n",
                    counted(hidden as u64, "other place")
                ));
            }
            text.push_str(&format!("   {}\n", finding.remedy));
        }
        text
    }
}

fn row(site: &TraceSite) -> [String; 7] {
    let time = |ns: Option<u64>| ns.map_or("–".to_owned(), duration);
    [
        String::new(),
        time(site.lost_ns),
        time(site.ns),
        time(site.pinned_ns),
        time(site.express_ns),
        site.calls.to_string(),
        match site.bytes {
            0 => "–".to_owned(),
            bytes => rounded_size(bytes),
        },
    ]
}

impl TraceFinding {
    /// Calls, bytes and time.
    pub(super) fn cost(&self) -> String {
        let mut cost = counted(self.calls, "call");
        if self.bytes > 0 {
            cost.push_str(&format!(", {}", rounded_size(self.bytes)));
        }
        if let Some(ns) = self.lost_ns.filter(|ns| *ns > 0) {
            cost.push_str(&format!(", about {} lost", duration(ns)));
        }
        cost
    }
}
