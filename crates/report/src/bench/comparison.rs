//! A sweep compared with an earlier one.

use std::collections::BTreeMap;

use serde::Serialize;

use super::plots::capitalized;
use super::{Bench, BenchPoint};
use crate::format::{duration, exact_size};
use crate::markup::{escape, paragraph};
use crate::page::{TableCell, table};
use crate::text_layout::sanitize;
use crate::versioned_json::versioned_json;
use crate::{CopyStats, Environment, Origin};

/// Smaller changes do not count, however little noise there is.
const CHANGE_MIN_PERCENT: f64 = 1.0;

/// Fewer copies, as after an interruption, do not show the noise.
const SAMPLES_MIN: u32 = 3;

/// How a combination changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BenchVerdict {
    /// Slower, beyond the noise of both runs.
    Slower,
    /// Faster, beyond the noise of both runs.
    Faster,
    /// Unchanged, or within the noise.
    Same,
}

/// A combination measured in both runs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct BenchChange {
    /// The combination.
    #[serde(flatten)]
    pub point: BenchPoint,
    /// Median of the earlier run.
    pub before_ns: u64,
    /// Median of this run.
    pub now_ns: u64,
    /// Increase of the time, in percent; negative if it is faster.
    pub longer_percent: f64,
    /// Whether that is significant.
    pub verdict: BenchVerdict,
}

/// A sweep compared with an earlier one.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BenchComparison {
    /// File of the earlier run.
    pub file: String,
    /// Its device if it is another one; then the comparison says nothing about either device.
    pub other_origin: Option<String>,
    /// Combinations of both runs, by kind, direction and size.
    pub changes: Vec<BenchChange>,
    /// Combinations of the earlier run only.
    pub only_before: Vec<BenchPoint>,
    /// Combinations of this run only.
    pub only_now: Vec<BenchPoint>,
}

impl BenchComparison {
    /// Compares two runs. A change is significant if the ranges from the 5th to the 95th percentile do not
    /// touch and both have enough copies; simulated times have no noise.
    #[must_use]
    pub fn new(before: &Bench, now: &Bench, file: impl Into<String>) -> Self {
        let (old, new) = (figures(before), figures(now));
        let is_reliable = |run: &Bench, stats: &CopyStats| {
            stats.samples >= SAMPLES_MIN || !run.origin.is_measured()
        };
        let both = new.iter().filter_map(|(point, new)| {
            let old = old.get(point)?;
            let mut change = change(*point, old, new);
            if !is_reliable(before, old) || !is_reliable(now, new) {
                change.verdict = BenchVerdict::Same;
            }
            Some(change)
        });
        let missing = |these: &BTreeMap<BenchPoint, CopyStats>,
                       those: &BTreeMap<BenchPoint, CopyStats>| {
            let points = these.keys().filter(|point| !those.contains_key(point));
            points.copied().collect()
        };
        Self {
            file: file.into(),
            other_origin: (before.origin != now.origin).then(|| before.origin.line()),
            changes: both.collect(),
            only_before: missing(&old, &new),
            only_now: missing(&new, &old),
        }
    }

    /// Changes with a verdict.
    pub fn of(&self, verdict: BenchVerdict) -> impl Iterator<Item = &BenchChange> {
        let changes = self.changes.iter();
        changes.filter(move |change| change.verdict == verdict)
    }

    /// Whether any combination is significantly slower by more than `percent`.
    #[must_use]
    pub fn is_slower_by(&self, percent: f64) -> bool {
        self.of(BenchVerdict::Slower)
            .any(|change| change.longer_percent > percent)
    }

    /// Slower and faster combinations, and those of only one run.
    #[must_use]
    pub fn to_text(&self, now: &Origin) -> String {
        let mut text = format!("\n{}\n", sanitize(&self.heading()));
        if let Some(warning) = self.warning(now) {
            text.push_str(&format!("WARNING: {}\n", sanitize(&warning)));
        }
        let slower = self.of(BenchVerdict::Slower);
        text.extend(slower.map(|change| format!("SLOWER  {}\n", line(change))));
        let faster = self.of(BenchVerdict::Faster);
        text.extend(faster.map(|change| format!("faster  {}\n", line(change))));
        text.extend(self.summary().into_iter().map(|line| line + "\n"));
        text
    }

    /// The page of `now`, with this comparison.
    #[must_use]
    pub fn to_html(&self, now: &Bench, environment: &Environment) -> String {
        now.html_with(&self.section(&now.origin), environment)
    }

