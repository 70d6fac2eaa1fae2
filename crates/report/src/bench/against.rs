//! One sweep against an earlier one.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use super::Bench;
use crate::format::size;
use crate::timeline::layout::words::{clean, duration};
use crate::{Figure, MemoryKind, Origin, Route};

/// Less than this many percent is no change, however quiet both runs were.
const LEAST_PERCENT: f64 = 1.0;

/// Fewer copies than this tell nothing of noise: those of a run that was interrupted.
const LEAST_SAMPLES: u32 = 3;

/// A combination.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct BenchPoint {
    /// The host's end.
    pub memory: MemoryKind,
    /// Which way.
    pub route: Route,
    /// Bytes of one copy, one way.
    pub bytes: u64,
}

/// What became of a combination.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BenchVerdict {
    /// It takes longer, beyond the noise of both runs.
    Slower,
    /// It takes less, beyond the noise of both runs.
    Faster,
    /// No more than noise.
    Same,
}

/// A combination that both runs have.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct BenchChange {
    /// Which one.
    #[serde(flatten)]
    pub point: BenchPoint,
    /// The median of the earlier run.
    pub before_ns: u64,
    /// The median of this run.
    pub now_ns: u64,
    /// How much longer it takes now, in percent; negative where it takes less.
    pub longer_percent: f64,
    /// Whether that means anything.
    pub verdict: BenchVerdict,
}

/// One sweep against an earlier one.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BenchAgainst {
    /// Where the earlier one was read from.
    pub file: String,
    /// Its device, where it is not that of this run: then the figures say nothing about either.
    pub other_origin: Option<String>,
    /// What both have, by kind, direction and size.
    pub changes: Vec<BenchChange>,
    /// What only the earlier one has.
    pub only_before: Vec<BenchPoint>,
    /// What only this one has.
    pub only_now: Vec<BenchPoint>,
}

impl BenchAgainst {
    /// Compare. A change counts where the ranges from the 5th to the 95th percentile do not touch, and
    /// where both are made of enough copies; a simulated one is always the same.
    #[must_use]
    pub fn new(before: &Bench, now: &Bench, file: impl Into<String>) -> Self {
        let (old, new) = (figures(before), figures(now));
        let is_known = |run: &Bench, figure: &Figure| {
            figure.samples >= LEAST_SAMPLES || !matches!(run.origin, Origin::Measured { .. })
        };
        let both = new.iter().filter_map(|(point, new)| {
            let old = old.get(point)?;
            let mut change = change(*point, old, new);
            if !is_known(before, old) || !is_known(now, new) {
                change.verdict = BenchVerdict::Same;
            }
            Some(change)
        });
        let missing = |these: &BTreeMap<BenchPoint, Figure>,
                       those: &BTreeMap<BenchPoint, Figure>| {
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

    /// Combinations of a verdict.
    pub fn of(&self, verdict: BenchVerdict) -> impl Iterator<Item = &BenchChange> {
        let changes = self.changes.iter();
        changes.filter(move |change| change.verdict == verdict)
    }

    /// Whether anything takes longer by more than so many percent, beyond noise.
    #[must_use]
    pub fn is_slower_by(&self, percent: f64) -> bool {
        self.of(BenchVerdict::Slower)
            .any(|change| change.longer_percent > percent)
    }

    /// What got slower, what got faster, what only one of the runs has.
    #[must_use]
    pub fn to_text(&self, now: &Origin) -> String {
        let mut text = format!("\nAgainst {}\n", clean(&self.file));
        if let Some(other) = &self.other_origin {
            let _ = writeln!(
                text,
                "WARNING: another device. Then: {}. Now: {}.",
                clean(other),
                clean(&now.line())
            );
        }
        for (verdict, word) in [
            (BenchVerdict::Slower, "SLOWER"),
            (BenchVerdict::Faster, "faster"),
        ] {
            for change in self.of(verdict) {
                let _ = writeln!(text, "{word}  {}", line(change));
            }
        }
        let count = |verdict| self.of(verdict).count();
        let _ = match self.changes.is_empty() {
            true => writeln!(
                text,
                "Nothing to compare: the runs have no copies in common."
            ),
            false => writeln!(
                text,
                "{} slower, {} faster, {} the same within the noise of both runs.",
                count(BenchVerdict::Slower),
                count(BenchVerdict::Faster),
                count(BenchVerdict::Same)
            ),
        };
        for (points, whose) in [
            (&self.only_before, "the earlier run"),
            (&self.only_now, "this run"),
        ] {
            if let Some(first) = points.first() {
                let more = match points.len() {
                    1 => String::new(),
                    all => format!(" and {} more", all - 1),
                };
                let _ = writeln!(text, "Only in {whose}: {}{more}.", name(first));
            }
        }
        text
    }

    /// `now` as JSON, with this under the name `against`.
    #[must_use]
    pub fn to_json(&self, now: &Bench) -> String {
        #[derive(Serialize)]
        struct Both<'a> {
            #[serde(flatten)]
            now: &'a Bench,
            against: &'a BenchAgainst,
        }
        let both = Both { now, against: self };
        let mut json = serde_json::to_string_pretty(&both).expect("plain data becomes JSON");
        json.push('\n');
        json
    }
}

/// All figures of a run. The smallest copy is there once, also where it is one of the sizes.
fn figures(bench: &Bench) -> BTreeMap<BenchPoint, Figure> {
    let point = |memory, route, bytes| BenchPoint {
        memory,
        route,
        bytes,
    };
    let latencies = bench.latencies.iter();
    let latencies = latencies.map(|line| (point(line.memory, line.route, line.bytes), line.figure));
    let lines = bench.lines.iter();
    let lines = lines.map(|line| (point(line.memory, line.route, line.bytes), line.figure));
    latencies.chain(lines).collect()
}

fn change(point: BenchPoint, before: &Figure, now: &Figure) -> BenchChange {
    let ratio = now.median_ns as f64 / before.median_ns.max(1) as f64;
    let longer_percent = (ratio - 1.0) * 100.0;
    let verdict = match longer_percent {
        longer if longer >= LEAST_PERCENT && now.p5_ns > before.p95_ns => BenchVerdict::Slower,
        longer if longer <= -LEAST_PERCENT && now.p95_ns < before.p5_ns => BenchVerdict::Faster,
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
    format!(
        "{}, {}, {}",
        point.memory.name(),
        point.route.words(),
        size(point.bytes)
    )
}

fn line(change: &BenchChange) -> String {
    let BenchPoint { route, bytes, .. } = change.point;
    let rate = |ns: u64| route.moved(bytes) as f64 / ns.max(1) as f64;
    let (before, now) = (change.before_ns, change.now_ns);
    // A rate says nothing about very small copies.
    let values = match rate(before).min(rate(now)) < 0.01 {
        true => format!("{} -> {}", duration(before), duration(now)),
        false => format!("{:.2} -> {:.2} GB/s", rate(before), rate(now)),
    };
    let (name, percent) = (name(&change.point), change.longer_percent);
    format!("{name:<40} {percent:+.0}% time  {values}")
}
