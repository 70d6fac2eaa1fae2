//! A plan as text.

use super::{Plan, PlanRun, PlanShape};
use crate::format::{duration, exact_size, rounded_size, short_size};
use crate::text_layout::{labelled, sanitize, table_row};
use crate::timeline::{Exporter, Text};

/// Columns of the labels at the left.
const LABEL_COLUMNS: usize = 12;
const WIDTHS: [usize; 6] = [22, 18, 9, 6, 12, 10];

impl Plan {
    /// The plan, its alternatives and its timeline, in the style of `chart`.
    #[must_use]
    pub fn to_text(&self, chart: &Text) -> String {
        let width = chart.width.clamp(Text::WIDTH_MIN, Text::WIDTH_MAX);
        let lines = self.lines().into_iter();
        let lines: String = lines
            .map(|(label, value)| labelled(&format!("{label:<LABEL_COLUMNS$}"), &value, width))
            .collect();
        let mut picture = Vec::new();
        let written = chart.export(&self.timeline, &mut picture);
        written.expect("writing to memory succeeds");
        let mut text = format!(
            "Plan: {}\n{}\n\n{lines}\n{}\n{}",
            self.job.title(),
            sanitize(&self.origin.line()),
            self.table(),
            String::from_utf8_lossy(&picture)
        );
        if !self.written.is_empty() {
            text.push('\n');
        }
        text.extend(
            self.written
                .iter()
                .map(|file| format!("Written to {file}\n")),
        );
        text
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![("Memory", self.job.memory())];
        if let Some(file) = &self.profile_file {
            lines.push(("Profile", sanitize(file)));
        }
        if let Some(given) = &self.given {
            lines.extend(run_lines("Given", given));
        }
        lines.extend(run_lines("Best", &self.best));
        let serial = duration(self.serial_ns);
        lines.extend([
            ("Serial", format!("{serial}, with plain driver copies")),
            ("Bottleneck", self.bottleneck.sentence()),
            ("Advice", self.advice_text.clone()),
        ]);
        lines
    }

    fn table(&self) -> String {
        let best = &self.best;
        let row = |name: &str, shape: Option<&PlanShape>, ns: u64, difference: &str| {
            let [chunks, streams, ring] = shape.map_or_else(Default::default, |shape| {
                let chunks = format!("{} x {}", shape.chunks, rounded_size(shape.chunk_bytes));
                let [streams, ring] = [shape.streams, shape.ring_slots].map(|it| it.to_string());
                [chunks, streams, ring]
            });
            let time = duration(ns);
            table_row(
                &WIDTHS,
                &[name, &chunks, &streams, &ring, &time, difference],
            )
        };
        let other_row = |name: &str, shape: Option<&PlanShape>, ns: u64| {
            row(name, shape, ns, &against(ns, best.predicted_ns))
        };
        let names = ["chunks", "streams", "ring", "time", "vs best"];
        let mut text = table_row(&WIDTHS, &[&["alternatives"], &names[..]].concat());
        if let Some(given) = &self.given {
            text.push_str(&other_row("given", Some(&given.shape), given.predicted_ns));
        }
        let name = format!("best: {}", best.shape.order);
        text.push_str(&row(&name, Some(&best.shape), best.predicted_ns, ""));
        let others = self.alternatives.iter();
        text.extend(others.map(|it| other_row(&it.name, it.shape.as_ref(), it.predicted_ns)));
        text
    }
}

fn run_lines(label: &'static str, run: &PlanRun) -> [(&'static str, String); 3] {
    let shape = &run.shape;
    let mut shape_line = shape.title();
    let exact = exact_size(shape.chunk_bytes);
    if exact != short_size(shape.chunk_bytes) {
        let exact = exact.trim_end_matches(" B").replace(' ', "");
        shape_line.push_str(&format!(" (--chunk {exact})"));
    }
    let mut time = format!(
        "{}, {:.2}x as fast as serial; {:.1} GB/s in",
        duration(run.predicted_ns),
        run.speedup,
        run.in_gb_per_s
    );
    if run.out_gb_per_s > 0.0 {
        time.push_str(&format!(", {:.1} GB/s out", run.out_gb_per_s));
    }
    [(label, shape_line), ("", time), ("", shape.memory())]
}

/// Difference to the best: `+12%`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_to_the_best_in_percent() {
        assert_eq!(
            [1_000, 1_023, 1_930, 10_000, 800].map(|ns| against(ns, 1_000)),
            ["same", "+2.3%", "+93%", "+900%", "-20%"]
        );
        assert_eq!(against(1_000_001, 1_000_000), "same");
        assert_eq!(against(0, 0), "same");
    }
}
