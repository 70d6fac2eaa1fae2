//! A sweep compared with an earlier one.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Bench, BenchPoint};
use crate::format::{duration, exact_size, sanitize};
use crate::versioned_json::versioned_json;
use crate::{CopyStats, Origin};

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
        let mut text = format!("\nCompared with {}\n", sanitize(&self.file));
        if let Some(before) = &self.other_origin {
            let (before, now) = (sanitize(before), sanitize(&now.line()));
            text.push_str(&format!(
                "WARNING: different devices. Before: {before}. Now: {now}.\n"
            ));
        }
        let slower = self.of(BenchVerdict::Slower);
        text.extend(slower.map(|change| format!("SLOWER  {}\n", line(change))));
        let faster = self.of(BenchVerdict::Faster);
        text.extend(faster.map(|change| format!("faster  {}\n", line(change))));
        let count = |verdict| self.of(verdict).count();
        text.push_str(&match self.changes.is_empty() {
            true => "Nothing to compare: the runs have no combination in common.\n".to_owned(),
            false => format!(
                "{} slower, {} faster, {} unchanged within the noise of both runs.\n",
                count(BenchVerdict::Slower),
                count(BenchVerdict::Faster),
                count(BenchVerdict::Same)
            ),
        });
        for (points, run) in [
            (&self.only_before, "the earlier run"),
            (&self.only_now, "this run"),
        ] {
            let more = match points.len() {
                0 | 1 => String::new(),
                all => format!(" and {} more", all - 1),
            };
            if let Some(first) = points.first() {
                text.push_str(&format!("Only in {run}: {}{more}.\n", name(first)));
            }
        }
        text
    }

    /// `now` as JSON, with this comparison as the field `against`.
    #[must_use]
    pub fn to_json(&self, now: &Bench) -> String {
        #[derive(Serialize)]
        struct Both<'a> {
            #[serde(flatten)]
            now: &'a Bench,
            against: &'a BenchComparison,
        }
        versioned_json(&Both { now, against: self })
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

fn line(change: &BenchChange) -> String {
    let rate = |ns: u64| change.point.moved_bytes() as f64 / ns.max(1) as f64;
    let (before, now) = (change.before_ns, change.now_ns);
    // Rates of very small copies are meaningless.
    let values = match rate(before).min(rate(now)) < 0.01 {
        true => format!("{} -> {}", duration(before), duration(now)),
        false => format!("{:.2} -> {:.2} GB/s", rate(before), rate(now)),
    };
    let (name, percent) = (name(&change.point), change.longer_percent);
    format!("{name:<40} {percent:+.0}% time  {values}")
}
