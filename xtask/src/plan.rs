//! Steps, and what became of them.

use std::time::{Duration, Instant};

/// How a step ended; an error is a failure with its reason.
pub(crate) type Result = anyhow::Result<Done>;

/// A step that did not fail.
pub(crate) enum Done {
    Passed,
    /// Could not run here, and why.
    Skipped(String),
}

struct Record {
    name: String,
    took: Duration,
    result: Result,
}

/// Runs steps one after the other and keeps their results.
pub(crate) struct Plan {
    filter: String,
    records: Vec<Record>,
}

impl Plan {
    /// Only steps whose name holds `filter` run.
    pub(crate) fn new(filter: &str) -> Self {
        Self {
            filter: filter.to_owned(),
            records: Vec::new(),
        }
    }

    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Result) {
        if !name.contains(&self.filter) {
            return;
        }
        println!("\n==== {name}");
        let start = Instant::now();
        let result = work();
        if let Err(error) = &result {
            println!("FAILED: {error:#}");
        }
        self.records.push(Record {
            name: name.to_owned(),
            took: start.elapsed(),
            result,
        });
    }

    /// Print the table. Whether steps ran, and none failed.
    pub(crate) fn finish(self) -> bool {
        let (mut passed, mut failed, mut skipped) = (0, 0, 0);
        println!();
        for record in &self.records {
            let verdict = match &record.result {
                Ok(Done::Passed) => {
                    passed += 1;
                    "ok".to_owned()
                }
                Ok(Done::Skipped(reason)) => {
                    skipped += 1;
                    format!("skipped: {reason}")
                }
                Err(error) => {
                    failed += 1;
                    format!("FAILED: {error:#}")
                }
            };
            println!(
                "{:<32}{:>7.1} s  {verdict}",
                record.name,
                record.took.as_secs_f64()
            );
        }
        println!("{passed} passed, {failed} failed, {skipped} skipped");
        failed == 0 && !self.records.is_empty()
    }
}
