//! Reading a sweep of an earlier run. The file may come from anywhere.

use std::collections::HashSet;

use serde_json::Value;

use super::Bench;
use crate::{Figure, MemoryKind, Route, SCHEMA_VERSION};

/// Figures that a report may hold at most.
const FIGURES_AT_MOST: usize = 100_000;

/// Why a text is no sweep.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchReadError {
    /// It is not JSON.
    #[error("not JSON: {0}")]
    Json(String),
    /// It is JSON, but not what `pinlane --json bench` writes.
    #[error("not a report of `pinlane --json bench`: {0}")]
    Other(String),
    /// It was written by another version.
    #[error("schema {found} where this version reads schema {SCHEMA_VERSION}; measure anew")]
    Schema {
        /// What the report says.
        found: String,
    },
    /// A figure makes no sense.
    #[error("a figure makes no sense: {0}")]
    Figure(String),
}

impl Bench {
    /// Read what [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    /// [`BenchReadError`], whatever the text is.
    pub fn from_json(text: &str) -> Result<Self, BenchReadError> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| BenchReadError::Json(error.to_string()))?;
        match value.get("schema") {
            None => return Err(BenchReadError::Other("it has no `schema`".to_owned())),
            Some(schema) if schema.as_u64() != Some(SCHEMA_VERSION.into()) => {
                let found = schema.to_string();
                return Err(BenchReadError::Schema { found });
            }
            Some(_) => {}
        }
        let bench: Self = serde_json::from_value(value)
            .map_err(|error| BenchReadError::Other(error.to_string()))?;
        bench.check()?;
        Ok(bench)
    }

    fn check(&self) -> Result<(), BenchReadError> {
        let refuse = |what: String| Err(BenchReadError::Figure(what));
        if self.lines.len().saturating_add(self.latencies.len()) > FIGURES_AT_MOST {
            return refuse(format!("there are more than {FIGURES_AT_MOST}"));
        }
        let lines = self.lines.iter();
        let lines = lines.map(|line| (false, line.memory, line.route, line.bytes, &line.figure));
        let latencies = self.latencies.iter();
        let latencies =
            latencies.map(|line| (true, line.memory, line.route, line.bytes, &line.figure));
        let mut seen = HashSet::new();
        for (latency, memory, route, bytes, figure) in lines.chain(latencies) {
            let place = name(memory, route, bytes);
            if !seen.insert((latency, memory, route, bytes)) {
                return refuse(format!("{place} is there twice"));
            }
            if bytes == 0 || !is_sound(figure) {
                return refuse(place);
            }
        }
        Ok(())
    }
}

fn name(memory: MemoryKind, route: Route, bytes: u64) -> String {
    format!("{}, {}, {bytes} bytes", memory.name(), route.words())
}

fn is_sound(figure: &Figure) -> bool {
    let times = [
        figure.best_ns,
        figure.p5_ns,
        figure.median_ns,
        figure.p95_ns,
    ];
    let rate = figure.gb_per_s;
    figure.samples > 0 && times[0] > 0 && times.is_sorted() && rate.is_finite() && rate > 0.0
}
