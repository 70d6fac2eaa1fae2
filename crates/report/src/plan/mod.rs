//! The best way to do a job, as the model computes it.

mod advice;
mod job;
mod shape;
mod text;

pub use advice::{PlanAdvice, PlanBottleneck, PlanPart};
pub use job::PlanJob;
pub use shape::{PlanRun, PlanShape};

use serde::Serialize;

use crate::timeline::Chart;
use crate::{Origin, SCHEMA_VERSION};

/// Another way to do the job.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PlanAlternative {
    /// What it is.
    pub name: String,
    /// Its shape; `None` where nothing overlaps.
    pub shape: Option<PlanShape>,
    /// What it takes.
    pub predicted_ns: u64,
    /// How many times as long as the best plan it takes.
    pub times_best: f64,
}

/// A plan. Nothing of it is measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Plan {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// The profile that it is computed from.
    #[serde(flatten)]
    pub origin: Origin,
    /// Where the profile was: a file, or `None` for a built-in one.
    pub profile_file: Option<String>,
    /// What is to be done.
    pub job: PlanJob,
    /// What it takes one step after the other, with plain copies of the driver.
    pub serial_ns: u64,
    /// The shape that was asked for, if one was.
    pub given: Option<PlanRun>,
    /// The best shape.
    pub best: PlanRun,
    /// What limits the best shape.
    pub bottleneck: PlanBottleneck,
    /// What would help.
    pub advice: PlanAdvice,
    /// The advice as a sentence.
    pub advice_text: String,
    /// Other ways.
    pub alternatives: Vec<PlanAlternative>,
    /// What runs when.
    pub timeline: Chart,
    /// Files that the timeline was written to.
    pub written: Vec<String>,
}

/// The parts of a [`Plan`] that follow from nothing else.
#[derive(Clone, PartialEq, Debug)]
pub struct PlanParts {
    /// The profile that it is computed from.
    pub origin: Origin,
    /// Where the profile was.
    pub profile_file: Option<String>,
    /// What is to be done.
    pub job: PlanJob,
    /// What it takes one step after the other.
    pub serial_ns: u64,
    /// The shape that was asked for and what it takes.
    pub given: Option<(PlanShape, u64)>,
    /// The best shape and what it takes.
    pub best: (PlanShape, u64),
    /// What limits it.
    pub bottleneck: PlanBottleneck,
    /// What would help.
    pub advice: PlanAdvice,
    /// Name, shape and time of other ways.
    pub alternatives: Vec<(String, Option<PlanShape>, u64)>,
    /// What runs when.
    pub timeline: Chart,
}

impl Plan {
    /// A plan; rates and comparisons follow from the parts.
    #[must_use]
    pub fn new(parts: PlanParts) -> Self {
        let PlanParts { job, serial_ns, .. } = parts;
        let run = |(shape, ns)| PlanRun::new(shape, ns, &job, serial_ns);
        let best_ns = parts.best.1;
        let alternatives = parts.alternatives.into_iter();
        Self {
            schema: SCHEMA_VERSION,
            origin: parts.origin,
            profile_file: parts.profile_file,
            job,
            serial_ns,
            given: parts.given.map(run),
            best: run(parts.best),
            bottleneck: parts.bottleneck,
            advice: parts.advice,
            advice_text: parts.advice.sentence(best_ns),
            alternatives: alternatives
                .map(|(name, shape, ns)| PlanAlternative {
                    name,
                    shape,
                    predicted_ns: ns,
                    times_best: shape::ratio(ns, best_ns),
                })
                .collect(),
            timeline: parts.timeline,
            written: Vec::new(),
        }
    }

    /// The plan as JSON, over several lines, with a line end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("plain data becomes JSON");
        json.push('\n');
        json
    }
}