    /// Slower and faster combinations as a section of a page.
    fn section(&self, now: &Origin) -> String {
        let mut html = format!("<section>\n<h2>{}</h2>\n", escape(&self.heading()));
        let warning = self.warning(now);
        html.extend(warning.map(|warning| paragraph("warning", &capitalized(&warning))));
        html.extend(self.summary().iter().map(|line| paragraph("", line)));
        let changed = [
            (BenchVerdict::Slower, "slower"),
            (BenchVerdict::Faster, "faster"),
        ];
        let changed = changed.into_iter().flat_map(|(verdict, word)| {
            let row = move |change: &BenchChange| {
                let (values, unit) = values(change);
                let [before, now] = values.map(|value| value + unit);
                let time = format!("{:+.0}%", change.longer_percent);
                let cells = [word.to_owned(), time, before, now];
                (name(&change.point), cells.map(TableCell::from).into())
            };
            self.of(verdict).map(row)
        });
        let mut changed = changed.peekable();
        if changed.peek().is_some() {
            let caption = "Changes beyond the noise of both runs";
            let columns = ["Copy", "Change", "Time", "Before", "Now"];
            html.push_str(&table("figures-against", caption, &columns, changed));
        }
        html + "</section>\n"
    }

    fn heading(&self) -> String {
        format!("Compared with {}", self.file)
    }

    fn warning(&self, now: &Origin) -> Option<String> {
        let (before, now) = (self.other_origin.as_ref()?, now.line());
        Some(format!("different devices. Before: {before}. Now: {now}."))
    }

    /// How many combinations changed, and those of only one run.
    fn summary(&self) -> Vec<String> {
        let count = |verdict| self.of(verdict).count();
        let mut lines = vec![match self.changes.is_empty() {
            true => "Nothing to compare: the runs have no combination in common.".to_owned(),
            false => format!(
                "{} slower, {} faster, {} unchanged within the noise of both runs.",
                count(BenchVerdict::Slower),
                count(BenchVerdict::Faster),
                count(BenchVerdict::Same)
            ),
        }];
        for (points, run) in [
            (&self.only_before, "the earlier run"),
            (&self.only_now, "this run"),
        ] {
            let more = match points.len() {
                0 | 1 => String::new(),
                all => format!(" and {} more", all - 1),
            };
            let first = points.first();
            lines.extend(first.map(|first| format!("Only in {run}: {}{more}.", name(first))));
        }
        lines
    }

    /// `now` as JSON, with this comparison as the field `against`.
    #[must_use]
    pub fn to_json(&self, now: &Bench, environment: &Environment) -> String {
        #[derive(Serialize)]
        struct Both<'a> {
            #[serde(flatten)]
            now: &'a Bench,
            against: &'a BenchComparison,
        }
        versioned_json(&Both { now, against: self }, environment)
    }
}

/// All figures of a run. The smallest copy occurs once, even if it is one of the sizes.
fn figures(bench: &Bench) -> BTreeMap<BenchPoint, CopyStats> {
    let figures = bench.figures().rev();
    figures.map(|(_, point, stats, _)| (point, stats)).collect()
}

fn change(point: BenchPoint, before: &CopyStats, now: &CopyStats) -> BenchChange {
    let ratio = now.median_ns as f64 / before.median_ns.max(1) as f64;
    let longer_percent = (ratio - 1.0) * 100.0;
    let verdict = match longer_percent {
        longer if longer >= CHANGE_MIN_PERCENT && now.p5_ns > before.p95_ns => BenchVerdict::Slower,
        longer if longer <= -CHANGE_MIN_PERCENT && now.p95_ns < before.p5_ns => {
            BenchVerdict::Faster
        }
        _ => BenchVerdict::Same,
    };
    BenchChange {
        point,
        before_ns: before.median_ns,
        now_ns: now.median_ns,
        longer_percent,
        verdict,
    }
}

fn name(point: &BenchPoint) -> String {
    let (memory, route) = (point.memory.name(), point.route.words());
    format!("{memory}, {route}, {}", exact_size(point.bytes))
}

/// The copy before and now, and the unit of both.
fn values(change: &BenchChange) -> ([String; 2], &'static str) {
    let rate = |ns: u64| change.point.moved_bytes() as f64 / ns.max(1) as f64;
    let times = [change.before_ns, change.now_ns];
    // Rates of very small copies are meaningless.
    match times.iter().any(|ns| rate(*ns) < 0.01) {
        true => (times.map(duration), ""),
        false => (times.map(|ns| format!("{:.2}", rate(ns))), " GB/s"),
    }
}

fn line(change: &BenchChange) -> String {
    let ([before, now], unit) = values(change);
    let (name, percent) = (name(&change.point), change.longer_percent);
    format!("{name:<40} {percent:+.0}% time  {before} -> {now}{unit}")
}
