//! A plan as text.

use super::{Plan, PlanRun, PlanShape};
use crate::format::{
    duration, exact_size, labelled, rounded_size, sanitize, short_size, table_row,
};
use crate::timeline::{Exporter, Text};

/// Columns of the labels at the left.
const LABEL_COLUMNS: usize = 12;
const WIDTHS: [usize; 6] = [22, 18, 9, 6, 12, 10];

impl Plan {
    /// The plan, its alternatives and its timeline, in the style of `chart`.
    #[must_use]
    pub fn to_text(&self, chart: &Text) -> String {
        let width = chart.width.clamp(Text::WIDTH_MIN, Text::WIDTH_MAX);
        let mut text = format!("Plan: {}\n", self.job.title());
        text.push_str(&sanitize(&self.origin.line()));
        text.push_str("\n\n");
        for (label, value) in self.lines() {
            let label = format!("{label:<LABEL_COLUMNS$}");
            text.push_str(&labelled(&label, &value, width));
        }
        text.push('\n');
        text.push_str(&self.table());
        text.push('\n');
        let mut picture = Vec::new();
        chart
            .export(&self.timeline, &mut picture)
            .expect("writing to memory succeeds");
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
        let mut lines = vec![("Memory", self.job.memory())];
        if let Some(file) = &self.profile_file {
            lines.push(("Profile", sanitize(file)));
        }
        if let Some(given) = &self.given {
            lines.extend(run_lines("Given", given));
        }
        lines.extend(run_lines("Best", &self.best));
        lines.push((
            "Serial",
            format!("{}, with plain driver copies", duration(self.serial_ns)),
        ));
        lines.push(("Bottleneck", self.bottleneck.sentence()));
        lines.push(("Advice", self.advice_text.clone()));
        lines
    }

    fn table(&self) -> String {
        let best = &self.best;
        let row = |name: &str, shape: Option<&PlanShape>, ns: u64, difference: String| {
            let shape_cells = shape.map_or_else(Default::default, |shape| {
                let chunks = format!("{} x {}", shape.chunks, rounded_size(shape.chunk_bytes));
                [
                    chunks,
                    shape.streams.to_string(),
                    shape.ring_slots.to_string(),
                ]
            });
            let [chunks, streams, ring] = shape_cells;
            let cells = [
                name.to_owned(),
                chunks,
                streams,
                ring,
                duration(ns),
                difference,
            ];
            table_row(&WIDTHS, &cells)
        };
        let names = [
            "alternatives",
            "chunks",
            "streams",
            "ring",
            "time",
            "vs best",
        ];
        let mut text = table_row(&WIDTHS, &names);
        if let Some(given) = &self.given {
            let difference = against(given.predicted_ns, best.predicted_ns);
            let shape = Some(&given.shape);
            text.push_str(&row("given", shape, given.predicted_ns, difference));
        }
        let name = format!("best: {}", best.shape.order);
        let no_difference = String::new();
        text.push_str(&row(
            &name,
            Some(&best.shape),
            best.predicted_ns,
            no_difference,
        ));
        for other in &self.alternatives {
            let difference = against(other.predicted_ns, best.predicted_ns);
            let shape = other.shape.as_ref();
            text.push_str(&row(&other.name, shape, other.predicted_ns, difference));
        }
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
}
