//! A plan as text.

use super::{Plan, PlanAlternative, PlanRun, PlanShape};
use crate::format::{amount, size};
use crate::timeline::layout::words::{clean, columns, duration, roughly};
use crate::timeline::{Exporter, Text};

/// Columns of the labels at the left.
const LABEL_COLUMNS: usize = 12;

impl Plan {
    /// The plan, its alternatives and its timeline, which has the look of `chart`.
    #[must_use]
    pub fn to_text(&self, chart: &Text) -> String {
        let width = chart.width.clamp(Text::WIDTH_MIN, Text::WIDTH_MAX);
        let mut text = format!("Plan: {}\n", self.job.title());
        text.push_str(&clean(&self.origin.line()));
        text.push_str("\n\n");
        for (label, value) in self.lines() {
            text.push_str(&wrapped(label, &value, width));
        }
        text.push('\n');
        text.push_str(&self.table());
        text.push('\n');
        let mut picture = Vec::new();
        chart
            .export(&self.timeline, &mut picture)
            .expect("a vector takes whatever is written");
        text.push_str(&String::from_utf8_lossy(&picture));
        if !self.written.is_empty() {
            text.push('\n');
        }
        for file in &self.written {
            text.push_str(&format!("Written to {file}\n"));
        }
        text
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![("Memory", self.job.places())];
        if let Some(file) = &self.profile_file {
            lines.push(("Profile", clean(file)));
        }
        if let Some(given) = &self.given {
            lines.extend(run_lines("Given", given));
        }
        lines.extend(run_lines("Best", &self.best));
        lines.push((
            "Serial",
            format!(
                "{}, with plain copies of the driver",
                duration(self.serial_ns)
            ),
        ));
        lines.push(("Bottleneck", self.bottleneck.sentence()));
        lines.push(("Advice", self.advice_text.clone()));
        lines
    }

    fn table(&self) -> String {
        let way = |name: &str, shape: Option<&PlanShape>, ns, against: &str| {
            let (chunks, streams, ring) = shape.map_or_else(Default::default, |shape| {
                let chunks = format!("{} x {}", shape.chunks, roughly(shape.chunk_bytes));
                let (streams, ring) = (shape.streams, shape.ring_slots);
                (chunks, streams.to_string(), ring.to_string())
            });
            let time = duration(ns);
            let line =
                format!("{name:<22}{chunks:>18}{streams:>9}{ring:>6}{time:>12}{against:>10}");
            format!("{}\n", line.trim_end())
        };
        let mut text = format!(
            "{:<22}{:>18}{:>9}{:>6}{:>12}{:>10}\n",
            "alternatives", "chunks", "streams", "ring", "time", "vs best"
        );
        if let Some(given) = &self.given {
            let against = against(given.predicted_ns, self.best.predicted_ns);
            text.push_str(&way(
                "given",
                Some(&given.shape),
                given.predicted_ns,
                &against,
            ));
        }
        let best = &self.best;
        let name = format!("best: {}", best.shape.order);
        text.push_str(&way(&name, Some(&best.shape), best.predicted_ns, ""));
        for other in &self.alternatives {
            let PlanAlternative {
                name,
                shape,
                predicted_ns,
                ..
            } = other;
            let against = against(*predicted_ns, best.predicted_ns);
            text.push_str(&way(name, shape.as_ref(), *predicted_ns, &against));
        }
        text
    }
}

fn run_lines(label: &'static str, run: &PlanRun) -> [(&'static str, String); 3] {
    let PlanRun {
        shape,
        predicted_ns,
        in_gb_per_s,
        out_gb_per_s,
        speedup,
    } = run;
    let mut cut = shape.title();
    let exact = size(shape.chunk_bytes);
    if exact != amount(shape.chunk_bytes) {
        let exact = exact.trim_end_matches(" B").replace(' ', "");
        cut.push_str(&format!(" (--chunk {exact})"));
    }
    let mut time = format!(
        "{}, {speedup:.2}x as fast as serial; {in_gb_per_s:.1} GB/s in",
        duration(*predicted_ns)
    );
    if *out_gb_per_s > 0.0 {
        time.push_str(&format!(", {out_gb_per_s:.1} GB/s out"));
    }
    [(label, cut), ("", time), ("", shape.memory())]
}

/// How much longer than the best: `+12%`.
fn against(ns: u64, best_ns: u64) -> String {
    if ns == best_ns {
        return "same".to_owned();
    }
    let percent = (ns as f64 / best_ns.max(1) as f64 - 1.0) * 100.0;
    match percent.abs() {
        ..0.05 => "same".to_owned(),
        0.05..9.95 => format!("{percent:+.1}%"),
        _ => format!("{percent:+.0}%"),
    }
}

/// A label and its text, which goes on below itself where the line is full.
fn wrapped(label: &str, value: &str, width: usize) -> String {
    let room = width - LABEL_COLUMNS;
    let mut text = format!("{label:<LABEL_COLUMNS$}");
    let mut used = 0;
    for word in value.split(' ') {
        let needed = columns(word);
        if used > 0 && used + 1 + needed > room {
            text.push_str(&format!("\n{:LABEL_COLUMNS$}", ""));
            used = 0;
        }
        if used > 0 {
            text.push(' ');
            used += 1;
        }
        text.push_str(word);
        used += needed;
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_to_the_best_in_percent() {
        for (ns, text) in [
            (1_000, "same"),
            (1_023, "+2.3%"),
            (1_930, "+93%"),
            (10_000, "+900%"),
            (800, "-20%"),
        ] {
            assert_eq!(against(ns, 1_000), text);
        }
        assert_eq!(against(1_000_001, 1_000_000), "same");
    }

    #[test]
    fn long_lines_go_on_below() {
        assert_eq!(
            wrapped("Advice", "one two three four", 24),
            "Advice      one two\n            three four\n"
        );
        assert_eq!(wrapped("", "a-word-without-any-end", 20).lines().count(), 1);
    }
}
