//! Runs steps in order and reports how each ended.

use std::time::{Duration, Instant};

/// How a step ended; an error means it failed.
pub(crate) type StepResult = anyhow::Result<Outcome>;

/// How a step ended that did not fail.
pub(crate) enum Outcome {
    Passed,
    /// It could not run on this machine, with the reason.
    Skipped(String),
}

/// The steps that have run.
pub(crate) struct Steps<'a> {
    filter: &'a str,
    finished: Vec<(&'static str, Duration, StepResult)>,
}

impl<'a> Steps<'a> {
    /// Runs only the steps whose name contains `filter`.
    pub(crate) fn new(filter: &'a str) -> Self {
        Self {
            filter,
            finished: Vec::new(),
        }
    }

    /// Runs a step, even after earlier ones failed.
    pub(crate) fn run(&mut self, name: &'static str, step: impl FnOnce() -> StepResult) {
        if !name.contains(self.filter) {
            return;
        }
        println!("\n==== {name}");
        let start = Instant::now();
        let result = step();
        if let Err(error) = &result {
            println!("FAILED: {error:#}");
        }
        self.finished.push((name, start.elapsed(), result));
    }

    /// Prints a summary. Returns whether at least one step ran and none failed.
    pub(crate) fn finish(self) -> bool {
        let (mut passed, mut failed, mut skipped) = (0, 0, 0);
        println!();
        for (name, took, result) in &self.finished {
            let (count, verdict) = match result {
                Ok(Outcome::Passed) => (&mut passed, "ok".to_owned()),
                Ok(Outcome::Skipped(reason)) => (&mut skipped, format!("skipped: {reason}")),
                Err(error) => (&mut failed, format!("FAILED: {error:#}")),
            };
            *count += 1;
            println!("{name:<32}{:>7.1} s  {verdict}", took.as_secs_f64());
        }
        println!("{passed} passed, {failed} failed, {skipped} skipped");
        if self.finished.is_empty() {
            eprintln!("error: no step matches `{}`", self.filter);
        }
        failed == 0 && !self.finished.is_empty()
    }
}
